package resp

// A verb is what the package knows of a command.
type verb uint8

const (
	plainVerb verb = iota // one request, one reply, nothing more
	setVerb
	setNXVerb
	setEXVerb
	delVerb
	expireVerb
	delexVerb
	delIfEqVerb
	incrVerb
	getVerb
	getSetVerb
	getExVerb
	getDelVerb
	manyVerb
	joinVerb
	leaveVerb
	watchVerb
	unwatchVerb
	evalVerb
	evalSHAVerb
	fcallVerb
	scriptVerb
	functionVerb
	selectVerb
	helloVerb
	resetVerb
	clientVerb
	authVerb
	quitVerb
	multiVerb
	execVerb
	discardVerb
	subscribeVerb
	publishVerb
	monitorVerb
	replconfVerb
	syncVerb
	placeVerb // it asks where servers are
)

// A command is a command's name in capitals, and what is known of it. The name
// is empty for one that nothing is known of.
type command struct {
	name string
	verb verb
}

// lookup knows the name if it is in capitals.
func lookup(name []byte) command {
	switch string(name) {
	case "SET":
		return command{"SET", setVerb}
	case "SETNX":
		return command{"SETNX", setNXVerb}
	case "SETEX":
		return command{"SETEX", setEXVerb}
	case "PSETEX":
		return command{"PSETEX", setEXVerb}
	case "DEL":
		return command{"DEL", delVerb}
	case "UNLINK":
		return command{"UNLINK", delVerb}
	case "EXPIRE":
		return command{"EXPIRE", expireVerb}
	case "PEXPIRE":
		return command{"PEXPIRE", expireVerb}
	case "EXPIREAT":
		return command{"EXPIREAT", expireVerb}
	case "PEXPIREAT":
		return command{"PEXPIREAT", expireVerb}
	case "DELEX":
		return command{"DELEX", delexVerb}
	case "DELIFEQ":
		return command{"DELIFEQ", delIfEqVerb}
	case "INCR":
		return command{"INCR", incrVerb}
	case "INCRBY":
		return command{"INCRBY", incrVerb}
	case "GET":
		return command{"GET", getVerb}
	case "GETSET":
		return command{"GETSET", getSetVerb}
	case "GETEX":
		return command{"GETEX", getExVerb}
	case "GETDEL":
		return command{"GETDEL", getDelVerb}
	case "MSETNX":
		return command{"MSETNX", manyVerb}
	case "MSETEX":
		return command{"MSETEX", manyVerb}
	}
	return lookupMember(name)
}

// lookupMember knows the commands that add members to keys, or remove them.
func lookupMember(name []byte) command {
	switch string(name) {
	case "HSETNX":
		return command{"HSETNX", joinVerb}
	case "SADD":
		return command{"SADD", joinVerb}
	case "ZADD":
		return command{"ZADD", joinVerb}
	case "HDEL":
		return command{"HDEL", leaveVerb}
	case "SREM":
		return command{"SREM", leaveVerb}
	case "ZREM":
		return command{"ZREM", leaveVerb}
	}
	return lookupScript(name)
}

// lookupScript knows the commands that run scripts and functions.
func lookupScript(name []byte) command {
	switch string(name) {
	case "EVAL":
		return command{"EVAL", evalVerb}
	case "EVALSHA":
		return command{"EVALSHA", evalSHAVerb}
	case "EVAL_RO":
		return command{"EVAL_RO", evalVerb}
	case "EVALSHA_RO":
		return command{"EVALSHA_RO", evalSHAVerb}
	case "FCALL":
		return command{"FCALL", fcallVerb}
	case "FCALL_RO":
		return command{"FCALL_RO", fcallVerb}
	}
	return lookupControl(name)
}

