package pgyield_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgyield/pgyield"
)

// The documented tables of what takes a permit. A method that a new pgxpool brings must
// be put into one of them on purpose.
var (
	gatedMethods   = []string{"Query", "QueryRow", "Exec", "SendBatch", "BeginTx"}
	ungatedMethods = []string{
		"Acquire", "AcquireAllIdle", "AcquireFunc", "Begin", "Close", "Config", "CopyFrom", "Ping", "Reset", "Stat",
	}
	ownMethods = []string{"AcquireRead", "ReadStat", "SetMode", "Unwrap"}
)

func TestEveryMethodOfPgxpoolIsListed(t *testing.T) {
	theirs, ours := reflect.TypeFor[*pgxpool.Pool](), reflect.TypeFor[*pgyield.Pool]()
	listed := slices.Concat(gatedMethods, ungatedMethods)
	for _, m := range methods(theirs) {
		if !slices.Contains(listed, m.Name) {
			t.Errorf("pgxpool's %s is in neither table", m.Name)
		}
		own, ok := ours.MethodByName(m.Name)
		if !ok {
			t.Errorf("Pool lacks pgxpool's %s", m.Name)
			continue
		}
		if want, got := signature(m), signature(own); want != got {
			t.Errorf("%s is %s, pgxpool's is %s", m.Name, got, want)
		}
	}
	for _, m := range methods(ours) {
		if _, shared := theirs.MethodByName(m.Name); !shared && !slices.Contains(ownMethods, m.Name) {
			t.Errorf("Pool's %s is not among the methods of its own", m.Name)
		}
	}
	for _, name := range slices.Concat(listed, ownMethods) {
		if _, ok := ours.MethodByName(name); !ok {
			t.Errorf("%s is listed, but Pool has no such method", name)
		}
	}
}

func methods(t reflect.Type) []reflect.Method {
	all := make([]reflect.Method, t.NumMethod())
	for i := range all {
		all[i] = t.Method(i)
	}
	return all
}

// signature is a method's type without its receiver.
func signature(m reflect.Method) string {
	t := m.Type
	in := make([]reflect.Type, 0, t.NumIn())
	for i := 1; i < t.NumIn(); i++ {
		in = append(in, t.In(i))
	}
	out := make([]reflect.Type, 0, t.NumOut())
	for i := range t.NumOut() {
		out = append(out, t.Out(i))
	}
	return reflect.FuncOf(in, out, t.IsVariadic()).String()
}
