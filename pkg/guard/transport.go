// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	kjson "sigs.k8s.io/json"
)

// maxDeleteOptions is more than any DeleteOptions take.
const maxDeleteOptions = 64 << 10

// transport is the guard. It does not say what it wraps: a library that could
// unwrap it could get round it.
type transport struct {
	server *Server
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper. A request that it refuses is not
// sent, and the error is a *RefusedError.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	c, decision, why := t.server.endpoint.classify(r)
	if decision == inspect {
		var err error
		if r, decision, err = inspectDelete(r); err != nil {
			return nil, err
		}
	}
	switch decision {
	case pass:
	case mutate:
		if err := t.server.confirm(r.Context()); err != nil {
			closeBody(r)
			return nil, t.server.refusal(r, c, err)
		}
	default:
		closeBody(r)
		return nil, c.refused(why, nil)
	}
	return t.next.RoundTrip(r)
}

// CloseIdleConnections lets http.Client do so.
func (t *transport) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(t.next) }

// inspectDelete looks for the dry run in the body of a DELETE. When it finds
// one, the request that it returns sends the bytes that it looked at and no
// others, however often the transport below sends it.
func inspectDelete(r *http.Request) (*http.Request, verdict, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxDeleteOptions+1))
	if err != nil {
		closeBody(r)
		return nil, refuse, err
	}
	looked := r.WithContext(r.Context())
	if len(body) > maxDeleteOptions {
		looked.Body = readCloser{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
		return looked, mutate, nil
	}
	looked.Body = readCloser{bytes.NewReader(body), r.Body}
	looked.ContentLength = int64(len(body))
	looked.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	if r.Header.Get("Content-Encoding") == "" && bodyDryRun(r, body) {
		return looked, pass, nil
	}
	return looked, mutate, nil
}

func bodyDryRun(r *http.Request, body []byte) bool {
	if len(body) == 0 {
		return asksDryRun(r.URL)
	}
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return false
	}
	var (
		o  *metav1.DeleteOptions
		ok bool
	)
	switch mediaType {
	case runtime.ContentTypeJSON:
		o, ok = jsonOptions(body)
	case runtime.ContentTypeProtobuf:
		o, ok = protobufOptions(body)
	}
	return ok && len(o.DryRun) == 1 && o.DryRun[0] == metav1.DryRunAll
}

type readCloser struct {
	io.Reader
	io.Closer
}

// jsonOptions reads with the API server's own decoder, more strictly: a field
// given twice, or unknown, is not understood.
func jsonOptions(body []byte) (*metav1.DeleteOptions, bool) {
	o := &metav1.DeleteOptions{}
	strict, err := kjson.UnmarshalStrict(body, o)
	return o, err == nil && len(strict) == 0 && (o.Kind == "" || o.Kind == "DeleteOptions")
}

// protobufOptions reads what controller-runtime sends for built-in types: the
// envelope of apimachinery's protobuf serializer, then the options.
func protobufOptions(body []byte) (*metav1.DeleteOptions, bool) {
	o := &metav1.DeleteOptions{}
	enveloped, ok := bytes.CutPrefix(body, []byte("k8s\x00"))
	var envelope runtime.Unknown
	if !ok || envelope.Unmarshal(enveloped) != nil || envelope.Kind != "DeleteOptions" ||
		envelope.ContentEncoding != "" {
		return nil, false
	}
	return o, o.Unmarshal(envelope.Raw) == nil
}

// refusal is the error for a mutation that confirm did not let pass.
func (s *Server) refusal(r *http.Request, c call, err error) error {
	if ctx := r.Context().Err(); ctx != nil && errors.Is(err, ctx) {
		return fmt.Errorf("%s was not sent: %w", c.refused("", nil).subject(), err)
	}
	var (
		unproved *UnprovedError
		mismatch *MismatchError
		again    *unreadable
	)
	switch {
	case errors.As(err, &unproved):
		return c.refused("server "+s.URL()+" is not proved; name the cluster with --expect-server or in standup.yaml "+
			"(kubectl standup identify prints the lines)", nil)
	case errors.As(err, &mismatch):
		return c.refused("server "+s.URL()+" is not the expected one: "+mismatch.Reason, err)
	case errors.As(err, &again):
		refused := c.refused("server "+s.URL()+": "+again.Error(), err)
		refused.Transient = true
		return refused
	}
	return c.refused("server "+s.URL()+": "+err.Error(), err)
}

func (c *call) refused(why string, cause error) *RefusedError {
	return &RefusedError{
		Verb: c.verb, Resource: c.what(), Namespace: printable(c.namespace), Name: printable(c.name),
		Reason: why, Cause: cause,
	}
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close() // the request is not sent; nothing can be lost
	}
}
