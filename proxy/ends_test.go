package proxy_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// A client writes a long pipeline before it reads anything, and its server,
// which has answered much of it, dies. The client must not wait for it: nobody
// reads the answers that are under way before it has written.
func TestClientThatOnlyWritesHearsOfTheEnd(t *testing.T) {
	client, server := newStreet(t, nil).connect()
	go io.Copy(io.Discard, io.LimitReader(server, 3<<20))
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		io.WriteString(server, strings.Repeat("+0123456789012345678901234567890123456789\r\n", 1<<20))
	}()
	wrote := make(chan error, 1)
	go func() {
		_, err := io.WriteString(client, strings.Repeat("PING\r\n", 10<<20))
		wrote <- err
	}()
	time.Sleep(500 * time.Millisecond) // both are stuck by then, or the test proves less
	server.SetLinger(0)
	server.Close()
	select {
	case <-wrote:
	case <-time.After(time.Minute):
		t.Fatal("the client's write still waits for a server that is dead")
	}
	client.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.Copy(io.Discard, client); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the client does not hear of the end")
	}
	<-answered
}
