package limiter

import (
	"errors"
	"slices"
)

// This file implements reservations: grants in the future, in the tail of a GCRA limiter, in the
// order of their instants. Once a reservation is due, it is a grant like any other, and the limiter
// forgets it.

// Reservation is a grant in the future.
type Reservation struct {
	ID   int64 // a token, unique in the engine
	Cost int64
	Due  int64 // us since 1970
}

const (
	reservationSize = 24
	// MaxReservations is the greatest number of outstanding reservations of a limiter. Each grant walks
	// over them, and finding a position for a new one may cost the square of their number.
	MaxReservations = 1000
)

// ErrReserved: MaxReservations are outstanding.
var ErrReserved = errors.New("1000 reservations of this key are outstanding, which is all it can hold")

func reservationAt(tail []byte, i int) Reservation {
	b := tail[i*reservationSize:]
	return Reservation{integer(b), integer(b[8:]), integer(b[16:])}
}

func appendReservation(b []byte, r Reservation) []byte {
	n := len(b)
	b = append(b, make([]byte, reservationSize)...)
	putInteger(b[n:], r.ID)
	putInteger(b[n+8:], r.Cost)
	putInteger(b[n+16:], r.Due)
	return b
}

// Reservations returns the outstanding reservations, the earliest first. O(reservations).
func (s *State) Reservations() (all []Reservation) {
	if s.algo != GCRA {
		return nil
	}
	for i := range len(s.tail) / reservationSize {
		all = append(all, reservationAt(s.tail, i))
	}
	return all
}

// Reserve adds a reservation whose instant Earliest has returned. The tail moves to buf, which Reserve returns. O(reservations).
// Errors: ErrReserved.
func (s *State) Reserve(r Reservation, buf []byte) ([]byte, error) {
	i := len(s.tail) / reservationSize
	if i >= MaxReservations {
		return buf, ErrReserved
	}
	for i > 0 && reservationAt(s.tail, i-1).Due > r.Due {
		i--
	}
	buf = append(buf[:0], s.tail[:i*reservationSize]...)
	buf = appendReservation(buf, r)
	buf = append(buf, s.tail[i*reservationSize:]...)
	s.tail = buf
	return buf, nil
}

// Reserved returns the outstanding reservation with an ID. It needs no Adopt. O(reservations).
func (s *State) Reserved(id int64) (r Reservation, ok bool) {
	if i := s.reserved(id); i >= 0 {
		return reservationAt(s.tail, i), true
	}
	return r, false
}

// reserved returns the position of a reservation, -1 if it is not outstanding.
func (s *State) reserved(id int64) int {
	if s.algo != GCRA {
		return -1
	}
	for i := range len(s.tail) / reservationSize {
		if reservationAt(s.tail, i).ID == id {
			return i
		}
	}
	return -1
}

// Cancel removes an outstanding reservation. The tail moves to buf, which Cancel returns. It needs no Adopt. O(reservations).
func (s *State) Cancel(id int64, buf []byte) []byte {
	i := s.reserved(id)
	buf = append(buf[:0], s.tail...)
	s.tail = slices.Delete(buf, i*reservationSize, (i+1)*reservationSize)
	return buf
}
