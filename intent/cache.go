package intent

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
)

// cacheFrom is the length in bytes from which a text is worth a look into the
// cache: below, reading it takes about as long.
const cacheFrom = 128

const ways = 4

// cache keeps classes of long texts. Each text has one set of four places, so a
// look-up is a hash of a few samples and at most four comparisons, without a
// lock. A text gets in when it is seen twice: texts with literals written into
// them do not come again and so neither fill the cache nor push others out.
type cache struct {
	sets     []cacheSet
	seen     []atomic.Uint64 // hashes of texts seen once, each over the last of its place
	seed     maphash.Seed
	maxBytes int
	maxText  int

	mu    sync.Mutex // guards what follows and every store into sets
	bytes int
	hand  int
}

type cacheSet [ways]atomic.Pointer[cached]

type cached struct {
	sql   string
	class Class
	used  atomic.Bool // since the hand passed
}

// newCache returns nil where options ask for none.
func newCache(options Options) *cache {
	entries, maxBytes := options.CacheEntries, options.CacheBytes
	if entries < 0 || maxBytes < 0 {
		return nil
	}
	if entries == 0 {
		entries = defaultCacheEntries
	}
	if maxBytes == 0 {
		maxBytes = defaultCacheBytes
	}
	sets := 1 << bits.Len(uint(entries-1)/ways)
	return &cache{
		sets: make([]cacheSet, sets), seen: make([]atomic.Uint64, sets*ways*2),
		seed: maphash.MakeSeed(), maxBytes: maxBytes, maxText: maxBytes / 32,
	}
}

// get returns the class of a text that is in the cache. Comparing a text with
// itself is a comparison of pointers.
func (c *cache) get(sql string) (Class, bool) {
	set := c.set(sql)
	for i := range set {
		if e := set[i].Load(); e != nil && e.sql == sql {
			if !e.used.Load() {
				e.used.Store(true)
			}
			return e.class, true
		}
	}
	return Class{}, false
}

// set picks a text's set by its length and eight samples: hashing a long text
// whole would cost more than the cache may. Texts that differ elsewhere only
// share a set, and get apart by comparison.
func (c *cache) set(sql string) *cacheSet {
	n := len(sql)
	step := (n - 8) / 7
	h := uint64(n)
	for i := 0; i < 8; i += 2 {
		hi, lo := bits.Mul64(sample(sql, i*step)^0x9e3779b97f4a7c15, sample(sql, (i+1)*step)^0xd1b54a32d192ed03)
		h = (h ^ hi ^ lo) * 0x9fb21c651e98df25
	}
	return &c.sets[(h>>32)&uint64(len(c.sets)-1)]
}

// sample is eight bytes of a text.
func sample(s string, i int) uint64 {
	s = s[i : i+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// offer puts a text in when it was offered before.
func (c *cache) offer(sql string, class Class) {
	if len(sql) > c.maxText {
		return
	}
	h := maphash.String(c.seed, sql)
	if c.seen[h&uint64(len(c.seen)-1)].Swap(h) != h {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	set := c.set(sql)
	place := -1
	for i := range set {
		e := set[i].Load()
		if e != nil && e.sql == sql {
			return
		}
		if e == nil {
			place = i
		}
	}
	if place < 0 {
		place = c.victim(set)
	}
	c.put(&set[place], &cached{sql: sql, class: class})
	c.shrink(&set[place])
}

// victim is a place of a full set whose text was not used of late. The caller
// must hold mu.
func (c *cache) victim(set *cacheSet) int {
	for range ways {
		c.hand++
		i := c.hand % ways
		if !set[i].Load().used.Swap(false) {
			return i
		}
	}
	c.hand++
	return c.hand % ways
}

// put replaces what is in a place; nil empties it. The caller must hold mu.
func (c *cache) put(place *atomic.Pointer[cached], e *cached) {
	if old := place.Swap(e); old != nil {
		c.bytes -= len(old.sql)
	}
	if e != nil {
		c.bytes += len(e.sql)
	}
}

// shrink empties places, except one, until the texts fit. The caller must hold mu.
func (c *cache) shrink(keep *atomic.Pointer[cached]) {
	for c.bytes > c.maxBytes {
		c.hand++
		set := &c.sets[uint(c.hand/ways)%uint(len(c.sets))]
		place := &set[c.hand%ways]
		if e := place.Load(); e != nil && place != keep && !e.used.Swap(false) {
			c.put(place, nil)
		}
	}
}
