package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/demo"
	"github.com/ebbdb/ebb/internal/instance"
)

// demoOptions are the options of ebb demo.
type demoOptions struct {
	port  string // the port for clients; "": 6379 or the next free one
	http  string // the address of the console, in the form of serve's --http; "": port 9121 of loopback or the next free one
	speed float64
	seed  uint64
	lang  string
}

// demoWords holds the lines that ebb demo prints, in one language.
type demoWords struct {
	label           string // the badge of the console
	server, console string // formats for an address
	end, stopped    string
}

// demoLanguages are the languages of ebb demo --lang. Without the option the lines are in English, and the console
// uses the browser's language.
var demoLanguages = map[string]demoWords{
	"en": {label: "demo", server: "ebb demo: a server in memory at %s\n", console: "console: %s\n", end: "Ctrl-C ends it.",
		stopped: "stopping: a client sent SHUTDOWN"},
	"zh": {label: "演示", server: "ebb 演示：内存中的服务器，地址 %s\n", console: "控制台：%s\n", end: "按 Ctrl-C 结束。",
		stopped: "正在停止：有客户端发送了 SHUTDOWN"},
}

// words returns the lines in the language of the options.
func (o demoOptions) words() (demoWords, error) {
	if o.lang == "" {
		return demoLanguages["en"], nil
	}
	w, ok := demoLanguages[o.lang]
	if !ok {
		return w, fmt.Errorf("demo: the language is %q; want one of %s", o.lang, strings.Join(slices.Sorted(maps.Keys(demoLanguages)), ", "))
	}
	return w, nil
}

// console returns the URL of the console, in the language of the options.
func (o demoOptions) console(admin net.Addr) string {
	if o.lang == "" {
		return "http://" + admin.String() + "/"
	}
	return "http://" + admin.String() + "/console/?lang=" + o.lang
}

func demoCommand() *cobra.Command {
	var o demoOptions
	c := &cobra.Command{
		Use:   "demo",
		Short: "Run a server with sample data that changes, and the web console",
		Long: `Run a server in memory with the web console, and a small shop in the same process
that uses the toolkit: sessions that slide, carts whose fields expire, unpaid orders
with an expiry rule and a consumer group that lags, a rate limiter with one client
above its limit, locks with workers of which one dies each minute, a semaphore, a
mail queue with dead letters, and 50,000 coupons that expire at each full minute.

Open the printed address in a browser. Nothing is written to disk.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDemo(cmd.Context(), o, cmd.OutOrStdout())
		},
	}
	c.Flags().StringVar(&o.port, "port", "", "the TCP `port` for clients (default: 6379, or the next free one of ten)")
	c.Flags().StringVar(&o.http, "http", "", "the `address` of the web console: a port of loopback, or host:port (default: 9121, "+
		"or the next free one of ten)")
	c.Flags().Float64Var(&o.speed, "speed", 1, "factor of the shop's speed")
	c.Flags().Uint64Var(&o.seed, "seed", 1, "the seed of the random choices")
	c.Flags().StringVar(&o.lang, "lang", "", "the `language` of what it prints and of the console, en or zh (default: "+
		"English, and that of the browser)")
	return c
}

// choosePorts sets the ports that the options leave open.
func (o *demoOptions) choosePorts() error {
	if o.http == "0" {
		return errors.New("demo: --http 0 turns the console off, but the demo shows it: leave the option out for a free port")
	}
	if o.port == "" {
		port, _, err := freePort(6379)
		if err != nil {
			return fmt.Errorf("demo: %w: choose one with --port", err)
		}
		o.port = strconv.Itoa(port)
	}
	if o.http == "" {
		_, addr, err := freePort(consolePort)
		if err != nil {
			return fmt.Errorf("demo: %w: choose one with --http", err)
		}
		o.http = addr
	}
	return nil
}

// runDemo runs the server and the shop until a signal, a SHUTDOWN, or the end of ctx.
func runDemo(ctx context.Context, o demoOptions, out io.Writer) error {
	words, err := o.words()
	if err != nil {
		return err
	}
	if err := o.choosePorts(); err != nil {
		return err
	}
	cfg, err := config.Load([]string{"--port", o.port, "--save", "", "--http", o.http,
		"--http-console-label", words.label + " #2a6f97", "--notify-keyspace-events", "Ex"}, nil)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	in, err := instance.Start(ctx, instance.Options{Config: cfg, Log: log})
	if err != nil {
		return err
	}
	c := in.Conn()
	shop := demo.Options{Seed: o.seed, Speed: o.speed, Logger: log}
	if err = demo.Fill(ctx, c, shop); err == nil {
		for _, a := range in.Addrs() {
			fmt.Fprintf(out, words.server, a)
		}
		fmt.Fprintf(out, words.console, o.console(in.AdminAddr()))
		fmt.Fprintln(out, words.end)
		err = runShop(ctx, in, c, shop, func() { fmt.Fprintln(out, words.stopped) })
	}
	err = errors.Join(ignoreCancel(err), c.Close())
	over, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return errors.Join(err, in.Shutdown(over))
}

// runShop runs the shop until ctx ends or a client sends SHUTDOWN. It calls stopped in the second case.
func runShop(ctx context.Context, in *instance.Instance, c *conn.Conn, o demo.Options, stopped func()) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	result := make(chan error, 1)
	go func() { result <- demo.Run(ctx, c, o) }()
	select {
	case err := <-result:
		return err
	case <-in.Asked():
		stopped()
		end()
		return <-result
	}
}

// ignoreCancel returns nil for the error of a cancelled context.
func ignoreCancel(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
