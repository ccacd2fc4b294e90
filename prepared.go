package pgyield

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pgyield/pgyield/intent"
)

const (
	// maxPrepared bounds how many names are known, and maxPreparedText how long a text
	// may be. A program prepares dozens of statements.
	maxPrepared     = 4096
	maxPreparedText = 64 << 10

	// statementCachePrefix starts the names that pgx's statement cache makes. Nobody
	// calls those by name.
	statementCachePrefix = "stmtcache_"
)

// prepared knows the texts of statements that a program prepared by name: the name
// arrives in place of the SQL, and pgx looks names up before it takes the SQL as one.
// A name that is not known is taken for a text, and as a text no name but an odd one
// (such as "select") is a read.
type prepared struct {
	known atomic.Int64 // how many names, so that most pools never look further
	texts sync.Map     // name -> text; "" where a name is ambiguous, which is a write
	full  atomic.Bool  // odd names were met for which there was no room

	mu sync.Mutex // guards adding, so that the bound holds
}

// text returns the text that name stands for. Of two texts for one name it returns
// none of them, but an empty one, which is a write.
func (p *prepared) text(name string) (text string, ok bool) {
	if p.known.Load() == 0 {
		return "", false
	}
	v, ok := p.texts.Load(name)
	if !ok {
		return "", p.full.Load() && odd(name)
	}
	text, _ = v.(string)
	return text, true
}

// learn notes that name was prepared with text on some connection.
func (p *prepared) learn(name, text string) {
	if name == "" || name == text || strings.HasPrefix(name, statementCachePrefix) {
		return
	}
	if len(text) > maxPreparedText {
		text = ""
	}
	if old, ok := p.text(name); ok && old == text {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if old, ok := p.text(name); ok {
		if old != text {
			p.texts.Store(name, "")
		}
		return
	}
	if p.known.Load() >= maxPrepared && !p.forgetOne() {
		p.full.Store(p.full.Load() || odd(name))
		return
	}
	p.texts.Store(name, text)
	p.known.Add(1)
}

// forgetOne makes room and reports whether it could. What is forgotten is then taken for
// a text, which for an ordinary name is a write, and safe. p.mu must be held.
func (p *prepared) forgetOne() (forgot bool) {
	p.texts.Range(func(key, _ any) bool {
		if name, ok := key.(string); !ok || odd(name) {
			return true
		}
		p.texts.Delete(key)
		p.known.Add(-1)
		forgot = true
		return false
	})
	return forgot
}

// odd reports whether a name, taken for a text, would pass for a read.
func odd(name string) bool { return intent.Of(name) != intent.Write }
