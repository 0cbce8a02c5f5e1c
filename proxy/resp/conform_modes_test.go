package resp

import (
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

func TestC086VersionsInMidPipeline(t *testing.T) {
	fly(t, testbed.Redis(t), []flight{
		{"3 and back", lines("P1;HELLO 3;HGETALL h;P2;HELLO 2;HGETALL h;P3"), probed(3), "1 done, 2 done, 3 done"},
		{"refused", lines("HELLO 9;P1;HELLO x;P2;HELLO 3 SETNAME;P3"), probed(3), "1 done, 2 done, 3 done"},
		{"RESET", lines("HELLO 3;P1;RESET;HGETALL h;P2"), probed(2), "1 done, 2 done"},
		{"in MULTI", lines("MULTI;P1;HELLO 3;HGETALL h;P2;EXEC;HGETALL h;P3"), probed(3), "1 done, 2 done, 3 done"},
		{"decides what a publication is", lines("SUBSCRIBE a;RESET;HELLO 3;SUBSCRIBE a;PUBLISH a x;LRANGE l 0 1;P1;HELLO 2;P2;PING x"), "$4\r\npong\r\n$1\r\nx\r\n", "1 done, 2 failed ERR"},
	})
}

func TestC087Subscriptions(t *testing.T) {
	fly(t, testbed.Redis(t), []flight{
		{"several", lines("P1;SUBSCRIBE a b c;PING;P2;UNSUBSCRIBE a b c;P3"), probed(3), "1 done, 2 failed ERR, 3 done"},
		{"all", lines("SUBSCRIBE a b a;PSUBSCRIBE p* q*;UNSUBSCRIBE;P1;PUNSUBSCRIBE;P2"), probed(2), "1 failed ERR, 2 done"},
		{"none", lines("UNSUBSCRIBE;P1;PUNSUBSCRIBE;P2;SUNSUBSCRIBE;P3"), probed(3), "1 done, 2 done, 3 done"},
		{"not subscribed to", lines("UNSUBSCRIBE x y;P1;SUBSCRIBE a;UNSUBSCRIBE x;UNSUBSCRIBE a;P2"), probed(2), "1 done, 2 done"},
		{"shards", lines("SSUBSCRIBE a b;SUBSCRIBE a;SUNSUBSCRIBE;SUNSUBSCRIBE;UNSUBSCRIBE;P1"), probed(1), "1 done"},
		{"errors", lines("SUBSCRIBE;P1;PSUBSCRIBE;P2"), probed(2), "1 done, 2 done"},
		{"modes are refused", lines("SUBSCRIBE a;CLIENT REPLY OFF;CLIENT REPLY SKIP;PING x;MULTI;UNSUBSCRIBE;P1"), probed(1), "1 done"},
		{"RESET", lines("SUBSCRIBE a;PSUBSCRIBE p;RESET;LRANGE l 0 1;P1;UNSUBSCRIBE;P2"), probed(2), "1 done, 2 done"},
		{"3: several", lines("HELLO 3;P1;SUBSCRIBE a b c;PING;P2;UNSUBSCRIBE;P3"), probed(3), "1 done, 2 done, 3 done"},
		{"3: none", lines("HELLO 3;UNSUBSCRIBE;P1;PUNSUBSCRIBE;P2;SUNSUBSCRIBE;P3"), probed(3), "1 done, 2 done, 3 done"},
		{"many", lines("SUBSCRIBE") + cmd(manyChannels(3000)...) + lines("UNSUBSCRIBE;P1"), probed(1), "1 done"},
	})
}

func manyChannels(n int) []string {
	args := []string{"SUBSCRIBE"}
	for i := range n {
		args = append(args, "channel:"+itoa(int64(i)))
	}
	return args
}

// A publication may come between any two replies.
func TestC087Publications(t *testing.T) {
	server := testbed.Redis(t)
	other := newTap(t, server)
	for _, version := range []string{"2", "3"} {
		p := newTap(t, server)
		p.send(lines("HELLO " + version + ";SUBSCRIBE a;PSUBSCRIBE *;SSUBSCRIBE s;PING x"))
		p.until("x\r\n")
		for range 50 {
			other.send(lines("PUBLISH a message;SPUBLISH s pong;PUBLISH unsubscribe subscribe"))
			p.send(lines("PING y;UNSUBSCRIBE z;PING x"))
		}
		other.send(probe(1))
		other.until(probed(1))
		p.send(lines("UNSUBSCRIBE;PUNSUBSCRIBE;SUNSUBSCRIBE;P2"))
		p.until(probed(2))
		p.done("2 done")
		p.send(lines("FLUSHALL;PING"))
		p.until("PONG\r\n")
	}
}

func TestC088SubscriptionsAmongCommands(t *testing.T) {
	fly(t, testbed.Redis(t), []flight{
		{"pushes confirm", lines("HELLO 3;SUBSCRIBE a;P1;GET a;SUBSCRIBE b c;P2;PSUBSCRIBE x;P3;UNSUBSCRIBE;PUNSUBSCRIBE;P4"), probed(4), "1 done, 2 done, 3 done, 4 done"},
		{"publications to itself", lines("HELLO 3;SUBSCRIBE a;PUBLISH a x;P1;PUBLISH a y;UNSUBSCRIBE a;P2"), probed(2), "1 done, 2 done"},
		{"an error is one reply", lines("HELLO 3 AUTH deaf x;SUBSCRIBE bad;P1;SUBSCRIBE ok bad;P2;SUBSCRIBE ok;P3"), probed(3), "1 done, 2 done, 3 done"},
		{"an error is one reply in 2", lines("AUTH deaf x;SUBSCRIBE bad;P1;PSUBSCRIBE bad;P2"), probed(2), "1 done, 2 done"},
	})
}

func TestC092SubscriptionsInTransactions(t *testing.T) {
	fly(t, testbed.Redis(t), []flight{
		{"2", lines("MULTI;P1;SUBSCRIBE a b;PING;UNSUBSCRIBE;P2;EXEC;P3"), probed(3), "1 done, 2 done, 3 done"},
		{"3", lines("HELLO 3;MULTI;P1;SUBSCRIBE a b;PING;PSUBSCRIBE p;UNSUBSCRIBE a x;PUNSUBSCRIBE;UNSUBSCRIBE;P2;EXEC;P3"), probed(3), "1 done, 2 done, 3 done"},
		{"it stays", lines("MULTI;SUBSCRIBE a b;P1;EXEC;P2;UNSUBSCRIBE;P3"), probed(3), "1 done, 2 failed ERR, 3 done"},
		{"last", lines("MULTI;P1;SUBSCRIBE a b;EXEC;UNSUBSCRIBE;P2"), probed(2), "1 done, 2 done"},
		{"discarded", lines("MULTI;SUBSCRIBE a b;P1;DISCARD;P2"), probed(2), "1 failed DISCARD, 2 done"},
		{"aborted", lines("MULTI;SUBSCRIBE a b;NOSUCH;P1;EXEC;P2"), probed(2), "1 failed EXECABORT, 2 done"},
		{"lists", lines("RPUSH l one two three;RPUSH m message a;MULTI;SUBSCRIBE a b;LRANGE l 0 -1;COMMAND INFO GET;PUBLISH a x;LRANGE m 0 -1;P1;EXEC;UNSUBSCRIBE;P2"), probed(2), "1 done, 2 done"},
		{"a list that is like a publication", lines("RPUSH l message a x;MULTI;SUBSCRIBE a;PUBLISH a x;LRANGE l 0 -1;P1;EXEC;UNSUBSCRIBE;P2"), probed(2), "blind"},
	})
}

func TestC091PushInsideAnArray(t *testing.T) {
	// This server puts a publication of a transaction to itself inside EXEC's reply.
	fly(t, testbed.Redis(t), []flight{
		{"3", lines("HELLO 3;SUBSCRIBE a;MULTI;PING;P1;PUBLISH a x;P2;EXEC;P3"), probed(3), "1 done, 2 done, 3 done"},
		{"3, nothing that matters", lines("HELLO 3;SUBSCRIBE a;MULTI;PING;PUBLISH a x;PING;EXEC;P3"), probed(3), "3 done"},
		{"2", lines("MULTI;P1;SUBSCRIBE a;PUBLISH a x;P2;UNSUBSCRIBE;EXEC;P3"), probed(3), "1 done, 2 done, 3 done"},
	})
	// Later ones put it behind that reply, where the subscription may have ended.
	play(t, newTracker(), ">"+lines("MULTI;SUBSCRIBE a;PUBLISH a x;UNSUBSCRIBE;EXEC")+nx,
		"<+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n:1\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n"+
			"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n:1\r\n", "="+nxOp(`db0 "k"`)+" granted")
	const invalidate = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nx\r\n"
	play(t, newTracker(), ">"+words("HELLO 3")+words("MGET a b")+nx, "<%1\r\n+proto\r\n:3\r\n*2\r\n$1\r\na\r\n"+invalidate+"$1\r\nb\r\n"+invalidate+":1\r\n", "="+nxOp(`db0 "k"`)+" granted")
	play(t, newTracker(), ">"+words("HELLO 3")+words("MULTI")+nx+nx+words("EXEC")+nx,
		"<%1\r\n+proto\r\n:3\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n"+invalidate+":1\r\n"+invalidate+":0\r\n"+invalidate+":0\r\n",
		"="+nxOp(`db0 "k"`)+" granted; "+nxOp(`db0 "k"`)+" refused; "+nxOp(`db0 "k"`)+" refused")
}

func TestC093ReplyModes(t *testing.T) {
	fly(t, testbed.Redis(t), []flight{
		{"off and on", lines("P1;CLIENT REPLY OFF;P2;GET a;CLIENT REPLY ON;P3"), probed(3), "1 done, 2 unknown, 3 done"},
		{"on alone", lines("CLIENT REPLY ON;P1"), probed(1), "1 done"},
		{"skip", lines("client reply skip;P1;P2"), probed(2), "1 unknown, 2 done"},
		{"skip skip", lines("CLIENT REPLY SKIP;CLIENT REPLY SKIP;P1;P2"), probed(2), "1 unknown, 2 done"},
		{"skip and an error behind", lines("CLIENT REPLY SKIP;P1;NOSUCH;P2"), probed(2), "1 unknown, 2 done"},
		{"skip an error", lines("CLIENT REPLY SKIP;NOSUCH;P2"), probed(2), "2 done"},
		{"skip on", lines("CLIENT REPLY SKIP;CLIENT REPLY ON;P1"), probed(1), "1 done"},
		{"skip MULTI", lines("CLIENT REPLY SKIP;MULTI;P1;EXEC;P2"), probed(2), "1 done, 2 done"},
		{"skip EXEC", lines("MULTI;P1;CLIENT REPLY ON;EXEC;CLIENT REPLY SKIP;MULTI;P2;EXEC;P3"), probed(3), "1 done, 2 done, 3 done"},
		{"skip an empty request", lines("CLIENT REPLY SKIP") + "\r\n" + lines("P1;P2"), probed(2), "1 done, 2 done"},
		{"skip *0", lines("CLIENT REPLY SKIP") + "*0\r\n\r\n" + lines("P1;P2"), probed(2), "1 done, 2 done"},
		{"skip RESET", lines("CLIENT REPLY SKIP;RESET;P1"), probed(1), "1 done"},
		{"off RESET", lines("CLIENT REPLY OFF;P1;RESET;P2"), probed(2), "1 unknown, 2 done"},
		{"off skip on", lines("CLIENT REPLY OFF;CLIENT REPLY SKIP;P1;CLIENT REPLY ON;P2"), probed(2), "1 unknown, 2 done"},
		{"off skip RESET", lines("CLIENT REPLY OFF;CLIENT REPLY SKIP;RESET;P1"), probed(1), "1 done"},
		{"off off on on", lines("CLIENT REPLY OFF;CLIENT REPLY OFF;P1;CLIENT REPLY ON;P2;CLIENT REPLY ON;P3"), probed(3), "1 unknown, 2 done, 3 done"},
		{"off, a transaction, on", lines("CLIENT REPLY OFF;MULTI;P1;EXEC;P2;CLIENT REPLY ON;P3"), probed(3), "1 unknown, 2 unknown, 3 done"},
		{"off, SELECT, on", lines("CLIENT REPLY OFF;SELECT 3;CLIENT REPLY ON;P1"), probed(1), "1 done"},
		{"not understood", lines("CLIENT REPLY BOGUS;P1;CLIENT REPLY;P2;CLIENT REPLY OFF x;P3"), probed(3), "1 done, 2 done, 3 done"},
		{"off in MULTI", lines("MULTI;P1;CLIENT REPLY OFF;P2;EXEC;P3;CLIENT REPLY ON;P4"), probed(4), "1 done, 2 unknown, 3 unknown, 4 done"},
		{"off and on in MULTI", lines("MULTI;P1;CLIENT REPLY OFF;P2;GET a;CLIENT REPLY ON;P3;EXEC;P4"), probed(4), "1 done, 2 unknown, 3 done, 4 done"},
		{"skip in MULTI", lines("MULTI;P1;CLIENT REPLY SKIP;P2;EXEC;P3;P4"), probed(4), "1 done, 2 done, 3 unknown, 4 done"},
		{"skip last in MULTI", lines("MULTI;P1;CLIENT REPLY SKIP;EXEC;P3;P4"), probed(4), "1 done, 3 unknown, 4 done"},
		{"skip in MULTI, then nothing", lines("MULTI;P1;CLIENT REPLY SKIP;EXEC") + "\r\n" + lines("P3;P4"), probed(4), "1 done, 3 done, 4 done"},
		{"off in an aborted MULTI", lines("MULTI;NOSUCH;CLIENT REPLY OFF;P1;EXEC;P2"), probed(2), "1 failed EXECABORT, 2 done"},
		{"skip SUBSCRIBE", lines("CLIENT REPLY SKIP;SUBSCRIBE a b;UNSUBSCRIBE;P1"), probed(1), "1 done"},
		{"off SUBSCRIBE", lines("CLIENT REPLY OFF;SUBSCRIBE a b;UNSUBSCRIBE;P1;CLIENT REPLY ON;P2"), probed(2), "1 unknown, 2 done"},
		{"3: off SUBSCRIBE", lines("HELLO 3;CLIENT REPLY OFF;SUBSCRIBE a b;GET x;PUBLISH a x;UNSUBSCRIBE;P1;CLIENT REPLY ON;P2"), probed(2), "1 unknown, 2 done"},
		{"off, subscriptions in MULTI", lines("CLIENT REPLY OFF;MULTI;PSUBSCRIBE x y;EXEC;SUNSUBSCRIBE;SUBSCRIBE a b;RESET;P1"), probed(1), "1 done"},
		{"3: HELLO alone while off", lines("HELLO 3;SUBSCRIBE a;CLIENT REPLY OFF;HELLO;CLIENT REPLY ON;P1"), probed(1), "1 done"},
		{"replication's own", lines("REPLCONF ACK 1;P1;REPLCONF GETACK *;P2;REPLCONF ACK;P3;REPLCONF GETACK;P4;REPLCONF ACK 1 x;P5;REPLCONF ACK x;P6;replconf ack 1 listening-port 1;P7"), probed(7), "1 done, 2 done, 3 done, 4 done, 5 done, 6 done, 7 done"},
		{"replication's own, behind other options", lines("REPLCONF capa eof ACK 1;P1;REPLCONF listening-port 1 ip-address 1.2.3.4 capa eof GETACK *;P2;REPLCONF capa eof listening-port 2;P3;replconf listening-port -1 ack x nosuch 1;P4;REPLCONF capa eof ACK;P5"), probed(5), "1 done, 2 done, 3 done, 4 done, 5 done"},
		{"replication's own, behind what is refused", lines("REPLCONF listening-port x ACK 1;P1;REPLCONF nosuch 1 ACK 1;P2;REPLCONF listening-port 01 ACK 1;P3;REPLCONF listening-port +1 ACK 1;P4;REPLCONF ACK 1 nosuch 1;P5"), probed(5), "1 done, 2 done, 3 done, 4 done, 5 done"},
		{"replication's own, behind what no ACK follows", lines("REPLCONF rdb-only 0;P1;REPLCONF rdb-only 5;P2;REPLCONF ip-address " + strings.Repeat("a", 60) + ";P3;REPLCONF rdb-filter-only functions nosuch ACK;P4"), probed(4), "1 done, 2 done, 3 done, 4 done"},
		{"replication's own, in MULTI", lines("MULTI;REPLCONF capa eof ACK 1;P1;EXEC;P2"), probed(2), "1 done, 2 done"},
		{"replication's own, by the server's version", lines("P1;REPLCONF rdb-only 0 ACK 1;P2"), probed(2), "blind, 1 done"},
		{"replication's own, by how long an address it takes", lines("P1;REPLCONF ip-address " + strings.Repeat("a", 46) + " ACK 1;P2"), probed(2), "blind, 1 done"},
		{"replication's own, too long", lines("P1;REPLCONF listening-port " + strings.Repeat("1", maxToken+1) + " ACK 1;P2"), probed(2), "blind, 1 done"},
		{"replication's own, too many", lines("P1") + cmd(append([]string{"REPLCONF"}, strings.Fields(strings.Repeat("capa eof ", maxArgs))...)...) + lines("P2"), probed(2), "blind, 1 done"},
		{"refused", lines("AUTH mute x;CLIENT REPLY OFF;P1;CLIENT REPLY ON;P2"), probed(2), "1 done, 2 done"},
		{"skip refused", lines("AUTH mute x;CLIENT REPLY SKIP;P1;P2"), probed(2), "blind"},
		{"on, queued while off", lines("CLIENT REPLY OFF;MULTI;CLIENT REPLY ON;P1;EXEC;P2"), probed(2), "blind"},
	})
}

func TestC098Monitor(t *testing.T) {
	server := testbed.Redis(t)
	fly(t, server, []flight{
		{"and commands", lines("P1;MONITOR;PING;ECHO a;P2;MONITOR;PING;RESET;P3"), probed(3), "1 done, 2 failed ERR, 3 done"},
		{"in RESP3", lines("HELLO 3;MONITOR;PING;P1;CLIENT GETNAME;RESET;P2"), probed(2), "1 failed ERR, 2 done"},
		{"in MULTI", lines("MULTI;MONITOR;P1;EXEC;P2"), probed(2), "1 done, 2 done"},
		{"and MULTI", lines("MONITOR;MULTI;PING;ECHO a;EXEC;MULTI;PING;SELECT 0;PING;EXEC;PING;RESET;P1"), probed(1), "1 done"},
	})
	p, other := newTap(t, server), newTap(t, server)
	p.send(lines("MONITOR;PING"))
	p.until("\"PING\"\r\n")
	for i := range 50 {
		other.send(lines("GET a;P" + itoa(int64(i))))
		p.send(lines("PING;ECHO x"))
	}
	other.until(probed(49))
	p.send(lines("RESET;P99"))
	p.until(probed(99))
	p.done("99 done")
}
