package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/ebbdb/ebb"
)

// playEncodings is row 4.
func playEncodings(s *stage) error {
	const (
		length  = 6 * second
		columns = 66
		step    = 4 // players for each column
		rows    = 11
	)
	type column struct {
		bytes    float64
		encoding string
	}
	var cols []column
	players := 0
	return s.show(length, func(cv *canvas, t time.Duration) error {
		for len(cols) < min(int((t+frameTime)*columns/(length-second)), columns) {
			var b ebb.Batch
			for range step {
				players++
				b.Do("ZADD", "leaderboard", (players*7919)%10007, fmt.Sprintf("player-%04d", players))
			}
			b.Do("OBJECT", "ENCODING", "leaderboard")
			b.Do("MEMORY", "USAGE", "leaderboard", "SAMPLES", 0)
			v, err := s.c.Pipeline(s.ctx, &b)
			if err != nil {
				return err
			}
			used, err := v[step+1].AsInt()
			if err != nil {
				return fmt.Errorf("%w: MEMORY USAGE: %w", errReply, err)
			}
			cols = append(cols, column{float64(used) / float64(players), v[step].String()})
			s.note("OBJECT ENCODING leaderboard", v[step].String(), green)
		}
		for i, c := range cols {
			st := green
			if c.encoding != "listpack" {
				st = yellow
			}
			cv.column(10+i, top+1, rows, st, c.bytes/90)
		}
		cv.put(10, top+1+rows, dim, strings.Repeat("─", columns))
		for n := 0; n <= 256; n += 64 {
			cv.putf(10+n/step, top+2+rows, dim, "%d", n)
		}
		cv.put(1, top+1, dim, "90 bytes")
		cv.put(1, top+2+rows, dim, "players")
		if n := len(cols); n > 0 {
			cv.putf(1, top, bold, "%d players: %s, %.0f bytes each", players, cols[n-1].encoding, cols[n-1].bytes)
		}
		cv.put(50, top, green, "█ listpack")
		cv.put(64, top, yellow, "█ skiplist")
		return nil
	})
}

// playUnique is row 13.
func playUnique(s *stage) error {
	const length = 6 * second
	truth, shown := 0, 0
	type row struct{ truth, told int64 }
	var rows []row
	for i := range 11 {
		target := 100 << i // 100 to 102,400
		s.at(200*time.Millisecond+time.Duration(i)*460*time.Millisecond, func() error {
			for truth < target {
				args := []any{"PFADD", "visitors"}
				for ; truth < target && len(args) < 1000; truth++ {
					args = append(args, fmt.Sprintf("visitor-%d", truth))
				}
				if _, err := s.do(args...); err != nil {
					return err
				}
			}
			v, err := s.say("PFCOUNT", "visitors")
			rows = append(rows, row{int64(truth), v.Int})
			shown++
			return err
		})
	}
	return s.show(length, func(cv *canvas, _ time.Duration) error {
		cv.putf(1, top, dim, "%9s  %9s  %8s    %s", "visitors", "PFCOUNT", "error", "-2 %                 0                 +2 %")
		for i, r := range rows {
			e := float64(r.told-r.truth) / float64(r.truth)
			y := top + 1 + i
			cv.putf(1, y, plain, "%9d  %9d  %7.2f%%", r.truth, r.told, e*100)
			cv.put(34, y, dim, strings.Repeat("·", 41))
			cv.put(54, y, dim, "│")
			cv.put(min(max(54+int(math.Round(e*1000)), 34), 74), y, green, "●")
		}
		v, err := s.do("STRLEN", "visitors")
		if err != nil {
			return err
		}
		cv.putf(1, top+13, bold, "bytes: %s", v)
		cv.putf(18, top+13, dim, "a set of them would take about %d", truth*40)
		return nil
	})
}

