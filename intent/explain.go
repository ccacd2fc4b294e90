package intent

// explain classifies EXPLAIN. With ANALYZE its statement runs, so it has to be a
// read; without, it is only planned.
func (s *scan) explain() verdict {
	start, pos := s.start, s.pos
	runs := false
	t := s.next()
	if t == word && (s.key == kwAnalyze || s.key == kwAnalyse) {
		runs = true
		t = s.next()
	}
	if t == word && s.key == kwVerbose {
		t = s.next()
	}
	if t == open && !s.queryFollows() {
		listRuns, ok := s.explainOptions()
		if !ok {
			return s.failed(s.last, notUnderstood)
		}
		runs = runs || listRuns
		t = s.next()
	}
	var v verdict
	if runs {
		v = s.executed(t)
	} else {
		v = s.planned(t)
	}
	if v.Intent == Trivial {
		v.Intent, v.why = Read, readsOnly
	}
	if v.Intent == Read && !runs {
		v.why, v.start, v.end = plansOnly, start, pos
	}
	return v
}

// queryFollows tells whether the parenthesis just read belongs to a query and
// not to an option list. SELECT, WITH and TABLE are reserved; VALUES may be an
// option's name, but then no parenthesis follows.
func (s *scan) queryFollows() bool {
	ahead := s.lexer
	switch ahead.next() {
	case open:
		return true
	case word:
		switch ahead.key {
		case kwSelect, kwWith, kwTable:
			return true
		case kwValues:
			return ahead.next() == open
		}
	}
	return false
}

// explainOptions reads an option list up to its end. A quoted option may be any,
// so it counts as ANALYZE; so does ANALYZE with a value, whatever the value.
func (s *scan) explainOptions() (runs, ok bool) {
	for {
		t := s.next()
		s.last = t
		switch t {
		case closing:
			return runs, true
		case word:
			runs = runs || s.key == kwAnalyze || s.key == kwAnalyse
		case quoted:
			runs = true
		default:
			return runs, false
		}
	}
}

// executed classifies the statement of an EXPLAIN that runs it.
func (s *scan) executed(t token) verdict {
	if t == word && (s.key == kwShow || s.key == kwExplain) {
		return s.write(notARead, false)
	}
	return s.statement(t)
}

// planned classifies the statement of an EXPLAIN that does not run it. What it
// would change does not matter then, but the planner calls functions that are
// not volatile. Of the other statements, EXECUTE evaluates its arguments.
func (s *scan) planned(t token) verdict {
	for depth := 0; ; t = s.next() {
		if t == open {
			depth++
			continue
		}
		if t == word {
			switch s.key {
			case kwSelect, kwValues, kwTable, kwWith, kwInsert, kwUpdate, kwDelete, kwMerge:
				return s.plannedBody(depth)
			}
		}
		if t == word {
			return s.write(notARead, false)
		}
		return s.failed(t, noWord)
	}
}

func (s *scan) plannedBody(depth int) verdict {
	v := verdict{Class: Class{Intent: Read}}
	prev, start, pos := word, s.start, s.pos
	for {
		t := s.next()
		switch t {
		case open:
			depth++
			if prev == word || prev == quoted {
				if why := s.functions.call(s.sql[start:pos], prev == quoted); why == builtinPlanned || why == registeredFunction {
					return verdict{why: why, start: start, end: pos}
				}
			}
		case closing:
			if depth--; depth < 0 {
				return s.write(unbalanced, false)
			}
		case end, semicolon:
			if depth != 0 {
				return s.write(unbalanced, false)
			}
			s.last = t
			return v
		case bad:
			return s.failed(t, 0)
		}
		prev, start, pos = t, s.start, s.pos
	}
}
