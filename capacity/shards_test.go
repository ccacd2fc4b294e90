package capacity_test

import (
	"math/rand/v2"
	"testing"

	"github.com/pgyield/pgyield/capacity"
)

// limiter is a rate limit over shards, asked at times that do not fall, in seconds.
type limiter interface {
	admit(shard int, now float64) bool
}

// resetting counts anew with each second, each shard by a part of the limit.
type resetting struct {
	limits, used []int
	second       int
}

func (l *resetting) admit(shard int, now float64) bool {
	if int(now) != l.second {
		l.second = int(now)
		clear(l.used)
	}
	if l.used[shard] >= l.limits[shard] {
		return false
	}
	l.used[shard]++
	return true
}

// leaky fills with each admission and leaks at the limit's rate; it holds a second's
// worth.
type leaky struct {
	limit       float64
	level, last []float64
}

func (l *leaky) admit(shard int, now float64) bool {
	l.level[shard] = max(0, l.level[shard]-l.limit*(now-l.last[shard]))
	l.last[shard] = now
	if l.level[shard]+1 > l.limit {
		return false
	}
	l.level[shard]++
	return true
}

// moving is a resetting one whose parts are divided anew at each heartbeat within the
// second: what no shard has used yet goes to all alike.
type moving struct {
	resetting
	whole int
	beats float64 // a second
	beat  int
}

func (l *moving) admit(shard int, now float64) bool {
	if beat := int(now * l.beats); beat != l.beat {
		l.beat = beat
		if int(now) != l.second {
			l.second = int(now)
			clear(l.used)
		}
		left, n := l.whole, len(l.limits)
		for _, u := range l.used {
			left -= u
		}
		for i := range l.limits {
			l.limits[i] = l.used[i] + left/n
			if (i+l.beat)%n < left%n {
				l.limits[i]++
			}
		}
	}
	if l.used[shard] >= l.limits[shard] {
		return false
	}
	l.used[shard]++
	return true
}

// refusals returns the refusals a second of a fresh rate whose reads go to a shard at
// random, and once more, at once, to another draw when refused.
func refusals(seed uint64, l limiter, shards, retries int, rate float64) (m moments) {
	random := rand.New(rand.NewPCG(seed, 9))
	now := 0.0
	for range 40 {
		refused, end := 0, now+500
		for ; now < end; now += random.ExpFloat64() / rate {
			for try := 0; try <= retries && !l.admit(random.IntN(shards), now); try++ {
				refused++
			}
		}
		m.add(float64(refused) / 500)
	}
	return m
}

func fill(n, value int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = value
	}
	return list
}

// TestShardedLimiter compares three ways to shard a limit of 150 a second with one pool,
// at the rate of the study.
func TestShardedLimiter(t *testing.T) {
	const rate, limit, shards = 132.645, 150, 6
	one := func() limiter { return &resetting{limits: []int{limit}, used: fill(1, 0)} }
	reset := func() limiter { return &resetting{limits: fill(shards, limit/shards), used: fill(shards, 0)} }
	leak := func() limiter {
		return &leaky{limit: limit / shards, level: make([]float64, shards), last: make([]float64, shards)}
	}
	move := func() limiter {
		return &moving{resetting: resetting{limits: fill(shards, limit/shards), used: fill(shards, 0)}, whole: limit, beats: 10}
	}
	for retries := range 2 {
		pool, split := refusals(1, one(), 1, retries, rate), refusals(2, reset(), shards, retries, rate)
		leaking, moved := refusals(3, leak(), shards, retries, rate), refusals(4, move(), shards, retries, rate)
		t.Logf("%d retries, refusals a second: one pool %.2f; six shards: reset %.2f, leaky bucket %.2f, moved by heartbeat %.2f",
			retries, pool.mean(), split.mean(), leaking.mean(), moved.mean())
		// One pool that is full stays full until the window ends: each try is refused.
		check(t, "one pool", &pool, float64(retries+1)*must(capacity.Excess(limit, rate)))
		if retries == 0 {
			want := must(capacity.Window{Rate: rate, Limit: limit, Shards: shards}.Refusals())
			check(t, "reset each second", &split, want.Refusals)
		}
		if !(pool.mean() < moved.mean() && moved.mean() < split.mean()/3 && leaking.mean() < split.mean()/3) {
			t.Errorf("%d retries: moving the shares and a leaky bucket should each refuse far less than fixed windows", retries)
		}
		if retries == 0 {
			continue
		}
		// The retry comes back at once, while other shards are full more often than on
		// average: more are refused than if tries were independent, and fewer than if
		// the retry met the same full shard.
		independent := must(capacity.Window{Rate: rate, Limit: limit, Shards: shards, Retries: 1}.Refusals()).Refusals
		same := 2 * shards * must(capacity.Excess(limit/shards, rate/shards))
		if split.mean() < independent || split.mean() > same || !split.agrees(7.43) {
			t.Errorf("one retry to a random shard: %.3f ± %.3f refusals a second, want 7.43, between %.3f and %.3f",
				split.mean(), split.err(), independent, same)
		}
	}
}
