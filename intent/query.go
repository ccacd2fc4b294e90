package intent

// query is the state of the rules within a statement that begins like a query.
type query struct {
	*scan
	found  verdict // what the statement is so far: Read or Trivial
	depth  int     // of open parentheses
	with   bool    // a WITH was seen, so INSERT and its kin may be statements
	prev   token   // the token before, or bad where it was none of the kinds that count:
	inside bool    // whether it, a name, stands behind a dot,
	key    uint64  // its key where it is a word that means something to the next,
	from   int     // where it starts
	to     int     // and ends
	schema [2]int  // where the name before the last dot stands
}

// query classifies a statement that begins like a query; its first word is the
// current token, and depth parentheses are open before it. intent is what the
// statement is when nothing speaks against it.
func (s *scan) query(depth int, intent Intent) verdict {
	q := query{
		scan:  s,
		found: verdict{Class: Class{Intent: intent}, why: readsOnly, start: s.start, end: s.pos},
		depth: depth, with: s.key == kwWith,
		prev: word, key: s.key, from: s.start, to: s.pos,
	}
	for {
		t := s.next()
		if s.gap {
			q.prev, q.key = bad, 0
		}
		switch t {
		case word:
			if matters := s.matters(); matters || q.key != 0 {
				if why := q.word(matters); why != none {
					return q.write(why)
				}
			} else {
				q.inside = q.prev == dot
			}
		case open:
			q.depth++
			if q.prev == quoted || q.prev == word && q.key != kwSelect && q.key != kwValues {
				q.found.Intent = Read
				if why := q.call(); why != none {
					return q.write(why)
				}
			}
			q.key = 0
		case closing:
			if q.depth--; q.depth < 0 {
				return s.write(unbalanced, false)
			}
			q.key = 0
		case dot:
			q.schema, q.key = [2]int{q.from, q.to}, 0
		case quoted:
			if q.with && isDML(q.key) {
				return q.write(dataChange)
			}
			q.key, q.inside = 0, q.prev == dot
		case end, semicolon:
			s.last = t
			return q.read()
		default:
			return s.failed(t, none)
		}
		q.prev, q.from, q.to = t, s.start, s.pos
	}
}

// word applies the rules to a bare word, which may matter itself, and to the one
// before it.
func (q *query) word(matters bool) reason {
	if q.with && isDML(q.key) {
		return dataChange
	}
	switch q.scan.key {
	case kwInto:
		// Not even behind AS or a dot: in `select t.as into t2` the word before
		// INTO is a column's name.
		return intoTable
	case kwFrom, kwSelect, kwValues, kwTable:
		q.found.Intent = Read
	case kwWith:
		q.with, q.found.Intent = true, Read
	case kwUpdate, kwShare, kwNo, kwKey:
		if q.key == kwFor {
			return rowLock
		}
	}
	q.inside = q.prev == dot
	q.key = 0
	// A column may have any keyword's name; FOR is not excused.
	if k := q.scan.key; matters && (!q.inside || k == kwFor) {
		q.key = k
	}
	return none
}

// call looks at the function whose parenthesis was just opened.
func (q *query) call() reason {
	why := q.functions.call(q.sql[q.from:q.to], q.prev == quoted)
	if why == learnedNamesake {
		// A built-in function has the name too. Only a schema tells them apart.
		if !q.inside || isCatalog(q.sql[q.schema[0]:q.schema[1]]) {
			return none
		}
		return learnedFunction
	}
	return why
}

// read ends a statement in which nothing was found that writes.
func (q *query) read() verdict {
	if q.depth != 0 {
		return q.scan.write(unbalanced, false)
	}
	if q.found.Intent == Trivial {
		q.found.why = probe
	}
	return q.found
}

// write ends a statement that is a write. A statement that changes data does so
// also where a function or INTO was found first.
func (q *query) write(why reason) verdict {
	v := verdict{why: why, start: q.from, end: q.to}
	if why == intoTable || why == rowLock {
		v.start, v.end = q.scan.start, q.scan.pos
	}
	v.DML = why == dataChange || q.dataChangeFollows()
	return v
}

// dataChangeFollows tells whether the rest of the statement holds an INSERT,
// UPDATE, DELETE or MERGE behind WITH.
func (q *query) dataChangeFollows() bool {
	s, pending, prev := q.scan, false, bad
	for {
		t := s.next()
		pending = pending && !s.gap
		switch t {
		case end, semicolon, bad:
			return false
		case word, quoted:
			if pending {
				return true
			}
			if t == word {
				q.with = q.with || s.key == kwWith
				pending = q.with && (prev != dot || s.gap) && isDML(s.key)
			}
		default:
			pending = false
		}
		prev = t
	}
}
