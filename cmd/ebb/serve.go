package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/durable"
	"github.com/ebbdb/ebb/internal/instance"
	"github.com/ebbdb/ebb/internal/session"
)

// grace is the time for which a stopping server waits until replies are written. It is well below the ten seconds
// after which supervisors kill a program.
const grace = 5 * time.Second

// serveHelp describes ebb serve.
const serveHelp = `Run a server that speaks the Redis protocol, by default on 127.0.0.1:6379 and
in memory. With --dir the data is kept in that directory: changes are appended to
files and fsynced every second (--appendfsync always: before the reply is sent).
--appendonly yes or --save alone keep it in the working directory, as redis-server does.

A configuration file has the syntax of redis.conf; "-" reads it from standard
input. Every directive can also be given as an option, and wins over the file:

  ebb serve --port 7000 --requirepass secret
  ebb serve /etc/redis/redis.conf --maxmemory 2gb
  ebb serve --dir data
  ebb serve --replicaof "10.0.0.5 6379"     # follow a server; REPLICAOF NO ONE takes over

--directives, as the first option, prints a list of them with their defaults.

An environment variable with the directive's name in capitals sets it too, between the
file and the options: EBB_REQUIREPASS=secret, EBB_MAXMEMORY=70%. With _FILE at the end it
names a file that holds the value (EBB_REQUIREPASS_FILE=/run/secrets/ebb). EBB_ARGS
has more options.

--version, or -v, as the first option prints the version of Redis that the server
reports and ebb's own, in one line as redis-server does.

--peers "HOST:PORT HOST:PORT ..." names the servers that replicate one master, as in a
StatefulSet, with the same text for each; one of the hosts is this machine's name. A server that
starts asks the others and follows their master; the first of the list is the first master. It
keeps its last role in the file ebb.role of the data's directory. Nothing replaces a master that
fails: --group does.

--group HOST:PORT,HOST:PORT,HOST:PORT makes the server a node of a group, which replaces a master
that fails. An acknowledged write survives while at most min-sync-replicas servers lose their data.
A group is there to be tried out, not for production. The list has the group port of each node, and
is the same on all; so are masterauth and requirepass:

  ebb serve --group a:7379,b:7379,c:7379 --min-sync-replicas 1 --dir /var/lib/ebb \
      --bind "* -::*" --masterauth secret --requirepass secret

One of three nodes may be ebb witness, which has no data. Clients ask any node at its
sentinel-port, 26379, for the master of the name ebb. ebb group status shows the state.

--console serves the web console at 127.0.0.1:9121, or at the next free port of ten; it is
short for --http 127.0.0.1:9121.

SIGHUP makes the server read the files of TLS and the aclfile again (systemctl reload ebb).

--accept-clock yes starts although the system's clock is an hour or more behind the
time in the files.`

func serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "serve [/path/to/redis.conf | -] [--directive value ...]",
		Short:              "Run a server that speaks the Redis protocol",
		Long:               serveHelp,
		DisableFlagParsing: true,
		ValidArgsFunction:  completeDirectives,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && (args[0] == "-h" || args[0] == "--help") {
				return cmd.Help()
			}
			if len(args) > 0 && (args[0] == "-v" || args[0] == "--version") {
				fmt.Fprintln(cmd.OutOrStdout(), serverVersion())
				return nil
			}
			if len(args) == 1 && args[0] == "--directives" {
				return printDirectives(cmd.OutOrStdout())
			}
			return serve(cmd.Context(), args, os.Stdin, cmd.OutOrStdout())
		},
	}
}

// serve runs a server until a signal or SHUTDOWN ends it. With daemonize yes, a child process runs the server, and
// serve returns when the child listens.
func serve(ctx context.Context, args []string, stdin io.Reader, out io.Writer) error {
	parent := parentOf()
	listens := func(error) {}
	if parent != nil {
		listens = func(err error) {
			report := daemonReady
			if err != nil {
				report = err.Error()
			}
			_, _ = io.WriteString(parent, report) // the parent may have ended
			_ = parent.Close()
			listens = func(error) {}
		}
	}
	err := serveHere(ctx, args, stdin, out, parent != nil, func() { listens(nil) })
	listens(err)
	return err
}

