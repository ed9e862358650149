package demo

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/ebbtest"
)

// number reads an integer that follows name in a reply of pairs.
func number(t *testing.T, v conn.Value, name string) int64 {
	t.Helper()
	got, ok := v.Get(name)
	n, err := got.AsInt()
	if !ok || err != nil {
		t.Fatalf("no %s in %v", name, v)
	}
	return n
}

func TestTheShopKeepsEverythingInMotion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ebbtest.Run(t)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		if err := Fill(ctx, b.Conn, Options{Seed: 1}); err != nil {
			t.Fatal(err)
		}
		go func() { ended <- Run(ctx, b.Conn, Options{Seed: 1}) }()
		count := func(pattern string) (n int) {
			for _, err := range b.Scan(ctx, pattern) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			return n
		}
		_, first := b.Data.LockOwner("report")
		peak := 0
		for range 24 { // four minutes
			time.Sleep(10 * time.Second)
			peak = max(peak, count("coupon:*"))
		}
		if peak < coupons {
			t.Errorf("%d coupons at most, want %d", peak, coupons)
		}
		now := b.Clock.Now()
		b.Clock.Advance(now.Truncate(time.Minute).Add(time.Minute + time.Millisecond).Sub(now))
		if n := count("coupon:" + now.Truncate(time.Minute).Add(time.Minute).UTC().Format("1504") + ":*"); n != 0 {
			t.Errorf("%d coupons are left after the full minute", n)
		}
		// Those of the latest visitors, and those of earlier ones that have not expired yet.
		if n := count("session:*"); n < visitors/3 || n > 2*visitors {
			t.Errorf("%d sessions, want %d to %d", n, visitors/3, 2*visitors)
		}
		if n := count("cart:*"); n < 10 {
			t.Errorf("%d carts", n)
		}
		if _, token := b.Data.LockOwner("report"); token <= first {
			t.Errorf("the lock has the token %d after %d", token, first)
		}
		info := b.Data.Do("DQ.INFO", "mail")
		if number(t, info, "delayed") == 0 {
			t.Errorf("no mail is delayed: %v", info)
		}
		if n := len(b.Data.Jobs("{mail}:dead")); n == 0 {
			t.Error("the mail queue has no dead letters")
		}
		top := b.Data.Do("RL.TOP")
		if len(top.Elems) == 0 || !strings.Contains(top.Elems[0].String(), "api:mallory") {
			t.Errorf("RL.TOP: %v", top)
		}
		rules := b.Data.Do("EXPIRY", "RULE", "LIST")
		if len(rules.Elems) != 1 {
			t.Fatalf("rules: %v", rules)
		}
		to, _ := rules.Elems[0].Get("stream")
		groups := b.Data.Do("XINFO", "GROUPS", to.Str)
		if len(groups.Elems) != 1 || number(t, groups.Elems[0], "lag") < 30 {
			t.Errorf("the warehouse does not lag: %v", groups)
		}
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestFillIsTheSameForOneSeed(t *testing.T) {
	var dumps [2]string
	for i := range dumps {
		b := ebbtest.Run(t)
		if err := Fill(t.Context(), b.Conn, Options{Seed: 7}); err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, k := range b.Data.Keys() {
			keys = append(keys, k+" "+b.Data.TTL(k).String())
		}
		dumps[i] = strings.Join(keys, "\n")
	}
	if dumps[0] != dumps[1] {
		t.Errorf("they differ:\n%s\n\n%s", dumps[0], dumps[1])
	}
}
