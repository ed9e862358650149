package direct

// These are the kinds of direct calls, by which a server counts them; each counts as a call of its command.
const (
	KindGet = iota
	KindSet
	KindHGet
	KindHSet
	KindTake
	KindAcquire
	KindRenew
	KindRelease
	KindPush
	Kinds // how many there are
)

// Commands are the names of the commands, by kind.
var Commands = [Kinds]string{
	KindGet: "get", KindSet: "set", KindHGet: "hget", KindHSet: "hsetex", KindTake: "rl.take",
	KindAcquire: "lock.acquire", KindRenew: "lock.renew", KindRelease: "lock.release",
	KindPush: "dq.add",
}
