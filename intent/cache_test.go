package intent

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// longText is a read that is cached, n telling texts apart.
func longText(n int) string {
	return fmt.Sprintf("select * from orders where id = %08d and %s", n, strings.Repeat("state = 'paid' and ", 10)+"true")
}

// cachedTexts counts what the cache holds.
func cachedTexts(c *Classifier) (count, bytes int) {
	cache := c.current().cache
	for i := range cache.sets {
		for j := range cache.sets[i] {
			if e := cache.sets[i][j].Load(); e != nil {
				count++
				bytes += len(e.sql)
			}
		}
	}
	return count, bytes
}

func TestCacheTakesTheSecond(t *testing.T) {
	c := newClassifier(t, Options{})
	text := longText(1)
	for want := range 3 {
		if c.Of(text) != Read {
			t.Fatal("not a read")
		}
		if count, _ := cachedTexts(c); count != min(want, 1) {
			t.Errorf("seen %d times, %d texts are kept", want+1, count)
		}
	}
	class, ok := c.current().cache.get(strings.Clone(text))
	if !ok || class != (Class{Intent: Read}) {
		t.Errorf("an equal text is not found: %+v, %v", class, ok)
	}
	for range 3 {
		c.Of("select 1")
	}
	if count, _ := cachedTexts(c); count != 1 {
		t.Errorf("a short text is kept")
	}
}

// TestCacheTellsTextsApart uses texts that differ in one byte only, anywhere, and
// so mostly share the samples that a look-up takes.
func TestCacheTellsTextsApart(t *testing.T) {
	c := newClassifier(t, Options{})
	text := longText(1) + strings.Repeat(" and a = 1", 30)
	for i := range text {
		for _, b := range []byte(";{' ") {
			other := text[:i] + string(b) + text[i+1:]
			want := examine(other, &functions{}).Class
			for range 3 {
				if got := c.Classify(other); got != want {
					t.Fatalf("%+v, want %+v: %s", got, want, other)
				}
			}
		}
	}
}

func TestCacheIsBounded(t *testing.T) {
	const entries, size = 64, 10_000
	c := newClassifier(t, Options{CacheEntries: entries, CacheBytes: size})
	hot := longText(0)
	c.Of(hot)
	c.Of(hot)
	for n := 1; n < 5_000; n++ {
		text := longText(n)
		c.Of(text)
		c.Of(text) // twice, to be let in
		if count, bytes := cachedTexts(c); count > entries || bytes > size {
			t.Fatalf("%d texts of %d bytes are kept, at most %d of %d allowed", count, bytes, entries, size)
		}
		if c.current().cache.bytes > size {
			t.Fatalf("counts %d bytes", c.current().cache.bytes)
		}
		if _, ok := c.current().cache.get(hot); !ok {
			t.Fatalf("a text that is always in use was pushed out by the %dth other", n)
		}
	}
	count, bytes := cachedTexts(c)
	if bytes != c.current().cache.bytes {
		t.Errorf("holds %d bytes and counts %d", bytes, c.current().cache.bytes)
	}
	if count < 20 {
		t.Errorf("only %d texts are kept", count)
	}
	huge := longText(0) + strings.Repeat(" ", size)
	for range 3 {
		c.Of(huge)
	}
	if after, _ := cachedTexts(c); after != count {
		t.Error("a text longer than the cache got in")
	}
}

func TestNoCache(t *testing.T) {
	for _, options := range []Options{{CacheEntries: -1}, {CacheBytes: -1}} {
		c := newClassifier(t, options)
		for range 3 {
			if c.Of(longText(1)) != Read {
				t.Error("not a read")
			}
		}
		if c.current().cache != nil {
			t.Errorf("%+v has a cache", options)
		}
	}
	for entries, want := range map[int]int{0: defaultCacheEntries, 1: 4, 4: 4, 5: 8, 100: 128, 1024: 1024} {
		c := newClassifier(t, Options{CacheEntries: entries})
		if got := len(c.current().cache.sets) * ways; got != want {
			t.Errorf("CacheEntries %d makes room for %d, want %d", entries, got, want)
		}
	}
}

// TestLiteralsLeaveTheHeapFlat classifies a million texts that differ in a
// literal.
func TestLiteralsLeaveTheHeapFlat(t *testing.T) {
	c := newClassifier(t, Options{})
	text := []byte(longText(0))
	at := strings.Index(string(text), "00000000")
	c.Of(string(text))
	before := heap()
	for n := range 1_000_000 {
		for i, rest := 7, n+1; rest > 0; i, rest = i-1, rest/10 {
			text[at+i] = '0' + byte(rest%10)
		}
		if c.Of(string(text)) != Read {
			t.Fatal("not a read")
		}
	}
	grown := int64(heap()) - int64(before)
	count, _ := cachedTexts(c)
	t.Logf("the heap grew by %d bytes, %d texts are kept", grown, count)
	if grown > 100_000 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	if count > 0 {
		t.Errorf("%d texts that were seen once are kept", count)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestConcurrentUse has texts classified, learned and explained at once. A text
// must have the class of one of the two sets that are learned in turn.
func TestConcurrentUse(t *testing.T) {
	c := newClassifier(t, Options{CacheEntries: 16})
	always, never := "insert into t values (1)"+longText(1), longText(2)
	changing := strings.Replace(longText(3), "where", "where visit(id) and", 1)
	var users sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		users.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				if c.Of(always) != Write || c.Of(never) != Read {
					t.Error("a class changed")
					return
				}
				c.Of(changing)
				c.Of(longText(n % 50))
				c.Explain(changing)
			}
		})
	}
	for n := range 200 {
		want := Read
		if n%2 == 0 {
			c.Learn([]string{"visit"})
			want = Write
		} else {
			c.Learn(nil)
		}
		for range 20 {
			if got := c.Of(changing); got != want {
				t.Fatalf("after learning: %v, want %v", got, want)
			}
		}
	}
	close(done)
	users.Wait()
}
