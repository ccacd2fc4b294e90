package pgyield

import (
	"context"

	"github.com/pgyield/pgyield/intent"
)

// wish is what a program said about the reads of a context: one value for all of
// it, because each call of the pool looks it up.
type wish struct {
	caller    string
	cost      int
	intent    intent.Intent
	hasIntent bool
	ungated   bool
}

type wishKey struct{}

// wishOf returns what was said in ctx. Nothing said is the unnamed caller and a cost of 1.
func wishOf(ctx context.Context) wish {
	if w, ok := ctx.Value(wishKey{}).(*wish); ok {
		return *w
	}
	return wish{cost: 1}
}

func withWish(ctx context.Context, change func(*wish)) context.Context {
	w := wishOf(ctx)
	change(&w)
	return context.WithValue(ctx, wishKey{}, &w)
}

// WithCaller names who asks: a tenant, an endpoint, a job. Permits are shared fairly
// between callers, and only a caller past its share can be penalised. Reads of
// contexts without a name share one caller, the empty name.
//
// Take the name from an authenticated value: a client that chooses its own name
// chooses its own share. At most [bulkhead.Options].MaxCallers names are told apart at
// a time. The name appears in errors, never as a metric label.
func WithCaller(ctx context.Context, name string) context.Context {
	return withWish(ctx, func(w *wish) { w.caller = name })
}

// WithCost weighs the reads of ctx: a read of cost n takes n permits. The default is
// 1. A cost above the current limit counts as the whole limit, so that a big read runs
// alone and never waits for ever. With a cost of 0 or less the read fails at once.
func WithCost(ctx context.Context, n int) context.Context {
	return withWish(ctx, func(w *wish) { w.cost = n })
}

// WithIntent says what the statements of ctx are; it beats their text. [intent.Read]
// is for what the text cannot prove (a volatile function that does not write),
// [intent.Write] for what the text does not show (a view over nextval), and
// [intent.Trivial] for a probe.
//
// It applies to Query, QueryRow, Exec and SendBatch; BeginTx goes by its access mode,
// of which [intent.Write] makes it an ungated one.
func WithIntent(ctx context.Context, i intent.Intent) context.Context {
	return withWish(ctx, func(w *wish) { w.intent, w.hasIntent = i, true })
}

// Ungated lets the reads of ctx run without a permit: for a read that must not wait,
// such as a login, or the next step of a program that already holds a lock others
// wait for.
func Ungated(ctx context.Context) context.Context {
	return withWish(ctx, func(w *wish) { w.ungated = true })
}