// serveHere runs the server, or starts a daemon that does unless daemon reports that this process is one. It calls
// listens when the server listens.
func serveHere(ctx context.Context, args []string, stdin io.Reader, out io.Writer, daemon bool, listens func()) error {
	p, err := configure(args, stdin)
	if err != nil {
		return err
	}
	if p.cfg.Bool("daemonize") && !daemon && !supervised(p.cfg) {
		return daemonize(p.stdin.Bytes())
	}
	if p.label, err = podLabelFrom(os.Getenv, accountDir); err != nil {
		return err
	}
	if err := p.followMaster(ctx); err != nil {
		return err
	}
	closeLog, err := p.openLog(out)
	if err != nil {
		return err
	}
	defer closeLog()
	return p.run(ctx, listens)
}

// process is the configuration of a server's process, and its outputs.
type process struct {
	args   []string // the directives of the command line and of the environment
	accept bool     // --accept-clock yes
	peers  *peers   // --peers; nil: none
	cfg    *config.Set
	stdin  bytes.Buffer // the bytes that configure has read
	label  *podLabel    // for Kubernetes; nil: none
	// misspelt maps variables of the environment that name no directive to a similar variable, or "".
	misspelt map[string]string

	out       io.Writer // receives the lines about start and end
	log       *slog.Logger
	level     slog.LevelVar // set by the server, as loglevel requires
	removePID func()        // removes the pidfile
}

// configure reads the options, the environment and the configuration file.
func configure(args []string, stdin io.Reader) (*process, error) {
	p := &process{removePID: func() {}}
	args, misspelt, err := withEnvironment(args, os.Environ())
	if err != nil {
		return nil, err
	}
	p.accept, args = acceptClock(args) // EBB_ARGS may contain it
	args, p.misspelt = lastDirectory(args), misspelt
	args, err = withConsole(args)
	if err != nil {
		return nil, err
	}
	host, _ := os.Hostname()
	if p.peers, p.args, err = takePeers(args, host); err != nil {
		return nil, err
	}
	if err := makeDirectory(p.args); err != nil {
		return nil, err
	}
	if stdin != nil {
		stdin = io.TeeReader(stdin, &p.stdin)
	}
	p.cfg, err = config.Load(p.args, stdin)
	return p, err
}

// followMaster sets replicaof to the master of the peers. It does nothing if there is none or replicaof is set.
func (p *process) followMaster(ctx context.Context) error {
	if p.peers == nil || p.cfg.String("replicaof") != "" {
		return nil
	}
	master, err := p.peers.master(ctx, p.cfg)
	if err != nil || master == "" {
		return err
	}
	host, port, err := net.SplitHostPort(master)
	if err != nil {
		return fmt.Errorf("--peers: the master %q: %w", master, err)
	}
	p.cfg, err = config.Load(append(p.args, "--replicaof", host+" "+port), bytes.NewReader(p.stdin.Bytes()))
	return err
}

// openLog opens the log. out receives the lines about start and end, unless there is a log file. closeLog closes the
// file.
func (p *process) openLog(out io.Writer) (closeLog func(), err error) {
	closeLog = func() {}
	p.out = out
	logs := io.Writer(os.Stderr)
	if name := p.cfg.File("logfile"); name != "" {
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, fmt.Errorf("cannot open the log file: %w", err)
		}
		closeLog = func() { _ = f.Close() }
		logs, p.out = f, f
	}
	if l := p.cfg.String("loglevel"); l == "warning" || l == "nothing" {
		p.out = io.Discard // the start-up lines have level notice, as in Redis
	}
	p.log = slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: &p.level}))
	for variable, directive := range p.misspelt {
		if directive == "" {
			p.log.Warn("an environment variable names no directive", "variable", variable)
			continue
		}
		p.log.Warn("an environment variable names no directive", "variable", variable, "similar", directive)
	}
	return closeLog, nil
}

// run runs the server until a signal or SHUTDOWN ends it.
func (p *process) run(ctx context.Context, listens func()) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	hangups := make(chan os.Signal, 1) // the end of the terminal does not end the server, as in Redis
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	paceCollector()
	manager := managed(p.cfg, p.log)
	defer func() { p.removePID() }()
	in, interrupted, err := p.start(ctx, manager, listens)
	defer manager.stopTicker()
	switch {
	case interrupted:
		fmt.Fprintln(p.out, "stopping: a signal ended the load; the files are unchanged")
		return nil
	case err != nil:
		return err
	}
	ready(p.out, p.cfg, in)
	manager.ready(keysIn(in.DB()), in.Alive)
	stopRole := func() {}
	if p.peers != nil {
		var changed func(context.Context, role) error
		if p.label != nil {
			changed = p.label.set
		}
		stopRole = p.peers.keep(p.cfg, in.Conn(), changed, p.log)
	}
	reload := func() { manager.reloads(func() error { return reloadFiles(in, p.log) }, in.Alive) }
	await(ctx, signals, hangups, reload, in, p.cfg, p.out, p.log)
	stopRole()
	manager.stops()
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return in.Shutdown(ctx)
}