// lookupControl knows the commands that change the connection itself.
func lookupControl(name []byte) command {
	switch string(name) {
	case "SCRIPT":
		return command{"SCRIPT", scriptVerb}
	case "FUNCTION":
		return command{"FUNCTION", functionVerb}
	case "SELECT":
		return command{"SELECT", selectVerb}
	case "HELLO":
		return command{"HELLO", helloVerb}
	case "RESET":
		return command{"RESET", resetVerb}
	case "CLIENT":
		return command{"CLIENT", clientVerb}
	case "AUTH":
		return command{"AUTH", authVerb}
	case "QUIT":
		return command{"QUIT", quitVerb}
	case "WATCH":
		return command{"WATCH", watchVerb}
	case "UNWATCH":
		return command{"UNWATCH", unwatchVerb}
	case "MULTI":
		return command{"MULTI", multiVerb}
	case "EXEC":
		return command{"EXEC", execVerb}
	case "DISCARD":
		return command{"DISCARD", discardVerb}
	case "MONITOR":
		return command{"MONITOR", monitorVerb}
	case "REPLCONF":
		return command{"REPLCONF", replconfVerb}
	case "SYNC":
		return command{"SYNC", syncVerb}
	case "PSYNC":
		return command{"PSYNC", syncVerb}
	case "CLUSTER":
		return command{"CLUSTER", placeVerb}
	case "SENTINEL":
		return command{"SENTINEL", placeVerb}
	case "ROLE":
		return command{"ROLE", placeVerb}
	}
	return lookupTopic(name)
}

func lookupTopic(name []byte) command {
	switch string(name) {
	case "SUBSCRIBE":
		return command{"SUBSCRIBE", subscribeVerb}
	case "PSUBSCRIBE":
		return command{"PSUBSCRIBE", subscribeVerb}
	case "SSUBSCRIBE":
		return command{"SSUBSCRIBE", subscribeVerb}
	case "UNSUBSCRIBE":
		return command{"UNSUBSCRIBE", subscribeVerb}
	case "PUNSUBSCRIBE":
		return command{"PUNSUBSCRIBE", subscribeVerb}
	case "SUNSUBSCRIBE":
		return command{"SUNSUBSCRIBE", subscribeVerb}
	case "PUBLISH":
		return command{"PUBLISH", publishVerb}
	case "SPUBLISH":
		return command{"SPUBLISH", publishVerb}
	}
	return command{}
}

// passes reports whether the command is mostly of no interest.
func (v verb) passes() bool { return v == plainVerb || v == getVerb }

// brief reports whether what the command is of interest for has short arguments.
func (v verb) brief() bool { return v == getSetVerb || v == joinVerb || v == leaveVerb }

// calls reports whether the command runs a script or a function.
func (v verb) calls() bool { return v == evalVerb || v == evalSHAVerb || v == fcallVerb }

// prepare says what is kept of a request with argc arguments, the name
// included, and whether its bytes are withheld.
func (c command) prepare(argc int64) plan {
	p := plan{cmd: c}
	all := int(min(argc, maxArgs)) - 1
	switch c.verb {
	case setVerb:
		p.may = argc >= 4
	case setNXVerb:
		p.may = argc == 3
	case getVerb:
		p.keep = min(all, 1)
	case getSetVerb:
		p.may, p.watch = argc == 3, true
	case getExVerb:
		p.may = argc >= 3
	case getDelVerb:
		p.may = argc == 2
	case manyVerb:
		p.may = argc >= 3
	case joinVerb:
		p.may = c.joins(argc)
	case leaveVerb:
		p.may, p.watch = argc == 3, true
	case watchVerb:
		p.keep = min(all, maxWatched)
	case setEXVerb:
		p.may = argc == 4
	case delVerb, incrVerb, delexVerb:
		p.may = argc >= 2
	case expireVerb, delIfEqVerb:
		p.may = argc >= 3
	case evalVerb, evalSHAVerb, fcallVerb:
		p.may = argc >= 4
		p.watch = p.may
	case functionVerb:
		p.keep, p.watch = min(all, 3), true
	case scriptVerb, selectVerb, clientVerb:
		p.keep, p.watch = min(all, 2), true
	case placeVerb:
		p.keep = min(all, 1)
	case subscribeVerb, replconfVerb:
		p.keep = all
	case helloVerb:
		p.keep, p.watch = min(all, 8), true
	}
	if p.may {
		p.keep = all
	}
	return p
}

// joins reports whether so many arguments are those of one member that is added.
func (c command) joins(argc int64) bool {
	switch c.name {
	case "HSETNX":
		return argc == 4
	case "ZADD":
		return argc == 5
	}
	return argc == 3
}

// longest returns how long an argument may be to be kept.
func (c command) longest() int64 {
	switch c.verb {
	case evalVerb, evalSHAVerb, fcallVerb, scriptVerb, functionVerb:
		return maxArg
	}
	return maxToken
}
