package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/ebbdb/ebb/internal/rdb"
)

// A file contains data of an engine besides its keys, as auxiliary texts: the last fencing token, the expiry
// rules of each database that has rules, and the refresh leases. Before a key with a sliding or a fresh
// deadline, it contains the span or that deadline.
//
//	ebb-token  decimal
//	ebb-slide  decimal: the span in ms of the deadline of the next key
//	ebb-fresh  decimal: the fresh deadline in ms of the next string; 1 if the string is stale
//	ebb-leases version 2 │ number of leases, and each: database │ key │ token │ end in ms │ owner
//	ebb-rules  version 1 │ database │ number of rules, and each:
//	           name │ match │ levels │ stream │ most entries │ exact │ longest value + 1
//	           version 2, if a rule writes to a queue or has the level fresh: behind each rule
//	           0, or 1 │ queue │ delay in ms │ priority
//
// Numbers are uvarints. A length stands before the bytes that it counts.

const (
	auxToken  = "ebb-token"
	auxRules  = "ebb-rules"
	auxSlide  = "ebb-slide"
	auxFresh  = "ebb-fresh"
	auxLeases = "ebb-leases"

	rulesVersion      = 1
	rulesQueueVersion = 2

	// knownLevels are the levels of rules in version 2.
	knownLevels = AllLevels | 1<<LevelFresh
)

// errAux: the value of one of ebb's auxiliary texts is invalid.
var errAux = errors.New("the text is invalid")

// writeAux writes the engine's auxiliary texts.
func (s *snapshot) writeAux(w *rdb.Writer) {
	if s.token != 0 {
		w.Aux(auxToken, strconv.FormatInt(s.token, 10))
	}
	for _, r := range s.rules {
		w.Aux(auxRules, string(r))
	}
	if s.leases != nil {
		w.Aux(auxLeases, string(s.leases))
	}
}

// encodeRules returns the text of each database that has rules. The transaction
// holds all shards.
func (tx *Tx) encodeRules() (all [][]byte) {
	book := tx.db.book.Load()
	if book == nil {
		return nil
	}
	for dbi, set := range book.sets {
		if set == nil {
			continue
		}
		version := byte(rulesVersion)
		if slices.ContainsFunc(set.rules, func(r *rule) bool { return r.ToQueue || r.Levels.Has(LevelFresh) }) {
			version = rulesQueueVersion
		}
		b := binary.AppendUvarint([]byte{version}, uint64(dbi))
		b = binary.AppendUvarint(b, uint64(len(set.rules)))
		for _, r := range set.rules {
			b = r.Rule.append(b, version)
		}
		all = append(all, b)
	}
	return all
}

// append appends a rule in a version of the format of files.
func (r *Rule) append(b []byte, version byte) []byte {
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	text(r.Name)
	text(r.Match)
	b = binary.AppendUvarint(b, uint64(r.Levels))
	text(r.Stream)
	b = binary.AppendUvarint(b, uint64(r.MaxLen))
	exact := byte(0)
	if r.Exact {
		exact = 1
	}
	b = binary.AppendUvarint(append(b, exact), uint64(r.MaxValue+1))
	switch {
	case version < rulesQueueVersion:
	case r.ToQueue:
		b = append(b, 1)
		text(r.Queue)
		b = append(binary.AppendUvarint(b, uint64(r.Delay)), r.Priority)
	default:
		b = append(b, 0)
	}
	return b
}

// LoadAux applies an auxiliary text of a file, and reports whether the text is one of the engine's.
// The Reader that Load reads calls it for every text. For rules it locks all shards. It returns an
// error if a text of the engine's is invalid.
func (db *DB) LoadAux(name, text []byte) (ours bool, err error) {
	switch string(name) {
	case auxToken:
		err = db.loadToken(string(text))
	case auxRules:
		err = db.loadRules(text)
	case auxSlide:
		err = db.loadSlide(string(text))
	case auxFresh:
		err = db.loadFreshText(string(text))
	case auxLeases:
		err = db.loadLeases(text)
	default:
		return false, nil
	}
	return true, auxError(name, err)
}

// auxError adds the name of the text to an error.
func auxError(name []byte, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the file's %s: %w", name, err)
}

func (db *DB) loadToken(text string) error {
	n, err := db.parseToken(text)
	if err == nil {
		(&Tx{db: db}).SawToken(n)
	}
	return err
}

// loadSlide records that the deadline of the next key slides.
func (db *DB) loadSlide(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > MaxDeadline {
		return errAux
	}
	db.loadSpan = n
	return nil
}

// appendSlide appends the text of a record whose deadline slides.
func (r *rec) appendSlide(b []byte) []byte {
	const opAux = 250
	var num [20]byte
	b = appendString(append(b, opAux), []byte(auxSlide))
	return appendString(b, strconv.AppendInt(num[:0], r.slide().span, 10))
}

// loadRules sets the rules of a database. It logs nothing.
func (db *DB) loadRules(text []byte) error {
	dbi, rules, err := db.parseRules(text)
	if err != nil {
		return err
	}
	tx := db.BeginAll(dbi)
	tx.setRules(rules)
	tx.Commit()
	return nil
}

// parseRules parses the text of a database's rules.
func (db *DB) parseRules(text []byte) (dbi int, rules []*rule, err error) {
	in := queueReader{b: text}
	version := in.number(0, 255)
	if version != rulesVersion && version != rulesQueueVersion {
		return 0, nil, errAux
	}
	dbi = int(in.number(0, int64(db.ndb)-1))
	for n := in.number(0, MaxRules); n > 0 && !in.bad; n-- {
		var r Rule
		r.Name, r.Match = string(in.text()), string(in.text())
		levels := int64(AllLevels)
		if version == rulesQueueVersion {
			levels = int64(knownLevels)
		}
		r.Levels = LevelSet(in.number(0, levels))
		r.Stream = string(in.text())
		r.MaxLen = in.number(0, 1<<62)
		r.Exact = in.number(0, 1) == 1
		r.MaxValue = int(in.number(0, 1<<62)) - 1
		if version == rulesQueueVersion && in.number(0, 1) == 1 {
			r.ToQueue, r.Queue = true, string(in.text())
			r.Delay, r.Priority = in.number(0, MaxDeadline), uint8(in.number(0, MaxPriority))
		}
		rules = append(rules, newRule(db, r))
	}
	if in.bad || len(in.b) > 0 {
		return 0, nil, errAux
	}
	return dbi, rules, nil
}
