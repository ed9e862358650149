package oplog

import (
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/internal/disk"
)

// appendFile is an increment that is open for appending. Its writer holds the appender's lock writing; a sync needs
// the lock syncing.
type appendFile struct {
	disk.File
	part   Part
	number int   // numbers the files that an appender opens
	size   int64 // bytes of complete rounds
	torn   bool  // a part of a round follows after size
	failed error // the error of a sync, after which the file is no longer written; never cleared
}

// append writes the pieces of a round completely or not at all. It truncates a partial write, now or before the next
// round.
func (f *appendFile) append(pieces [][]byte) error {
	if f.torn {
		if err := f.Truncate(f.size); err != nil {
			return fmt.Errorf("cannot truncate a partial write: %w", err)
		}
		f.torn = false
	}
	size := f.size
	for _, b := range pieces {
		n, err := f.Write(b)
		if err == nil && n < len(b) {
			err = errors.New("the system wrote fewer bytes than requested")
		}
		if err != nil {
			f.torn = size > f.size || n > 0
			if f.torn && f.Truncate(f.size) == nil {
				f.torn = false
			}
			return err
		}
		size += int64(n)
	}
	f.size = size
	return nil
}

// syncFound syncs the existing content of a file that was just opened: a killed process may have written it without a
// sync.
func (f *appendFile) syncFound() error {
	if f.size == 0 {
		return nil
	}
	err := f.Sync()
	if err != nil {
		err = errors.Join(err, f.Close())
	}
	return err
}
