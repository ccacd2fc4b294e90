package sim

import (
	"io"
	"os"
	"testing"
)

// table is where the tables go: to the reader with -v, else nowhere.
func table(t *testing.T) io.Writer {
	t.Helper()
	if testing.Verbose() {
		return os.Stdout
	}
	return io.Discard
}
