package adaptive

import (
	"log/slog"
	"time"
)

// news decides what the log hears: beginnings and ends, not each period.
type news struct {
	yielding bool
	floored  bool
	left     time.Time // when the floor that was told of was left; zero while it is not
	frozen   bool
}

type line struct {
	level slog.Level
	text  string
	attrs []slog.Attr
}

// of returns the lines that a decision is worth.
func (n *news) of(d Decision, s state, floorAfter time.Duration) []line {
	var lines []line
	say := func(level slog.Level, text string, attrs ...slog.Attr) {
		lines = append(lines, line{level, text, append(attrs, slog.Int("limit", d.To))})
	}
	if d.To < d.From && !n.yielding {
		n.yielding = true
		say(slog.LevelInfo, "pgyield: reads begin to yield to writes", slog.Int("from", d.From), slog.String("reason", d.Reason))
	}
	if d.Reason == reasonUnhelpful {
		say(slog.LevelInfo, "pgyield: writes are slow, and fewer reads did not help; the limit goes back", slog.Int("from", d.From))
	}
	switch {
	case d.AtFloor >= floorAfter && !n.floored:
		n.floored = true
		say(slog.LevelWarn, "pgyield: the read limit has been at its floor for long", slog.Duration("for", d.AtFloor.Round(time.Second)),
			slog.String("reason", d.Reason))
	case d.AtFloor > 0:
		n.left = time.Time{}
	case n.floored && n.left.IsZero():
		n.left = d.At
	case n.floored && d.At.Sub(n.left) >= floorAfter:
		n.floored = false // a look above it now and then is the same stay
	}
	if d.Verdict.Freeze && !n.frozen {
		say(slog.LevelWarn, "pgyield: a session waits for a lock on a relation, perhaps behind a read; the limit does not rise until it has it")
	}
	n.frozen = d.Verdict.Freeze
	if n.yielding && s.hold.level == 0 && d.To >= d.From && d.Reason == reasonTop {
		n.yielding = false
		say(slog.LevelInfo, "pgyield: reads are back at their full limit")
	}
	return lines
}
