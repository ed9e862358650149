package command

// KeyOptions says which keys stand among a command's options, where a KeySpec cannot
// say it because the argument of one option may look like another option: in SORT k BY
// store the word store is a pattern. The value is data, so that a client's routing table
// has it too.
//
//	SORT k LIMIT 0 5 STORE d     First k, and the argument of the last STORE
//	MIGRATE h p "" 0 9 KEYS a b  First is empty: all arguments behind KEYS
type KeyOptions struct {
	// First is the key before the options; its Pos is 0 if there is none.
	First KeyRef
	// Instead: the options have a key only if the first key is empty; their key then
	// replaces it.
	Instead bool
	// Only is the word that argument 2 must be; otherwise the request has no keys.
	// "": any word will do.
	Only string
	// From is the position of the first option.
	From int
	// Options are the options with arguments. Any other word has none, or one if Pairs is
	// set.
	Options []KeyOption
	// Take says which keys count, where several options name one.
	Take Take
	// Pairs: every option takes one argument, a request without the last one has
	// ErrKeys, and an empty argument is not a key.
	Pairs bool
}

// KeyOption is an option that takes arguments.
type KeyOption struct {
	// Word is the option, in capitals.
	Word string
	// Args is the number of its arguments; -1: all that follow.
	Args int
	// Key is the use of its arguments as keys; 0: they are none.
	Key KeyFlags
	// Before is a word that may stand before the argument, in capitals: TO key and TO QUEUE key. It is
	// an argument itself if it is the last word, or if another option follows it. "": there is none.
	Before string
}

// Take says which of several keys among options count.
type Take uint8

const (
	TakeAll   Take = iota
	TakeLast       // the last one
	TakeFirst      // the first one; a request without it has ErrKeys
)

// append appends the keys of a request; on ErrKeys dst may have some of them.
func (o *KeyOptions) append(dst []KeyRef, args [][]byte) ([]KeyRef, error) {
	if o.Only != "" && (len(args) < 3 || !EqualFold(args[2], o.Only)) || o.First.Pos >= len(args) {
		return dst, nil
	}
	n := len(dst)
	if o.First.Pos > 0 {
		dst = append(dst, o.First)
		if o.Instead && len(args[o.First.Pos]) > 0 {
			return dst, nil
		}
	}
	if o.Pairs && (len(args)-o.From)%2 != 0 {
		return dst, ErrKeys
	}
	begin := len(dst)
	for i := o.From; i < len(args); i++ {
		opt, takes := o.option(args[i])
		if opt != nil && opt.Args < 0 {
			if dst = dst[:begin]; o.Instead {
				dst = dst[:n]
			}
			for p := i + 1; p < len(args); p++ {
				dst = append(dst, KeyRef{p, opt.Key})
			}
			return dst, nil
		}
		if opt != nil && opt.Key != 0 && i+1 < len(args) && !(o.Pairs && len(args[i+1]) == 0) {
			if o.Take == TakeLast {
				dst = dst[:begin]
			}
			if opt.Before != "" && EqualFold(args[i+1], opt.Before) && i+2 < len(args) {
				if next, _ := o.option(args[i+2]); next == nil {
					i++
				}
			}
			if dst = append(dst, KeyRef{i + 1, opt.Key}); o.Take == TakeFirst {
				return dst, nil
			}
		}
		i += takes
	}
	if o.Take == TakeFirst {
		return dst, ErrKeys
	}
	return dst, nil
}

// option finds a word among the options, and says how many arguments follow it.
func (o *KeyOptions) option(word []byte) (opt *KeyOption, takes int) {
	for i := range o.Options {
		if opt = &o.Options[i]; EqualFold(word, opt.Word) {
			return opt, opt.Args
		}
	}
	if o.Pairs {
		return nil, 1
	}
	return nil, 0
}
