package intent

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
)

// Options configure a Classifier. The zero value is the built-in functions and
// the default cache.
type Options struct {
	// WritingFunctions are functions whose call makes a statement a Write.
	// Default: none but the built-in ones.
	//
	// A name is written as in SQL: bare names are folded to lower case, names in
	// double quotes are kept. It may be qualified (`app.bill`), but only its
	// last part counts, in every schema: a text need not qualify a call, and the
	// search path is not known here.
	WritingFunctions []string
	// ReadingFunctions are functions whose call is not a write, whatever is built
	// in or learned about them: an explicit word is believed, also for nextval.
	// Names as in WritingFunctions; one name in both lists is an error.
	ReadingFunctions []string
	// CacheEntries is how many long texts' classes are kept, rounded up to a
	// power of two. Default 2048; negative: no cache.
	CacheEntries int
	// CacheBytes bounds the long texts that the cache keeps alive, in bytes.
	// Default 4 MiB; negative: no cache. Texts longer than a 32nd of it are not
	// kept.
	CacheBytes int
}

const (
	defaultCacheEntries = 2048
	defaultCacheBytes   = 4 << 20
	maxCacheEntries     = 1 << 20
)

// Classifier tells reads from writes. The zero value knows the built-in
// functions. It is safe for concurrent use and must not be copied after use.
type Classifier struct {
	options    Options
	registered map[string]reason // immutable after New
	state      atomic.Pointer[state]
	learning   sync.Mutex // serialises Learn
}

// state is what a classification needs; it is replaced as a whole, so that the
// cache never outlives the names that it was filled by.
type state struct {
	functions functions
	cache     *cache // nil: none
}

// New returns a Classifier with registered names. The error names the option, the
// index and the name that cannot be used.
func New(options Options) (*Classifier, error) {
	if options.CacheEntries > maxCacheEntries {
		return nil, fmt.Errorf("pgyield: intent: CacheEntries %d is above %d", options.CacheEntries, maxCacheEntries)
	}
	registered := map[string]reason{}
	if err := register(registered, "WritingFunctions", options.WritingFunctions, registeredFunction); err != nil {
		return nil, err
	}
	if err := register(registered, "ReadingFunctions", options.ReadingFunctions, none); err != nil {
		return nil, err
	}
	options.WritingFunctions, options.ReadingFunctions = nil, nil
	c := &Classifier{options: options, registered: registered}
	c.state.Store(c.newState(nil))
	return c, nil
}

// register folds names into the set.
func register(set map[string]reason, field string, names []string, why reason) error {
	for i, text := range names {
		name, err := parseName(text)
		if err != nil {
			return fmt.Errorf("pgyield: intent: %s[%d] %.80q: %w", field, i, text, err)
		}
		if known, ok := set[name]; ok && known != why {
			return fmt.Errorf("pgyield: intent: %s[%d] %.80q: the name is in WritingFunctions too (only the last part of a name counts)", field, i, text)
		}
		set[name] = why
	}
	return nil
}

// Classify returns the class of a SQL text. Classes of long texts are cached.
// Only the classification of a long text that is seen for the second time
// allocates. It keeps such a text alive as long as the text is in the cache.
func (c *Classifier) Classify(sql string) Class {
	s := c.current()
	if len(sql) < cacheFrom || s.cache == nil {
		return examine(sql, &s.functions).Class
	}
	if class, ok := s.cache.get(sql); ok {
		return class
	}
	class := examine(sql, &s.functions).Class
	s.cache.offer(sql, class)
	return class
}

// Of returns the intent of a SQL text: Classify(sql).Intent.
func (c *Classifier) Of(sql string) Intent { return c.Classify(sql).Intent }

// Learn replaces the set of names whose call makes a statement a Write because a
// database declares them volatile. The names are catalogue names (pg_proc.proname):
// unqualified, unquoted, in their own case. Registered names beat learned ones,
// and where PostgreSQL or an extension that is known here has a function of the
// name, a call of it keeps its class unless it names a schema other than
// pg_catalog: a bare name most likely means the built-in one. The change is
// atomic, and what the cache knew is dropped.
func (c *Classifier) Learn(volatile []string) {
	c.learning.Lock()
	defer c.learning.Unlock()
	c.state.Store(c.newState(volatile))
}

func (c *Classifier) newState(volatile []string) *state {
	s := &state{cache: newCache(c.options)}
	named := make(map[string]reason, len(c.registered)+len(volatile))
	for _, name := range volatile {
		switch {
		case name == "" || builtins.call([]byte(name)) != none:
		case builtIn(name):
			named[name] = learnedNamesake
		default:
			named[name] = learnedFunction
		}
	}
	maps.Copy(named, c.registered)
	if len(named) > 0 {
		s.functions.name(named)
	}
	return s
}

// current returns the state, which a zero Classifier gets at its first use.
func (c *Classifier) current() *state {
	if s := c.state.Load(); s != nil {
		return s
	}
	c.state.CompareAndSwap(nil, c.newState(nil))
	return c.state.Load()
}
