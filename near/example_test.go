package near_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/near"
)

func Example() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	drivers, err := near.New(c, "drivers")
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range []struct {
		name     string
		lon, lat float64
	}{{"ann", 13.3777, 52.5163}, {"bob", 13.4094, 52.5208}, {"eve", 13.2955, 52.5208}} {
		if err := drivers.Place(ctx, d.name, d.lon, d.lat, time.Minute); err != nil {
			log.Fatal(err)
		}
	}
	found, err := drivers.Nearest(ctx, 13.3889, 52.5170, 2, 5*near.Kilometer)
	for _, f := range found {
		fmt.Println(f.Member, f.Distance)
	}
	fmt.Println(err)
	// Output:
	// ann 762 m
	// bob 1.5 km
	// <nil>
}
