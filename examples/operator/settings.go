package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/leakguard/leakguard/examples/operator/apiserver"
	"github.com/leakguard/leakguard/examples/traps"
	"github.com/leakguard/leakguard/leakguard"
)

// defaultMetrics is taken when it is free, and another port when it is not.
const defaultMetrics = "127.0.0.1:8080"

// The values of --expect.
const (
	expectFinding = "finding"
	expectSilence = "silence"
	expectListed  = "listed"
	expectNotice  = "notice"
	expectEach    = "each"
	expectQuiet   = "quiet"
)

// settings are what the flags say.
type settings struct {
	api         apiserver.Kind
	leak        string
	leaks       []*leak // none for --leak=none
	twin        bool
	list        bool
	json        bool
	verbose     bool
	leaderElect bool
	namespace   string
	duration    time.Duration
	scale       float64
	objects     int
	untilFound  bool
	peers       bool
	maxPause    time.Duration
	expect      string
	metrics     string
	outage      time.Duration
	restart     time.Duration
}

func (c *settings) flags() (set *flag.FlagSet, api *string) {
	set = flag.NewFlagSet("operator", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	api = set.String("api", string(apiserver.Auto), "where the API comes from: `auto`, memory, envtest or kubeconfig; auto is $KUBECONFIG, else $KUBEBUILDER_ASSETS, else memory")
	set.StringVar(&c.leak, "leak", "reconcile-goroutine", "the trap that controller \"leaky\" runs, see --list; `none` for no leak; several, with commas between them, get a controller \"leaky-NAME\" each")
	set.BoolVar(&c.twin, "twin", false, "run the clean twins of the traps")
	set.BoolVar(&c.list, "list", false, "list the traps and exit")
	set.BoolVar(&c.json, "json", false, "print one JSON document instead of text")
	set.BoolVar(&c.verbose, "verbose", false, "show the operator's log")
	set.BoolVar(&c.leaderElect, "leader-elect", false, "take part in leader election")
	set.StringVar(&c.namespace, "namespace", "default", "where its Apps and its lease are: operators that share a cluster and not their work need one each; it is made when it is not there")
	set.DurationVar(&c.duration, "duration", 90*time.Second, "how long to run; 0 means until interrupted")
	set.Float64Var(&c.scale, "scale", 0.1, "multiplies all of leakguard's intervals; 1 is what the library does by default")
	set.IntVar(&c.objects, "objects", 0, "how many Apps more are all created, then all updated, then all deleted, once")
	set.StringVar(&c.expect, "expect", "", "fail unless leakguard says this: `finding` (the trap's own, firing, and nothing else), listed (the trap's own, not firing), notice (a remark about it), each (of each trap what --list says, of a twin nothing, and nothing else), silence (nothing pending or firing, samples and reconciles in time), or quiet (silence, but for the reconciles, which a standby has none of)")
	set.BoolVar(&c.untilFound, "until-found", false, "end as soon as leakguard has said what --expect=finding or each asks for, of which one alarm must be a part")
	set.DurationVar(&c.maxPause, "max-pause", leakguard.DefaultPause, "how long leakguard may stop the world for one dump; negative means no bound, for machines that are busy with other things and processes that leak many things at once")
	set.BoolVar(&c.peers, "peers", false, "at the end ask goleak and the runtime's goroutineleak profile about each trap too")
	set.StringVar(&c.metrics, "metrics-bind-address", defaultMetrics, "where to serve metrics and the debug page; 0 means nowhere; the default gives way when it is in use")
	set.DurationVar(&c.outage, "api-outage", 0, "take the API server away for so long, once, after a sixth of the duration")
	set.DurationVar(&c.restart, "api-restart-after", time.Second, "how long an API server in memory that was killed stays away")
	return set, api
}

func printUsage(w io.Writer) {
	set, _ := new(settings).flags()
	set.SetOutput(w)
	_, _ = fmt.Fprintln(w, "A small operator that leaks on demand, with leakguard in it.\n\nUsage: operator [flags]")
	set.PrintDefaults()
}

// parse reads the arguments and checks them all before anything is started.
func parse(ctx context.Context, args []string) (*settings, error) {
	c := &settings{}
	set, api := c.flags()
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	var err error
	if c.api, err = apiserver.ParseKind(*api); err != nil {
		return nil, fmt.Errorf("--api: %w", err)
	}
	if err = c.findTraps(); err != nil {
		return nil, err
	}
	explicit := false
	set.Visit(func(f *flag.Flag) { explicit = explicit || f.Name == "metrics-bind-address" })
	return c, c.check(ctx, explicit)
}

func (c *settings) findTraps() error {
	if c.leak == "none" {
		if c.twin {
			return errors.New("--twin: there is no twin of no leak")
		}
		return nil
	}
	names := strings.Split(c.leak, ",")
	for _, name := range names {
		trap, err := traps.Find(name)
		if err != nil {
			return fmt.Errorf("--leak: unknown trap %q: want one of %s", name, strings.Join(allNames(), ", "))
		}
		controller := traps.LeakyController
		if len(names) > 1 {
			controller += "-" + name
		}
		c.leaks = append(c.leaks, &leak{Trap: trap, twin: c.twin, controller: controller, shared: len(names) > 1})
	}
	return c.checkTogether()
}

func allNames() []string {
	names := []string{"none"}
	for _, t := range traps.All() {
		names = append(names, t.Name)
	}
	return names
}

// checkTogether refuses traps that cannot run in one process.
func (c *settings) checkTogether() error {
	for i, l := range c.leaks {
		if l.twin && l.Twin == nil {
			return fmt.Errorf("--twin: %q has no twin, since it does not leak", l.Name)
		}
		for _, other := range c.leaks[:i] {
			if l.Name == other.Name {
				return fmt.Errorf("--leak: %s is there twice", l.Name)
			}
			if why := l.Conflict(&other.Trap); why != "" && !c.twin {
				return fmt.Errorf("--leak: %s and %s cannot run together: %s", other.Name, l.Name, why)
			}
		}
	}
	return nil
}

func (c *settings) check(ctx context.Context, explicitMetrics bool) error {
	switch {
	case !(c.scale > 0 && c.scale <= 1):
		return fmt.Errorf("--scale: %v is not in (0, 1]", c.scale)
	case c.objects < 0:
		return fmt.Errorf("--objects: %d is negative", c.objects)
	case c.duration < 0:
		return fmt.Errorf("--duration: %v is negative", c.duration)
	case c.outage < 0 || c.restart <= 0:
		return errors.New("--api-outage, --api-restart-after: must not be negative")
	case c.outage > 0 && c.duration == 0:
		return errors.New("--api-outage: needs a --duration")
	}
	if err := c.checkExpectation(); err != nil {
		return err
	}
	return c.checkMetrics(ctx, explicitMetrics)
}

// checkExpectation refuses to expect what cannot be. Silence may be expected of anything.
func (c *settings) checkExpectation() error {
	wants, known := map[string]traps.Expect{
		"": "", expectEach: "", expectQuiet: "", expectSilence: "",
		expectFinding: traps.ExpectAlarm, expectListed: traps.ExpectListed, expectNotice: traps.ExpectNotice,
	}[c.expect]
	alarms := slices.ContainsFunc(c.leaks, func(l *leak) bool { return l.expects() == traps.ExpectAlarm })
	switch {
	case !known:
		return fmt.Errorf("--expect: unknown value %q: want finding, listed, notice, each, silence or quiet", c.expect)
	case c.untilFound && (!alarms || c.expect != expectFinding && c.expect != expectEach):
		return errors.New("--until-found: needs --expect=finding or each and a trap that alarms")
	case len(c.leaks) == 0 && (c.expect == expectEach || wants != ""):
		return fmt.Errorf("--expect: %s makes no sense without a leak", c.expect)
	case wants == "":
		return nil
	}
	if at := slices.IndexFunc(c.leaks, func(l *leak) bool { return l.expects() != wants }); at >= 0 {
		return fmt.Errorf("--expect: %s makes no sense where leakguard should be %s (--leak=%s --twin=%t)", c.expect, c.leaks[at].expects(), c.leaks[at].Name, c.twin)
	}
	return nil
}

// checkMetrics finds out whether the metrics address can be had, before anything is started.
func (c *settings) checkMetrics(ctx context.Context, explicit bool) error {
	if c.metrics == "0" || c.list {
		return nil
	}
	listen := (&net.ListenConfig{}).Listen
	l, err := listen(ctx, "tcp", c.metrics)
	if err != nil && !explicit {
		l, err = listen(ctx, "tcp", "127.0.0.1:0")
	}
	if err != nil {
		return fmt.Errorf("--metrics-bind-address: %w", err)
	}
	c.metrics = l.Addr().String()
	return l.Close()
}

// leakyControllers are the controllers beside the clean one. Without a trap there is one that leaks nothing.
func (c *settings) leakyControllers() []string {
	if len(c.leaks) == 0 {
		return []string{traps.LeakyController}
	}
	var names []string
	for _, l := range c.leaks {
		names = append(names, l.controller)
	}
	return names
}