// start starts the server, which listens before it has loaded the data. interrupted reports that a signal ended the
// load.
func (p *process) start(ctx context.Context, manager *manager, listens func()) (in *instance.Instance, interrupted bool, err error) {
	loading, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	listening := false
	joins, err := p.joins()
	if err != nil {
		return nil, false, err
	}
	in, err = instance.Start(loading, instance.Options{
		Config: p.cfg, Log: p.log, Level: &p.level, AcceptClock: p.accept, Pages: profiles(p.cfg), Group: joins,
		Bound: func() { p.removePID = writePID(p.cfg.File("pidfile"), p.log) },
		Listening: func(in *instance.Instance) {
			listening = true
			listens()
			manager.loads(in.Service().Keeper().Info)
			greet(p.out, p.cfg, in)
		},
	})
	return in, err != nil && listening && loading.Err() != nil, err
}

// writePID writes the process ID to the file of the directive pidfile, and returns a function that removes the file.
// With "" it does nothing. If the file cannot be written, it logs that, and the server starts anyway, as Redis does.
func writePID(name string, log *slog.Logger) (remove func()) {
	if name == "" {
		return func() {}
	}
	if err := os.WriteFile(name, fmt.Appendf(nil, "%d\n", os.Getpid()), 0o644); err != nil {
		log.Warn("cannot write the pidfile", "error", err)
		return func() {}
	}
	return func() { _ = os.Remove(name) } // another program may have removed it
}

// reloadFiles makes the server read the files of TLS and the aclfile again, and logs the result.
func reloadFiles(in *instance.Instance, log *slog.Logger) error {
	err := in.Reload()
	if err != nil {
		log.Error("SIGHUP: cannot reload all files", "error", err)
	} else {
		log.Info("SIGHUP: the TLS files and the aclfile are reloaded")
	}
	return err
}

// await returns when the server must end: a client has sent SHUTDOWN, or a signal has arrived and the data is saved.
// If the data cannot be saved after a signal, the server continues, and a further SIGINT ends it without saving.
// Meanwhile await calls reload at each SIGHUP.
func await(ctx context.Context, signals, hangups <-chan os.Signal, reload func(), in *instance.Instance, cfg *config.Set,
	out io.Writer, log *slog.Logger) {
	o := shutdownOptions(cfg, os.Interrupt)
	for tries := 0; ; tries++ {
		select {
		case <-in.Asked():
			fmt.Fprintln(out, "stopping: a client sent SHUTDOWN")
			return
		case <-ctx.Done():
			o.Force = true
		case <-hangups:
			reload()
			tries-- // not an attempt to end
			continue
		case sig := <-signals:
			o = shutdownOptions(cfg, sig)
			o.Force = o.Force || tries > 0 && sig == os.Interrupt
		}
		fmt.Fprintln(out, "stopping: sending the last replies")
		err := untilInterrupt(signals, func(ctx context.Context) error { return in.Prepare(ctx, o) })
		if err == nil {
			return
		}
		log.Error("cannot save the data: the server continues; SIGINT (Ctrl-C) ends it without saving", "err", err)
	}
}

// untilInterrupt runs prepare, which may take as long as a snapshot, or block on a disk that does not respond. A
// SIGINT cancels prepare, and the server ends without it. A second SIGTERM does not cancel it, because timeout(1) and
// other programs send SIGTERM twice at once.
func untilInterrupt(signals <-chan os.Signal, prepare func(context.Context) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var err error
	done := make(chan struct{})
	go func() { // both returns below wait for it
		defer close(done)
		err = prepare(ctx)
	}()
	for {
		select {
		case <-done:
			return err
		case sig := <-signals:
			if sig == os.Interrupt {
				cancel()
				<-done
				return nil
			}
		}
	}
}

