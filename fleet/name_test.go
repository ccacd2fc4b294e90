package fleet

import (
	"strings"
	"testing"
)

func TestNameFits(t *testing.T) {
	name := strings.Repeat("f", maxFleet)
	m := message{id: newID(), beat: beats - 1, running: 1 << 40, hungry: maxNumber, wish: maxNumber, claim: maxNumber, held: 1, holds: true}
	text := m.encode(prefix(name))
	if len(text) != 63 {
		t.Errorf("the longest name has %d bytes, want the 63 that Postgres keeps: %s", len(text), text)
	}
	got, ok := decode(prefix(name), text)
	if text := (message{id: newID(), beat: beats - 1, running: 999, held: 40_000, holds: true}).encode(prefix(name)); len(text) > 63 || !strings.HasSuffix(text, ":uv4=") {
		t.Errorf("what pressure lets it run is left out, or the name has %d bytes: %s", len(text), text)
	}
	if m.running, m.held, m.holds = maxNumber, 0, false; !ok || got != m {
		t.Errorf("decoded %+v, %v; want %+v", got, ok, m)
	}
}

func TestDecodeIsStrict(t *testing.T) {
	const good = "pgyield:shop:0a1b2c3d:z:1:0:10:7"
	p := prefix("shop")
	if m, ok := decode(p, good); !ok || m != (message{"0a1b2c3d", 35, 1, 0, 36, 7, 0, false}) {
		t.Fatalf("%+v %v", m, ok)
	}
	if m, ok := decode(p, good+":3"); !ok || m != (message{"0a1b2c3d", 35, 1, 0, 36, 7, 3, false}) {
		t.Fatalf("%+v %v", m, ok)
	}
	if m, ok := decode(p, good+":3="); !ok || m != (message{"0a1b2c3d", 35, 1, 0, 36, 7, 3, true}) {
		t.Fatalf("%+v %v", m, ok)
	}
	for _, bad := range []string{
		good + ":0", good + ":03", good + ":3:", good + "=", good + ":=", good + ":3==", good + ":3=1", good + ":3:1", good + ":3= ",
		prefix(strings.Repeat("f", maxFleet)) + "0a1b2c3d:1000:1000:1000:1000:1000:1", // longer than Postgres keeps
		"", "psql", "pgyield:", p, "pgyield:shop2:0a1b2c3d:z:1:0:10:7", "pgyield:sho:0a1b2c3d:z:1:0:10:7",
		good + ":", good + " ", " " + good, strings.TrimSuffix(good, ":7"), good[:len(good)-1],
		p + "0a1b2c3:z:1:0:10:7", p + "0a1b2c3d4:z:1:0:10:7", p + "0A1b2c3d:z:1:0:10:7",
		p + "0a1b2c3d:z:01:0:10:7", p + "0a1b2c3d:z:-1:0:10:7", p + "0a1b2c3d:z:+1:0:10:7", p + "0a1b2c3d:z::0:10:7",
		p + "0a1b2c3d:z:10000:0:10:7", p + "0a1b2c3d:zzzzz:1:0:10:7", p + "0a1b2c3d:z:1:0:10:7\x00", p + "0a1b2c3d:z:1:0:1é:7",
		good + " - 10.0.0.1:5432", // as a bouncer may add
	} {
		if m, ok := decode(p, bad); ok {
			t.Errorf("%q was taken for %+v", bad, m)
		}
	}
}

func FuzzDecode(f *testing.F) {
	p := prefix("a")
	f.Add("pgyield:a:0a1b2c3d:z:1:0:10:7")
	f.Add("pgyield:a:0a1b2c3d:z:1:0:10:7:3=")
	f.Add("pgyield:a:::::")
	f.Fuzz(func(t *testing.T, name string) {
		if m, ok := decode(p, name); ok && m.encode(p) != name {
			t.Fatalf("%q is read as %+v, which is written %q", name, m, m.encode(p))
		}
	})
}

func TestNewerWraps(t *testing.T) {
	for _, c := range []struct {
		a, b uint32
		want bool
	}{{1, 0, true}, {0, 1, false}, {5, 5, false}, {0, beats - 1, true}, {beats - 1, 0, false}, {3, beats - 3, true}} {
		if got := newer(c.a, c.b); got != c.want {
			t.Errorf("newer(%d, %d) = %v", c.a, c.b, got)
		}
	}
}

func TestIDsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 10_000 {
		id := newID()
		if len(id) != idLength || !inBase36(id) || seen[id] {
			t.Fatalf("id %q", id)
		}
		seen[id] = true
	}
}
