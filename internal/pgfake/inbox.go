package pgfake

import (
	"io"
	"net"
	"sync"
)

const inboxSize = 64 << 10

// inbox is what the kernel's receive buffer is to a real server: it takes what
// the client sends while the session is busy, so that a client can send its
// next message, or leave, while a statement runs.
type inbox struct {
	mu   sync.Mutex // guards what follows
	more *sync.Cond // something changed
	data []byte
	err  error         // why there will be no more
	done chan struct{} // closed with err
}

func newInbox() *inbox {
	in := &inbox{done: make(chan struct{})}
	in.more = sync.NewCond(&in.mu)
	return in
}

// pump moves bytes from conn until it ends.
func (in *inbox) pump(conn net.Conn) {
	buf := make([]byte, 8<<10)
	for {
		n, err := conn.Read(buf)
		in.mu.Lock()
		in.data = append(in.data, buf[:n]...)
		in.more.Broadcast()
		for len(in.data) >= inboxSize && in.err == nil {
			in.more.Wait()
		}
		over := in.err != nil
		in.mu.Unlock()
		if err != nil {
			in.close(io.EOF)
			return
		}
		if over {
			return
		}
	}
}

// close ends the inbox: what has come can still be read, then err.
func (in *inbox) close(err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.err == nil {
		in.err = err
		close(in.done)
		in.more.Broadcast()
	}
}

// Read implements io.Reader for pgproto3.Backend.
func (in *inbox) Read(p []byte) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(in.data) == 0 && in.err == nil {
		in.more.Wait()
	}
	if len(in.data) == 0 {
		return 0, in.err
	}
	n := copy(p, in.data)
	in.data = in.data[:copy(in.data, in.data[n:])]
	in.more.Broadcast()
	return n, nil
}