// shutdownOptions returns the options of shutdown-on-sigint or shutdown-on-sigterm for a signal.
func shutdownOptions(cfg *config.Set, sig os.Signal) (o session.ShutdownOptions) {
	name := "shutdown-on-sigterm"
	if sig == os.Interrupt {
		name = "shutdown-on-sigint"
	}
	for _, word := range strings.Fields(cfg.String(name)) {
		switch word {
		case "save":
			o.Mode = durable.ShutdownSave
		case "nosave":
			o.Mode = durable.ShutdownNoSave
		case "now":
			o.Now = true
		case "force":
			o.Force = true
		}
	}
	return o
}

// greet prints the addresses and the settings of the server.
func greet(out io.Writer, cfg *config.Set, in *instance.Instance) {
	var addrs []string
	for _, a := range in.Addrs() {
		addrs = append(addrs, a.String())
	}
	fmt.Fprintf(out, "ebb %s serves %s (pid %d)\n", version(), strings.Join(addrs, ", "), os.Getpid())
	if dir := in.Service().Keeper().Dir(); dir == "" {
		fmt.Fprintf(out, "data is kept in memory: %d shards, %d network loops; it is gone when the server stops "+
			"(--dir DIRECTORY or --appendonly yes keeps it)\n", in.DB().Shards(), in.Loops())
	} else {
		fmt.Fprintf(out, "data is kept in %s (%s): %d shards, %d network loops\n", dir, storageMode(cfg), in.DB().Shards(), in.Loops())
	}
	if cfg.RequirePass() == "" && cfg.ProtectedMode() {
		fmt.Fprintln(out, "no password is set: only clients of this machine are served (protected-mode yes)")
	}
	if cfg.RequirePass() == "" && !cfg.ProtectedMode() && cfg.String("aclfile") == "" && !loopbackOnly(in.Addrs()) {
		fmt.Fprintln(out, "WARNING: no password is set and protected-mode is off: every client that reaches an "+
			"address above may read and change all data (--requirepass, EBB_REQUIREPASS or EBB_REQUIREPASS_FILE sets a password)")
	}
	first := true
	for _, g := range cfg.Ignored() {
		if g.AtDefault {
			continue
		}
		if first {
			fmt.Fprintln(out, "these directives are accepted and have no effect:")
			first = false
		}
		fmt.Fprintf(out, "  %-24s %s (%s)\n", g.Name, g.Why, g.Where)
	}
}

// ready prints that the data is loaded, a command to try, and the addresses of metrics and console.
func ready(out io.Writer, cfg *config.Set, in *instance.Instance) {
	if k := in.Service().Keeper().Info(); k.LoadedKeys > 0 || k.LoadMillis > 1000 {
		fmt.Fprintf(out, "loaded in %.1f s\n", float64(k.LoadMillis)/1000)
	}
	kinds := map[string]bool{}
	for _, a := range in.Addrs() {
		// Programs that start servers for tests wait for this line, which is Redis's.
		if kind := a.Network(); !kinds[kind] {
			kinds[kind] = true
			fmt.Fprintf(out, "Ready to accept connections %s\n", kind)
		}
	}
	if len(in.Addrs()) == 0 {
		fmt.Fprintln(out, "no client can connect: set --port with --bind, --tls-port or --unixsocket")
	} else {
		fmt.Fprintf(out, "try it:  ebb cli%s SET greeting hello PX 1500\n", clientFlags(cfg, in.Addrs()))
	}
	if a := in.AdminAddr(); a != nil {
		scheme := "http"
		if cfg.Bool("http-tls") {
			scheme = "https"
		}
		fmt.Fprintf(out, "metrics: %s://%s/metrics\n", scheme, a)
		if cfg.String("http-console") != "no" {
			fmt.Fprintf(out, "console: %s://%s/\n", scheme, a)
		}
	}
}

// storageMode describes how the data is saved.
func storageMode(cfg *config.Set) string {
	var how []string
	if cfg.Bool("appendonly") {
		how = append(how, "append-only files, appendfsync "+cfg.String("appendfsync"))
	}
	if s := cfg.String("save"); s != "" {
		how = append(how, "save "+s)
	}
	if len(how) == 0 {
		return "saved by SAVE and BGSAVE only"
	}
	return strings.Join(how, "; ")
}

// makeDirectory creates the directory of --dir, unless there is a configuration file: then the directory must exist,
// as for Redis.
func makeDirectory(args []string) error {
	if len(args) == 0 || !strings.HasPrefix(args[0], "--") || slices.Contains(args, "-") {
		return nil
	}
	for i := 0; i+1 < len(args); i++ {
		if args[i] == "--dir" {
			return disk.OS().MkdirAll(args[i+1])
		}
	}
	return nil
}

