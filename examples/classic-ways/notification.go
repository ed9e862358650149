package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ebbdb/ebb/expset"
)

const (
	orders = 5                     // orders that expire in each half of the trial
	brief  = 20 * time.Millisecond // their TTL
)

// notification is the reaction to expired orders by keyspace notifications. The server sends them to the clients that listen
// at that moment, and keeps none.
var notification = classic{
	title: fmt.Sprintf("keyspace notifications: %d orders expire, %d of them while the listener restarts", 2*orders, orders),
	right: fmt.Sprint(2 * orders),
	rows:  []row{{"expirations that the listener gets", heardByNotification}, {"expset.OnExpired", heardByListener}},
}

func heardByNotification(ctx context.Context, b *bench) (heard int64, err error) {
	restore, err := b.notifications(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, restore()) }()
	// listen writes orders and counts the notifications until that of the last key has come.
	listen := func(names ...string) error {
		sub, err := b.c.PSubscribe(ctx, "__keyevent@*__:expired")
		if err != nil {
			return err
		}
		defer sub.Close()
		left := map[string]bool{}
		for _, name := range names {
			left[b.key(name)] = true
			if err := b.c.SetTTL(ctx, b.key(name), "unpaid", brief); err != nil {
				return err
			}
		}
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		for len(left) > 0 {
			m, err := sub.Next(ctx)
			if err != nil {
				return err
			}
			if strings.HasPrefix(m.Payload, b.key("order-")) {
				heard++
			}
			delete(left, m.Payload)
		}
		return nil
	}
	if err := listen(names(0)...); err != nil {
		return heard, err
	}
	var away []string
	for _, name := range names(orders) {
		away = append(away, b.key(name))
		if err := b.c.SetTTL(ctx, b.key(name), "unpaid", brief); err != nil {
			return heard, err
		}
	}
	if err := b.gone(ctx, away...); err != nil {
		return heard, err
	}
	return heard, listen("another") // the listener is back
}

// names returns the names of some orders.
func names(from int) (all []string) {
	for i := range orders {
		all = append(all, fmt.Sprint("order-", from+i))
	}
	return all
}

// notifications turns the notifications of expired keys on. The function that it returns restores the setting.
func (b *bench) notifications(ctx context.Context) (restore func() error, err error) {
	const setting = "notify-keyspace-events"
	v, err := b.c.Do(ctx, "CONFIG", "GET", setting)
	if err != nil {
		return nil, err
	}
	was, _ := v.Get(setting)
	_, err = b.c.Do(ctx, "CONFIG", "SET", setting, "Ex")
	return func() error {
		_, err := b.c.Do(context.WithoutCancel(ctx), "CONFIG", "SET", setting, was.String())
		return err
	}, err
}

func heardByListener(ctx context.Context, b *bench) (int64, error) {
	set, err := expset.New(b.c, b.key("unpaid"), expset.Options[string]{Events: true})
	if err != nil {
		return 0, err
	}
	heard := map[string]bool{} // delivery is at least once
	listen := func(until int) error {
		life, stop := context.WithTimeout(ctx, 20*time.Second)
		defer stop()
		err := set.OnExpired(life, "warehouse", func(_ context.Context, e expset.Expired[string]) error {
			if heard[e.Member] = true; len(heard) == until {
				stop()
			}
			return e.Err
		}, expset.ListenOptions{Consumer: "warehouse-1"})
		if errors.Is(err, context.Canceled) && ctx.Err() == nil {
			err = nil
		}
		return err
	}
	if _, err := set.Add(ctx, brief, names(0)...); err != nil {
		return 0, err
	}
	if err := listen(orders); err != nil {
		return int64(len(heard)), err
	}
	if _, err := set.Add(ctx, brief, names(orders)...); err != nil {
		return 0, err
	}
	err = until(ctx, "the orders expire", func() (bool, error) {
		n, err := set.Len(ctx)
		return n == 0, err
	})
	if err == nil {
		err = listen(2 * orders) // the listener is back
	}
	return int64(len(heard)), errors.Join(err, set.Delete(context.WithoutCancel(ctx)))
}
