package pgtest

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Way is how a server was found, or is to be found.
type Way int

// The ways, in the order in which [Auto] tries them.
const (
	Auto   Way = iota // the first of the following that gives a server
	Given             // a server that runs already
	Local             // server programs of this machine
	Docker            // a container
)

// String returns the way's name in lower case.
func (w Way) String() string {
	switch w {
	case Auto:
		return "auto"
	case Given:
		return "given"
	case Local:
		return "local"
	case Docker:
		return "docker"
	}
	return "Way(" + strconv.Itoa(int(w)) + ")"
}

// The environment variables that stand in for empty options.
const (
	EnvDSN   = "PGYIELD_DSN"
	EnvImage = "PGYIELD_IMAGE"
)

const (
	// minVersion is the oldest release that DROP DATABASE ... WITH (FORCE),
	// which every dropped test database needs, works with.
	minVersion = 13

	defaultVersion      = "17"
	defaultStartTimeout = 2 * time.Minute
)

// Options say which server is wanted. The zero value is the first that is found.
type Options struct {
	// Way limits the search to one way. Default: Auto, all of them.
	Way Way

	// DSN names a server that runs already, as a URL or in keyword form; its role
	// must be allowed to create databases where [Server.Database] is used.
	// Default: PGYIELD_DSN. Only Auto and Given look at it.
	DSN string

	// Version is the major version wanted, such as "17". Default: any for Given
	// and Local (the newest that is installed), "17" for Docker. A given server
	// of another version is an error; installed programs of another version do
	// not count.
	Version string

	// Image is the container image, which must honour the variables of the
	// official one. Default: PGYIELD_IMAGE, else postgres:VERSION-alpine.
	Image string

	// Settings are server parameters by name, such as max_connections. They go to
	// a server that is started; a given one stays as it is.
	Settings map[string]string

	// Fast trades durability for speed: fsync, full_page_writes and
	// synchronous_commit off. Settings win over it. Default: false.
	Fast bool

	// StartTimeout bounds one start, the pull of an image not included.
	// Default: 2 minutes.
	StartTimeout time.Duration

	// Logf, if set, is told what is being done, one line a call; testing.TB's
	// Logf fits. It may be called from the goroutine of Start only.
	Logf func(format string, args ...any)

	dsnFrom string // who gave DSN, for an error's text

	// freePort stands in for the package's in tests.
	freePort func() (int, error)
}

var (
	versionForm = regexp.MustCompile(`^[0-9]{2}$`)
	settingForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)
)

// withDefaults returns a checked copy with every empty field filled in.
func (o Options) withDefaults() (Options, error) {
	if o.Way < Auto || o.Way > Docker {
		return o, fmt.Errorf("pgyield: pgtest: Options.Way %d is none of Auto, Given, Local, Docker", int(o.Way))
	}
	if o.Version != "" && !versionForm.MatchString(o.Version) {
		return o, fmt.Errorf("pgyield: pgtest: Options.Version %q is no major version such as %q", o.Version, defaultVersion)
	}
	if o.Version != "" && o.Version < strconv.Itoa(minVersion) {
		return o, fmt.Errorf("pgyield: pgtest: Options.Version %s is below %d, the oldest that is supported", o.Version, minVersion)
	}
	if o.StartTimeout < 0 {
		return o, fmt.Errorf("pgyield: pgtest: Options.StartTimeout %v is negative", o.StartTimeout)
	}
	for name := range o.Settings {
		if !settingForm.MatchString(name) {
			return o, fmt.Errorf("pgyield: pgtest: Options.Settings: %q is no parameter name", name)
		}
	}
	o.dsnFrom = "Options.DSN"
	if o.DSN == "" {
		o.DSN, o.dsnFrom = os.Getenv(EnvDSN), EnvDSN
	}
	if o.Way == Given && o.DSN == "" {
		return o, errors.New("pgyield: pgtest: Options.Way is Given, but neither Options.DSN nor " + EnvDSN + " names a server")
	}
	if o.Image == "" {
		o.Image = os.Getenv(EnvImage)
	}
	if o.Image == "" {
		version := o.Version
		if version == "" {
			version = defaultVersion
		}
		o.Image = "postgres:" + version + "-alpine"
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = defaultStartTimeout
	}
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
	if o.freePort == nil {
		o.freePort = freePort
	}
	return o, nil
}

// freePort returns a loopback port on which nothing listens.
func freePort() (int, error) {
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0, fmt.Errorf("a TCP listener has the address %v", listener.Addr())
	}
	return address.Port, nil
}

// arguments returns the settings as arguments for the postgres program, in the
// order of their names, so that one set of options gives one command line.
func (o Options) arguments() []string {
	settings := map[string]string{}
	if o.Fast {
		settings["fsync"] = "off"
		settings["full_page_writes"] = "off"
		settings["synchronous_commit"] = "off"
	}
	maps.Copy(settings, o.Settings)
	var arguments []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		arguments = append(arguments, "-c", name+"="+settings[name])
	}
	return arguments
}
