// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Prove compares the live server with what is expected. Nil means that it is
// the expected one: from here on mutations pass, each backed by an identity
// that is at most ten seconds old.
//
// The errors: *UnprovedError when nothing is expected, or the connection can
// never be proof; *MismatchError when the server is another one, or another
// one answers at its address; *UsageError for an expectation that cannot be
// used; any other when the server could not be asked.
func (s *Server) Prove(ctx context.Context, expected Expectation) error {
	expected, err := Merge(expected)
	if err != nil {
		return err
	}
	if err := s.lostProof(); err != nil {
		return err
	}
	if expected.Empty() {
		return s.unproved(ctx)
	}
	found := s.unasked()
	if expected.Server != found.URL {
		return s.lose(&MismatchError{Expected: expected, Found: found, Reason: "the URL differs"})
	}
	if s.unprovable != "" {
		return &UnprovedError{Found: found, Reason: s.unprovable}
	}
	found, asked, err := s.look(ctx)
	switch {
	case isWrongServer(err):
		return s.lose(&MismatchError{
			Expected: expected, Found: found, Cause: err,
			Reason: "another one answers at its address: " + rootMessage(err),
		})
	case err != nil:
		return err
	case differ(expected.UID, found.UID):
		return s.lose(&MismatchError{
			Expected: expected, Found: found,
			Reason: "the URL is the same, but another cluster is behind it: the UID of its Namespace kube-system differs",
		})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == nil {
		s.uid, s.at = found.UID, asked
	}
	return s.lost
}

func (s *Server) unproved(ctx context.Context) error {
	found, err := s.Identity(ctx)
	if err != nil {
		return err
	}
	reason := "no cluster was named"
	if s.unprovable != "" {
		reason = s.unprovable
	}
	return &UnprovedError{Found: found, Reason: reason}
}

// confirm is asked before each mutation. Nil lets it pass.
func (s *Server) confirm(ctx context.Context) error {
	if err := s.lostProof(); err != nil {
		return err
	}
	if !s.Proved() {
		return &UnprovedError{Found: Identity{URL: s.URL()}, Reason: "no cluster was named"}
	}
	if s.fresh() {
		return nil
	}
	// One look serves all that wait for it, so it must not end with the first
	// of them.
	look := s.flight.DoChan("", func() (any, error) {
		return nil, s.lookAgain(context.WithoutCancel(ctx))
	})
	select {
	case <-ctx.Done():
		return ctx.Err()
	case done := <-look:
		return done.Err
	}
}

func (s *Server) lookAgain(ctx context.Context) error {
	if s.fresh() {
		return nil
	}
	_, _, err := s.look(ctx)
	if lost := s.lostProof(); lost != nil {
		return lost
	}
	if err != nil {
		return &unreadable{err}
	}
	return nil
}

// look reads the identity and holds it against what was proved. It returns
// the time before it asked, so that a proof is never dated too young.
func (s *Server) look(ctx context.Context) (Identity, time.Time, error) {
	found := s.unasked()
	ctx, cancel := context.WithTimeout(ctx, identityTimeout)
	defer cancel()
	asked := s.options.Now()
	uid, err := s.readUID(ctx)

	s.mu.Lock()
	defer s.mu.Unlock()
	proved := s.lost == nil && s.uid != ""
	if err != nil {
		if proved && isWrongServer(err) {
			s.lost = changed(s.uid, found, err)
		}
		return found, asked, fmt.Errorf("server %s: %w", s.endpoint, err)
	}
	found.UID = uid
	s.seen = found
	switch {
	case proved && uid != s.uid:
		s.lost = changed(s.uid, found, nil)
	case proved:
		s.at = asked
	}
	return found, asked, nil
}

// unasked is what is known of the server without a request.
func (s *Server) unasked() Identity {
	return Identity{URL: s.URL(), CAFingerprint: s.ca, Context: s.context, Unprovable: s.unprovable}
}

// fresh is true while the proof is young enough.
func (s *Server) fresh() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.options.Now()
	return s.lost == nil && s.uid != "" && young(now.Sub(s.at)) && young(now.Round(0).Sub(s.at.Round(0)))
}

// young is asked of both clocks: the monotonic one stands still while a laptop
// sleeps, the wall clock may be set back.
func young(age time.Duration) bool { return age >= 0 && age < identityMaxAge }

func (s *Server) lostProof() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// lose ends every proof for good: whoever was told once that the server is the
// wrong one shall not change it in the same run.
func (s *Server) lose(why error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == nil {
		s.lost = why
	}
	return s.lost
}

func changed(uid string, found Identity, handshake error) *MismatchError {
	e := &MismatchError{
		Expected: Expectation{Server: found.URL, UID: uid, Origin: "the start of this command"},
		Found:    found,
		Reason:   "the cluster behind its address changed since this command started",
		Cause:    handshake,
	}
	if handshake != nil {
		e.Reason += ": " + rootMessage(handshake)
	}
	return e
}

// unreadable is a look that brought no answer: the proof stands, but cannot be
// confirmed now.
type unreadable struct{ cause error }

func (e *unreadable) Error() string {
	return fmt.Sprintf("who it is could not be confirmed: %v", e.cause)
}
func (e *unreadable) Unwrap() error { return e.cause }

// rootMessage is the innermost text of an error, without the wrapping that
// repeats the URL.
func rootMessage(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return printable(err.Error())
		}
		err = inner
	}
}