// playCalendar is row 14.
func playCalendar(s *stage) error {
	const (
		length = 7 * second
		days   = 30
	)
	users := []string{"ann", "bob", "carol"}
	misses := [][]int{{14}, {3, 4, 11, 18, 19, 20}, {6, 13, 20, 27}}
	key := func(u string) string { return "signin:" + u + ":2026-11" }
	today := 0
	s.every(200*time.Millisecond, 200*time.Millisecond, 6300*time.Millisecond, func(i int) error {
		if i >= days {
			return nil
		}
		today = i + 1
		for n, u := range users {
			missed := false
			for _, m := range misses[n] {
				missed = missed || m == today
			}
			if missed {
				continue
			}
			if _, err := s.say("SETBIT", key(u), i, 1); err != nil {
				return err
			}
		}
		_, err := s.do("BITOP", "AND", "signin:all", key("ann"), key("bob"), key("carol"))
		return err
	})
	return s.show(length, func(cv *canvas, _ time.Duration) error {
		for n, u := range users {
			x := 1 + n*27
			count, err := s.do("BITCOUNT", key(u))
			if err != nil {
				return err
			}
			missed, err := s.do("BITPOS", key(u), 0)
			if err != nil {
				return err
			}
			bits, err := s.do("GET", key(u))
			if err != nil {
				return err
			}
			cv.putf(x+1, top, bold, "%s, November", u)
			cv.put(x+1, top+1, dim, "Mo Tu We Th Fr Sa Su")
			streak := 0
			for d := range days {
				at := d + 6 // the first is a Sunday
				px, py := x+1+at%7*3, top+2+at/7
				switch on := d/8 < len(bits.Str) && bits.Str[d/8]&(1<<(7-d%8)) != 0; {
				case d >= today:
					cv.putf(px, py, dim, "%2d", d+1)
				case on:
					cv.putf(px, py, green, "%2d", d+1)
					streak++
				default:
					cv.put(px, py, red, " ✗")
					streak = 0
				}
			}
			cv.putf(x+1, top+9, plain, "BITCOUNT     %3d", count.Int)
			first := "none yet"
			if missed.Int < int64(today) {
				first = fmt.Sprintf("%3d", missed.Int+1)
			}
			cv.putf(x+1, top+10, plain, "first missed %s", first)
			cv.putf(x+1, top+11, yellow, "in a row     %3d", streak)
		}
		all, err := s.do("BITCOUNT", "signin:all")
		if err != nil {
			return err
		}
		cv.putf(2, top+14, bold, "BITOP AND: all three were there on %d of %d days", all.Int, today)
		return nil
	})
}

// playBloom is row 15.
func playBloom(s *stage) error {
	const (
		length  = 6 * second
		columns = 60
		rows    = 10
		window  = 2 * second
	)
	if _, err := s.say("BF.RESERVE", "seen", 0.1, 200, "WINDOW", s.ms(window), "GENERATIONS", 8); err != nil {
		return err
	}
	added := map[int]time.Duration{}
	s.every(200*time.Millisecond, 10*time.Millisecond, 5600*time.Millisecond, func(i int) error {
		i %= columns * rows
		added[i] = s.now()
		_, err := s.say("BF.ADD", "seen", i)
		return err
	})
	wrong, asked := 0, 0
	return s.show(length, func(cv *canvas, t time.Duration) error {
		args := []any{"BF.MEXISTS", "seen"}
		for i := range columns * rows {
			args = append(args, i)
		}
		v, err := s.do(args...)
		if err != nil {
			return err
		}
		said, lies, silent := 0, 0, 0
		for i, e := range v.Elems {
			x, y := 10+i/rows, top+1+i%rows
			yes, _ := e.AsBool()
			at, was := added[i]
			recent := was && t-at <= window+window/8+frameTime
			switch {
			case yes && recent:
				cv.put(x, y, green, "█")
				said++
			case yes:
				cv.put(x, y, red, "█")
				lies++
			default:
				cv.put(x, y, dim, "·")
				if was && t-at < window {
					silent++
				}
			}
			if !recent {
				asked++
			}
		}
		wrong += lies
		cv.putf(10, top+12, green, "seen, it says: %3d", said)
		cv.putf(32, top+12, red, "wrongly: %d", lies)
		cv.putf(47, top+12, plain, "denied though seen: %d", silent)
		cv.putf(10, top+13, dim, "false positives so far: %.2f %%, asked for: at most 10 %%", 100*float64(wrong)/float64(max(asked, 1)))
		info, err := s.do("MEMORY", "USAGE", "seen")
		if err != nil {
			return err
		}
		cv.putf(10, top+14, dim, "memory: %s bytes", info)
		return nil
	})
}

// The map of playNearby.
const (
	mapWide, mapHigh = 54, 15
	mapLon, mapLat   = 13.40, 52.52 // of the customer, in the middle
	perCol, perRow   = 62.0, 124.0  // metres
	nearRadius       = 800
	driverSeen       = 1500 * time.Millisecond
)

// mapEast and mapNorth convert metres to degrees at the customer's position.
var mapEast, mapNorth = 1 / (111320 * math.Cos(mapLat*math.Pi/180)), 1 / 110574.0

// mapAt returns the cell of a place, given in metres from the customer.
func mapAt(x, y float64) (col, row int) {
	return 1 + mapWide/2 + int(math.Round(x/perCol)), top + 1 + mapHigh/2 - int(math.Round(y/perRow))
}

// driver is a driver that moves and reports until it stops.
type driver struct {
	name         string
	x, y, dx, dy float64 // metres from the customer, and per second
	until        time.Duration
}

