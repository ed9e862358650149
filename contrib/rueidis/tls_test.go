package rueidisebb_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/redis/rueidis"

	rueidisebb "github.com/ebbdb/ebb/contrib/rueidis"

	"github.com/ebbdb/ebb"
)

func TestEveryConnectionSpeaksTLS(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate
	defer web.Close()
	vouches := web.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx := testContext(t)
	data, err := ebb.Open(ctx, "mem://")
	must(t, err)
	serving, end := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() {
		served <- ebb.EngineOf(data).Serve(serving, tls.NewListener(ln, &tls.Config{Certificates: web.TLS.Certificates}))
	}()
	defer func() {
		end()
		must(t, <-served)
		must(t, data.Close())
	}()

	option, err := rueidis.ParseURL("rediss://" + ln.Addr().String())
	must(t, err)
	_, err = rueidisebb.Open(ctx, option)
	var unknown x509.UnknownAuthorityError
	if !errors.Is(err, ebb.ErrUnavailable) || !errors.As(err, &unknown) {
		t.Errorf("a certificate of an unknown authority: %v", err)
	}
	option.TLSConfig.RootCAs = vouches
	c, err := rueidisebb.Open(ctx, option)
	must(t, err)
	defer func() { must(t, c.Close()) }()
	must(t, c.Set(ctx, "k", "v"))
	if s, err := data.Get(ctx, "k"); s != "v" || err != nil {
		t.Errorf("%q, %v", s, err)
	}
	// These have connections of their own.
	s, err := c.Subscribe(ctx, "news")
	must(t, err)
	if n, err := data.Publish(ctx, "news", "x"); n != 1 || err != nil {
		t.Errorf("publish: %d, %v", n, err)
	}
	if m, err := s.Next(ctx); m.Payload != "x" || err != nil {
		t.Errorf("%+v, %v", m, err)
	}
	_, err = data.Do(ctx, "RPUSH", "jobs", "job")
	must(t, err)
	if v, err := c.Block(ctx, "BLPOP", "jobs", 0); err != nil || len(v.Elems) != 2 {
		t.Errorf("BLPOP: %v, %v", v, err)
	}
	must(t, c.Watch(ctx, func(*ebb.Watched) error { return nil }, "k"))
}
