package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/ebbdb/ebb/internal/cli"
	"github.com/ebbdb/ebb/internal/loadgen"
	"github.com/ebbdb/ebb/internal/serverurl"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// benchmark holds the flags of one call of ebb bench.
type benchmark struct {
	cfg              loadgen.Config
	server           func() (loadgen.Target, error)
	tests            string
	csv, json, quiet bool
}

func benchCommand() *cobra.Command {
	var b benchmark
	cmd := &cobra.Command{
		Use:   "bench [flags] [command [arg ...]]",
		Short: "Measure a server's throughput and latency",
		Long: `Measure throughput and latency of any server that speaks the Redis protocol.

Without a command, the tests of -t run one after the other. A command is
repeated as it is, except that __rand_int__ becomes twelve random digits,
__key__ a random key, and __data__ --size bytes.

Tests: ` + strings.Join(loadgen.Names(), ", "),
		Example: `  ebb bench -c 50 -P 32 -d 5s -t set,get
  ebb bench --rate 20000 -d 10s GET __key__
  ebb bench storm -n 1000000`,
		Args: cobra.ArbitraryArgs,
		RunE: b.run,
	}
	b.flags(cmd.Flags())
	_ = cmd.RegisterFlagCompletionFunc("tests", completeTests) // the flag exists and has no other completion
	for _, m := range measurements() {
		cmd.AddCommand(m.command())
	}
	return cmd
}

func (b *benchmark) flags(f *pflag.FlagSet) {
	f.SetInterspersed(false) // flags after the command belong to the command
	b.server = serverFlags(f)
	f.StringVarP(&b.tests, "tests", "t", loadgen.DefaultTests, "tests to run")
	f.IntVarP(&b.cfg.Clients, "clients", "c", 50, "connections")
	f.IntVarP(&b.cfg.Pipeline, "pipeline", "P", 1, "requests in flight per connection")
	f.IntVarP(&b.cfg.Requests, "requests", "n", 0, "requests in each test (default: until -d is over)")
	f.DurationVarP(&b.cfg.Duration, "duration", "d", 0, "length of each test without -n (default 3s)")
	f.IntVar(&b.cfg.Size, "size", 3, "bytes of __data__")
	f.IntVarP(&b.cfg.Keyspace, "keyspace", "r", 100_000, "number of different values of __rand_int__ and __key__")
	f.Float64Var(&b.cfg.Rate, "rate", 0,
		"requests per second, sent on schedule even if the server is slow; latency counts from the scheduled time")
	f.Uint64Var(&b.cfg.Seed, "seed", 1, "seed of the random numbers")
	f.IntVar(&b.cfg.PID, "pid", 0, "process id of the server, to measure its CPU")
	f.BoolVar(&b.csv, "csv", false, "print CSV")
	f.BoolVar(&b.json, "json", false, "print JSON")
	f.BoolVarP(&b.quiet, "quiet", "q", false, "no progress line")
}

// run measures the command in args, or the tests of -t if args is empty.
func (b *benchmark) run(cmd *cobra.Command, args []string) (err error) {
	list := []loadgen.Test{loadgen.Custom(args)}
	if len(args) == 0 {
		if list, err = loadgen.Tests(b.tests); err != nil {
			return err
		}
	}
	report := loadgen.NewTable(cmd.OutOrStdout())
	switch {
	case b.csv:
		report = loadgen.NewCSV(cmd.OutOrStdout())
	case b.json:
		report = loadgen.NewJSON(cmd.OutOrStdout())
	}
	if b.cfg.Target, err = b.server(); err != nil {
		return err
	}
	b.cfg.Progress = progress(b.quiet)
	return interruptible(cmd, func(ctx context.Context) error {
		for _, test := range list {
			result, err := loadgen.Run(ctx, b.cfg, test)
			if err != nil {
				return err
			}
			report.Row(result)
		}
		return report.End()
	})
}

// serverFlags adds the flags that name a server, and returns a function that reads them.
func serverFlags(f *pflag.FlagSet) func() (loadgen.Target, error) {
	host := f.StringP("host", "h", "127.0.0.1", "host")
	port := f.IntP("port", "p", 6379, "port")
	socket := f.StringP("socket", "s", "", "unix socket (overrides host and port)")
	url := f.StringP("url", "u", "", "URL of the server: redis://user:password@host:port/db, rediss://, unix:///path (overrides the others)")
	user := f.String("user", "", "user name")
	pass := f.StringP("pass", "a", "", "password (or the environment variable REDISCLI_AUTH)")
	db := f.Int("db", 0, "database number")
	secure := f.Bool("tls", false, "connect with TLS")
	insecure := f.Bool("insecure", false, "with --tls: accept any certificate")
	cacert := f.String("cacert", "", "with --tls: file of the certificate authority")
	f.Bool("help", false, "help for this command") // without the shorthand -h, which --host uses
	return func() (t loadgen.Target, err error) {
		t = loadgen.Target{Addr: net.JoinHostPort(*host, strconv.Itoa(*port)), User: *user, Password: *pass, DB: *db}
		if *socket != "" {
			t.Network, t.Addr = "unix", *socket
		}
		host, secure, insecure := *host, *secure, *insecure
		if *url != "" {
			s, err := serverurl.Parse(*url)
			if err != nil {
				return t, fmt.Errorf("--url: %w", err)
			}
			if t.Network, t.Addr = "", net.JoinHostPort(cmp.Or(s.Host, host), cmp.Or(s.Port, strconv.Itoa(*port))); s.Socket != "" {
				t.Network, t.Addr = "unix", s.Socket
			}
			t.User, t.Password = cmp.Or(s.User, t.User), cmp.Or(s.Password, t.Password)
			if s.HaveDB {
				t.DB = s.DB
			}
			host, secure = cmp.Or(s.Host, host), secure || s.TLS
			insecure = insecure || s.Insecure()
		}
		if t.Password == "" {
			t.Password, t.Optional = os.Getenv("REDISCLI_AUTH"), true // like redis-cli
		}
		if secure {
			t.TLS, err = tlsConfig(host, *cacert, insecure)
		}
		return t, err
	}
}

func tlsConfig(host, cacert string, insecure bool) (*tls.Config, error) {
	cfg := &tls.Config{ServerName: host, InsecureSkipVerify: insecure}
	if cacert == "" {
		return cfg, nil
	}
	pem, err := os.ReadFile(cacert)
	if err != nil {
		return nil, err
	}
	cfg.RootCAs = x509.NewCertPool()
	if !cfg.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("the file %s has no certificate", cacert)
	}
	return cfg, nil
}

// progress returns the writer of progress lines: standard error if it is a terminal, otherwise nil.
func progress(quiet bool) io.Writer {
	if quiet || !cli.IsTerminal(os.Stderr) {
		return nil
	}
	return os.Stderr
}

// interruptible runs a measurement or a migration that Ctrl-C, SIGTERM and SIGHUP can end without an error message.
func interruptible(cmd *cobra.Command, run func(context.Context) error) error {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // the signal of a session's end; nohup ignores it, and the program continues
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), ends...)
	defer stop()
	err := run(ctx)
	if errors.Is(err, context.Canceled) {
		return exitStatus(130) // the status that a shell gives an interrupted program
	}
	return err
}
