// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestABodyThatTrickles: bytes arrive all the time, so that only a bound of the
// whole request ends it.
func TestABodyThatTrickles(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte("x")); err != nil {
				return
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	// It is over long before, unless nothing bounds the request.
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	a := account{transfer: 200 * time.Millisecond}
	_, err := a.get(ctx, server.URL+"/x.tgz", server.URL, false, maxChart)
	if late, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); !ok || !late.Timeout() || ctx.Err() != nil {
		t.Errorf("ended with %v (%v)", err, ctx.Err())
	}
	for _, everywhere := range []bool{true, false} {
		if got := (account{}).client(everywhere).Timeout; got != transferTimeout {
			t.Errorf("a request may take %s, want %s", got, transferTimeout)
		}
	}
}
