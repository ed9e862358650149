package objects

import "github.com/ebbdb/ebb/ebbtest"

// LoseReplies has the replies to the first two scripts that the server knows lost, with the
// time that their repetition takes.
func LoseReplies(b *ebbtest.Backend) {
	n := 0
	b.Intercept(func(cmd []string) error {
		if cmd[0] == "EVAL" { // it learns the script
			n++
			return ebbtest.ErrLost
		}
		if n++; n == 3 {
			return ebbtest.ErrLost
		}
		return nil
	})
}