// playNearby is row 18.
func playNearby(s *stage) error {
	const length = 8 * second
	r := rand.New(rand.NewPCG(7, 11))
	var drivers []*driver
	for _, name := range []string{"ann", "bob", "carol", "dave", "eve", "frank", "grace", "heidi"} {
		a := r.Float64() * 2 * math.Pi
		drivers = append(drivers, &driver{name, r.Float64()*2400 - 1200, r.Float64()*1400 - 700, math.Cos(a) * 260, math.Sin(a) * 170, length})
	}
	drivers[2].until, drivers[5].until = 3*second, 4*second
	last := time.Duration(0)
	s.every(50*time.Millisecond, 100*time.Millisecond, length, func(int) error {
		t := s.now()
		dt := (t - last).Seconds()
		last = t
		for _, d := range drivers {
			if t > d.until {
				continue
			}
			if err := d.drive(s, dt); err != nil {
				return err
			}
		}
		return nil
	})
	return s.show(length, func(cv *canvas, _ time.Duration) error { return showDrivers(s, cv) })
}

// drive moves the driver for dt seconds, turns it at the edge of the map, and reports its
// position.
func (d *driver) drive(s *stage, dt float64) error {
	d.x, d.y = d.x+d.dx*dt, d.y+d.dy*dt
	if math.Abs(d.x) > 1550 {
		d.dx = -math.Copysign(d.dx, d.x)
	}
	if math.Abs(d.y) > 800 {
		d.dy = -math.Copysign(d.dy, d.y)
	}
	if _, err := s.do("GEOADD", "drivers", mapLon+d.x*mapEast, mapLat+d.y*mapNorth, d.name); err != nil {
		return err
	}
	_, err := s.do("ZPEXPIRE", "drivers", s.ms(driverSeen), "MEMBERS", 1, d.name)
	return err
}

// showDrivers draws all drivers, and lists those that are near.
func showDrivers(s *stage, cv *canvas) error {
	cv.box(0, top, mapWide+2, mapHigh+1, dim)
	for a := 0.0; a < 2*math.Pi; a += 0.05 {
		x, y := mapAt(nearRadius*math.Cos(a), nearRadius*math.Sin(a))
		cv.put(x, y, dim, "·")
	}
	x, y := mapAt(0, 0)
	cv.put(x-1, y, yellow, "me◉")
	all, left, err := findDrivers(s)
	if err != nil {
		return err
	}
	near := 0
	cv.putf(58, top, bold, "within %d m", nearRadius)
	for i, e := range all {
		dist, err1 := e.Elems[1].AsFloat()
		elon, err2 := e.Elems[2].Elems[0].AsFloat()
		elat, err3 := e.Elems[2].Elems[1].AsFloat()
		if err1 != nil || err2 != nil || err3 != nil {
			return fmt.Errorf("%w: GEOSEARCH: %s", errReply, e)
		}
		name, st := e.Elems[0].Str, dim
		if dist <= nearRadius {
			st = green
			cv.putf(58, top+1+near, green, "%-8s %4.0f m", name, dist)
			near++
		}
		if s.told(time.Duration(left[i].Int)*time.Millisecond) < driverSeen-300*time.Millisecond {
			st = red // it has not reported for a while
		}
		x, y := mapAt((elon-mapLon)/mapEast, (elat-mapLat)/mapNorth)
		if y > top && y < top+mapHigh && x > 0 && x < mapWide {
			cv.put(x, y, st, "●")
			if x+1+len(name) <= mapWide {
				cv.put(x+1, y, st, name)
			}
		}
	}
	cv.putf(58, top+12, plain, "on the road  %2d", len(all))
	cv.put(58, top+13, red, "● silent")
	s.note(fmt.Sprintf("GEOSEARCH drivers FROMLONLAT %.2f %.2f BYRADIUS %d m ASC WITHDIST", mapLon, mapLat, nearRadius),
		fmt.Sprintf("%d drivers", near), green)
	return nil
}

// findDrivers returns the drivers by distance, and the time until each expires.
func findDrivers(s *stage) (all, left []ebb.Value, err error) {
	found, err := s.do("GEOSEARCH", "drivers", "FROMLONLAT", mapLon, mapLat, "BYRADIUS", 5000, "m", "ASC", "WITHDIST", "WITHCOORD")
	if err != nil || len(found.Elems) == 0 {
		return nil, nil, err
	}
	ttl := []any{"ZPTTL", "drivers", "MEMBERS", len(found.Elems)}
	for _, e := range found.Elems {
		ttl = append(ttl, e.Elems[0].Str)
	}
	v, err := s.do(ttl...)
	return found.Elems, v.Elems, err
}