// lastDirectory removes each --dir that a later one overrides, so that no directory is created for it.
func lastDirectory(args []string) []string {
	for {
		at := slices.Index(args, "--dir")
		if at < 0 || at+2 > len(args) || !slices.Contains(args[at+2:], "--dir") {
			return args
		}
		args = slices.Delete(slices.Clone(args), at, at+2)
	}
}

// directivesOnly removes the options of `ebb serve` that are not directives.
func directivesOnly(args []string) []string {
	var rest []string
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "--console":
		case "--peers", "--accept-clock":
			i++
		default:
			rest = append(rest, args[i])
		}
	}
	return rest
}

// withEnvironment inserts the options of the environment before those of the command line, which override them, and
// after the name of a configuration file, which they override.
func withEnvironment(args, environ []string) (all []string, misspelt map[string]string, err error) {
	options, misspelt, err := config.Environ(environ)
	if err != nil {
		return nil, nil, err
	}
	at := 0
	if len(args) > 0 && (args[0] == "-" || !strings.HasPrefix(args[0], "-")) {
		at = 1
	}
	return slices.Insert(slices.Clone(args), at, options...), misspelt, nil
}

// acceptClock removes --accept-clock, which is not a directive, from the arguments. The last one takes effect.
func acceptClock(args []string) (accept bool, rest []string) {
	for i := 0; i+1 < len(args); {
		if args[i] == "--accept-clock" {
			accept, args = args[i+1] == "yes", append(args[:i:i], args[i+2:]...)
			continue
		}
		i++
	}
	return accept, args
}

// consolePort is the default port of the console.
const consolePort = 9121

// portsTried is the number of ports that freePort tries.
const portsTried = 10

// freePort returns the first free port of loopback from first on, and its address.
func freePort(first int) (port int, addr string, err error) {
	for port = first; port < first+portsTried; port++ {
		addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if ln, err := net.Listen("tcp", addr); err == nil {
			return port, addr, ln.Close()
		}
	}
	return 0, "", fmt.Errorf("no port from %d to %d is free", first, first+portsTried-1)
}

// withConsole replaces --console, which is not a directive, by --http with a free port. If there is an --http, it
// only removes --console.
func withConsole(args []string) ([]string, error) {
	at := slices.Index(args, "--console")
	if at < 0 {
		return args, nil
	}
	args = slices.Delete(slices.Clone(args), at, at+1)
	if slices.Contains(args, "--http") {
		return args, nil
	}
	_, addr, err := freePort(consolePort)
	if err != nil {
		return nil, fmt.Errorf("--console: %w: choose one with --http 127.0.0.1:PORT", err)
	}
	return append(args, "--http", addr), nil
}

// loopbackOnly reports whether only this machine reaches the addresses.
func loopbackOnly(addrs []net.Addr) bool {
	for _, a := range addrs {
		if tcp, ok := a.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
			return false
		}
	}
	return true
}

// hostFlag returns -h with the host of an address, or "" if ebb cli reaches it without: 127.0.0.1, or an unspecified
// address.
func hostFlag(a net.Addr) string {
	host, _, err := net.SplitHostPort(a.String())
	if ip := net.ParseIP(host); err == nil && a.Network() == "tcp" && (host == "127.0.0.1" || ip.IsUnspecified()) {
		return ""
	}
	return " -h " + host
}

// clientFlags returns the flags that ebb cli needs to reach the server. It chooses the first address that ebb cli
// reaches over TCP without -h, or else the first one. The flags include --askpass if the server has a password.
func clientFlags(cfg *config.Set, addrs []net.Addr) (flags string) {
	at := addrs[0]
	if i := slices.IndexFunc(addrs, func(a net.Addr) bool { return hostFlag(a) == "" }); i >= 0 {
		at = addrs[i]
	}
	if at.Network() == "unix" {
		flags = " -s " + cfg.String("unixsocket")
	} else {
		if at.Network() == "tls" {
			flags = " --tls"
		}
		flags += hostFlag(at)
		if _, port, _ := net.SplitHostPort(at.String()); port != "6379" {
			flags += " -p " + port
		}
	}
	if cfg.String("requirepass") != "" {
		flags += " --askpass"
	}
	return flags
}
