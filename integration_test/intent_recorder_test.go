package integration_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// recorder is a proxy in front of a server that notes every SQL text a client
// sends, in either protocol, and passes everything on unchanged.
type recorder struct {
	network, target string
	listener        net.Listener
	dsn             string

	mu    sync.Mutex
	texts map[string]bool
}

// newRecorder stands in front of the server of a DSN until the test ends.
func newRecorder(t *testing.T, dsn string) *recorder {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	r := &recorder{listener: listener, texts: map[string]bool{}}
	r.network, r.target = "tcp", net.JoinHostPort(config.Host, fmt.Sprint(config.Port))
	if config.Host[0] == '/' {
		r.network, r.target = "unix", fmt.Sprintf("%s/.s.PGSQL.%d", config.Host, config.Port)
	}
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(config.User, config.Password),
		Host: listener.Addr().String(), Path: "/" + config.Database, RawQuery: "sslmode=disable",
	}
	r.dsn = u.String()
	go r.accept()
	return r
}

func (r *recorder) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		go r.serve(client)
	}
}

// serve passes one connection on, both ways, until either side ends it.
func (r *recorder) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial(r.network, r.target)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()
	from := bufio.NewReader(client)
	if err := r.startup(from, client, server); err != nil {
		return
	}
	for {
		kind, err := from.ReadByte()
		if err != nil {
			return
		}
		body, err := message(from)
		if err != nil {
			return
		}
		r.note(kind, body[4:])
		if _, err := server.Write(append([]byte{kind}, body...)); err != nil {
			return
		}
	}
}

// startup passes the first message on; encryption is declined, since nothing
// could be noted then.
func (r *recorder) startup(from *bufio.Reader, client io.Writer, server io.Writer) error {
	const sslRequest, gssRequest = 80877103, 80877104
	for {
		body, err := message(from)
		if err != nil {
			return err
		}
		if len(body) == 8 {
			if code := binary.BigEndian.Uint32(body[4:]); code == sslRequest || code == gssRequest {
				if _, err := client.Write([]byte("N")); err != nil {
					return err
				}
				continue
			}
		}
		_, err = server.Write(body)
		return err
	}
}

// message reads a message behind its kind: a length that counts itself, and the
// rest.
func message(from io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(from, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n < 4 || n > 1<<28 {
		return nil, fmt.Errorf("a message of %d bytes", n)
	}
	body := make([]byte, n)
	copy(body, length[:])
	_, err := io.ReadFull(from, body[4:])
	return body, err
}

// note keeps the text of a Query or Parse message.
func (r *recorder) note(kind byte, body []byte) {
	if kind == 'P' { // behind the statement's name
		i := bytes.IndexByte(body, 0)
		if i < 0 {
			return
		}
		body = body[i+1:]
	} else if kind != 'Q' {
		return
	}
	if i := bytes.IndexByte(body, 0); i >= 0 {
		body = body[:i]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.texts[string(body)] = true
}

// take returns what was noted, and forgets it.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var texts []string
	for text := range r.texts {
		texts = append(texts, text)
	}
	r.texts = map[string]bool{}
	return texts
}
