package delayq

import (
	"encoding/binary"

	"github.com/ebbdb/ebb/internal/cron"
)

// Priorities is the number of priorities; a worker gets the highest first.
const Priorities = 10

// MaxDeliveries is the greatest number of deliveries that a job counts; the count saturates.
const MaxDeliveries = 1<<16 - 1

// MaxTime is the latest instant that a job can have, in ms since 1970.
const MaxTime = cron.MaxTime

// Job is a stored job. ID and Payload lie in the queue's memory. They are valid until the queue
// changes, and the caller must not write to them. Instants are in ms since 1970.
type Job struct {
	ID, Payload []byte
	Due         int64 // from this ms on a worker can take the job
	Expire      int64 // ms after Due at which the job expires; 0: never
	Deliveries  int64 // the number of times that a worker took the job
	Priority    uint8 // 0 to 9
	Leased      bool
	Token       int64 // the fencing token of the lease
	Until       int64 // the last ms of the lease
}

// Expires returns the last ms at which a worker can take a waiting job, 0 if it never expires.
func (j *Job) Expires() int64 {
	if j.Expire == 0 {
		return 0
	}
	return min(j.Due+j.Expire, MaxTime)
}

// event returns the instant after which the job changes without a call: its lease ends,
// or it expires; 0 for never.
func (j *Job) event() int64 {
	if j.Leased {
		return j.Until
	}
	return j.Expires()
}

// The value of a job's item:
//
//	flags 1 │ deliveries 2 │ due 6 │ stamp 7 │ until 6 │ [expire 6] payload
//
// The stamp is the token of the lease. While the job waits, it is the number that orders the jobs
// that are due in the same ms.
const (
	offDeliveries = 1
	offDue        = 3
	offStamp      = 9
	offUntil      = 16
	headSize      = 22
	expireSize    = 6

	priorityMask = 0x0f
	flagLeased   = 0x10
	flagExpires  = 0x20
)

func get48(b []byte) int64 {
	return int64(binary.LittleEndian.Uint32(b)) | int64(binary.LittleEndian.Uint16(b[4:]))<<32
}

func put48(b []byte, n int64) {
	binary.LittleEndian.PutUint32(b, uint32(n))
	binary.LittleEndian.PutUint16(b[4:], uint16(n>>32))
}

func get56(b []byte) int64    { return get48(b) | int64(b[6])<<48 }
func put56(b []byte, n int64) { put48(b, n); b[6] = byte(n >> 48) }

// sizeOf returns the bytes of a job's value.
func sizeOf(j *Job) int {
	n := headSize + len(j.Payload)
	if j.Expire != 0 {
		n += expireSize
	}
	return n
}

// write encodes a job.
func write(b []byte, j *Job, stamp int64) {
	b[0] = j.Priority
	if j.Leased {
		b[0] |= flagLeased
	}
	binary.LittleEndian.PutUint16(b[offDeliveries:], uint16(min(j.Deliveries, MaxDeliveries)))
	put48(b[offDue:], j.Due)
	put56(b[offStamp:], stamp)
	put48(b[offUntil:], j.Until)
	rest := b[headSize:]
	if j.Expire != 0 {
		b[0] |= flagExpires
		put48(rest, j.Expire)
		rest = rest[expireSize:]
	}
	copy(rest, j.Payload)
}

// read decodes a job.
func read(id, b []byte) Job {
	j := Job{
		ID: id, Priority: b[0] & priorityMask, Leased: b[0]&flagLeased != 0,
		Deliveries: int64(binary.LittleEndian.Uint16(b[offDeliveries:])), Due: get48(b[offDue:]),
	}
	if j.Leased {
		j.Token, j.Until = get56(b[offStamp:]), get48(b[offUntil:])
	}
	j.Payload = b[headSize:]
	if b[0]&flagExpires != 0 {
		j.Expire = get48(j.Payload)
		j.Payload = j.Payload[expireSize:]
	}
	return j
}
