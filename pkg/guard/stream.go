// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
)

// maxStreamError bounds what a kubelet may say about a failed forward.
const maxStreamError = 4 << 10

// artifactConn is a forwarded port as a net.Conn. A pipe stands between the
// caller and the stream, since streams know no deadlines.
type artifactConn struct {
	net.Conn // the caller's end of the pipe
	upgraded httpstream.Connection
	closing  sync.Once

	mu     sync.Mutex
	remote error // what the kubelet said
}

// openStream asks for the pair of streams that carries one connection to a
// port, as client-go's portforward.PortForwarder does for each that it
// accepts.
func openStream(upgraded httpstream.Connection, port int) (net.Conn, error) {
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	failures, err := upgraded.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	_ = failures.Close() // nothing is ever written to it; reading stays open
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := upgraded.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	c := &artifactConn{Conn: near, upgraded: upgraded}
	go c.receive(far, data, failures)
	go func() {
		_, _ = io.Copy(data, far) // a failure shows in what is received
		_ = data.Close()
	}()
	return c, nil
}

// receive copies what the pod sends until it ends, then hands over what the
// kubelet said, and only then ends the caller's reading.
func (c *artifactConn) receive(far net.Conn, data, failures httpstream.Stream) {
	_, err := io.Copy(far, data)
	// What was not read would keep the error stream from ending.
	_ = data.Reset()
	said, readErr := io.ReadAll(io.LimitReader(failures, maxStreamError))
	switch {
	case len(said) > 0:
		err = sanitized{errors.New(string(said))}
	case err == nil && readErr != nil:
		err = readErr
	}
	c.mu.Lock()
	c.remote = err
	c.mu.Unlock()
	_ = far.Close()
	_ = c.upgraded.Close()
}

// Read reports what the kubelet said in the place of a bare end of file.
func (c *artifactConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if errors.Is(err, io.EOF) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.remote != nil {
			return n, c.remote
		}
	}
	return n, err
}

// Close ends the connection and the upgraded one below it.
func (c *artifactConn) Close() error {
	var err error
	c.closing.Do(func() { err = errors.Join(c.Conn.Close(), c.upgraded.Close()) })
	return err
}
