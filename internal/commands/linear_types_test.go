package commands_test

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/ebbdb/ebb/internal/testing/history"
)

// containers is the model's state for containers: two lists of one-letter elements, two sets of the letters a
// to h with one bit for each, and the scores of the same letters in a sorted set, 0 for a missing one. The
// keys lie in different shards.
type containers struct {
	lists  [2]string
	sets   [2]uint8
	scores [8]int8
}

// which returns 0 for the keys la and sa, and 1 for lb and sb.
func which(key string) int { return int(key[1] - 'a') }

func bit(member string) uint8 { return 1 << (member[0] - 'a') }

func yes(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// apply runs a command on the model and returns the reply.
func (c *containers) apply(args []string) string {
	switch args[0] {
	case "LPUSH":
		l := &c.lists[which(args[1])]
		*l = args[2] + *l
		return strconv.Itoa(len(*l))
	case "RPOP":
		return c.pop(which(args[1]))
	case "LMOVE":
		e := c.pop(which(args[1]))
		c.lists[which(args[2])] = e + c.lists[which(args[2])]
		return e
	case "LLEN":
		return strconv.Itoa(len(c.lists[which(args[1])]))
	case "SADD", "SREM":
		s, b := &c.sets[which(args[1])], bit(args[2])
		had := *s&b != 0
		if *s |= b; args[0] == "SREM" {
			*s &^= b
			return yes(had)
		}
		return yes(!had)
	case "SMOVE":
		from, to, b := &c.sets[which(args[1])], &c.sets[which(args[2])], bit(args[3])
		had := *from&b != 0
		if had {
			*from &^= b
			*to |= b
		}
		return yes(had)
	case "SUNIONSTORE":
		c.sets[which(args[1])] |= c.sets[1-which(args[1])]
		return strconv.Itoa(bits.OnesCount8(c.sets[which(args[1])]))
	case "SCARD":
		return strconv.Itoa(bits.OnesCount8(c.sets[which(args[1])]))
	case "ZINCRBY":
		c.scores[args[3][0]-'a']++
		return strconv.Itoa(int(c.scores[args[3][0]-'a']))
	}
	return c.popMax() // ZPOPMAX
}

func (c *containers) pop(i int) string {
	l := c.lists[i]
	if l == "" {
		return ""
	}
	c.lists[i] = l[:len(l)-1]
	return l[len(l)-1:]
}

// popMax takes the letter with the highest score, the last one if several have it.
func (c *containers) popMax() string {
	best := 0
	for i, s := range c.scores {
		if s > 0 && s >= c.scores[best] {
			best = i
		}
	}
	if c.scores[best] == 0 {
		return ""
	}
	reply := fmt.Sprintf("%c %d", 'a'+best, c.scores[best])
	c.scores[best] = 0
	return reply
}

var containerModel = porcupine.Model{
	Init: func() any { return containers{} },
	Step: func(state, input, output any) (bool, any) {
		c := state.(containers)
		var replies []string
		for _, args := range input.(history.Atom) {
			replies = append(replies, c.apply(args))
		}
		return strings.Join(replies, "\x00") == output.(string), c
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%q -> %q", input, output) },
}

func randomOnContainers(rng *rand.Rand) []string {
	letter := string(rune('a' + rng.IntN(8)))
	one := func(of ...string) string { return of[rng.IntN(len(of))] }
	switch rng.IntN(12) {
	case 0, 1:
		return []string{"LPUSH", one("la", "lb"), letter}
	case 2:
		return []string{"RPOP", one("la", "lb")}
	case 3:
		from := one("la", "lb")
		return []string{"LMOVE", from, one("la", "lb"), "RIGHT", "LEFT"}
	case 4:
		return []string{"LLEN", one("la", "lb")}
	case 5, 6:
		return []string{one("SADD", "SREM"), one("sa", "sb"), letter}
	case 7:
		if rng.IntN(2) == 0 {
			return []string{"SMOVE", "sa", "sb", letter}
		}
		return []string{"SMOVE", "sb", "sa", letter}
	case 8:
		return []string{"SUNIONSTORE", one("sa", "sb"), "sa", "sb"}
	case 9:
		return []string{"SCARD", one("sa", "sb")}
	case 10:
		return []string{"ZINCRBY", "z", "1", letter}
	}
	return []string{"ZPOPMAX", "z"}
}

func TestCommandsOnContainersAreLinearizable(t *testing.T) {
	for round := range history.Rounds {
		if !history.Check(t, containerModel, history.RecordCommands(t, uint64(round), randomOnContainers)) {
			return
		}
	}
}
