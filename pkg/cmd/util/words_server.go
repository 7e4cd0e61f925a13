// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// statusWords says what an API server answered, and what to do about it. The
// server's own sentence names the object, so it is kept.
func statusWords(s metav1.Status) string {
	message := strings.TrimSpace(s.Message)
	switch s.Reason {
	case metav1.StatusReasonUnauthorized:
		return "server does not accept these credentials (" + orReason(message, "Unauthorized") + "): " +
			"log in again, or choose another user with --context or --user"
	case metav1.StatusReasonForbidden:
		return orReason(message, "server forbids the request") + ": ask for that permission, or choose another user with --context or --as"
	case metav1.StatusReasonNotFound:
		if s.Details == nil || s.Details.Name == "" {
			return "server does not serve what was asked for (" + orReason(message, "NotFound") + "): " +
				"see what it serves with kubectl api-resources"
		}
		return message
	case metav1.StatusReasonInvalid:
		return invalidWords(s)
	case metav1.StatusReasonConflict:
		return message + ": it changed in the meantime, so run the command again"
	case metav1.StatusReasonTimeout, metav1.StatusReasonServerTimeout:
		return "server took too long: " + message + ": run the command again"
	case metav1.StatusReasonTooManyRequests:
		again := "run the command again later"
		if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
			again = fmt.Sprintf("run the command again in %d s", s.Details.RetryAfterSeconds)
		}
		return "server has too many requests (" + orReason(message, "TooManyRequests") + "): " + again
	case metav1.StatusReasonServiceUnavailable, metav1.StatusReasonInternalError:
		return "server failed: " + orReason(message, string(s.Reason)) + ": run the command again, and if that does not help, read the API server's log"
	case metav1.StatusReasonExpired, metav1.StatusReasonGone:
		return "server has already forgotten what was being read (" + message + "): run the command again"
	default:
		return orReason(message, fmt.Sprintf("server answered %d %s", s.Code, s.Reason))
	}
}

func orReason(message, reason string) string {
	if message == "" {
		return reason
	}
	return message
}

// invalidWords lists each field that the server refuses on a line of its own.
func invalidWords(s metav1.Status) string {
	if s.Details == nil || len(s.Details.Causes) == 0 {
		return orReason(s.Message, "server says that the object is invalid")
	}
	var lines []string
	for _, cause := range s.Details.Causes {
		line := "  " + strings.TrimPrefix(cause.Field+": "+cause.Message, ": ")
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	object := strings.TrimSpace(s.Details.Kind + " " + s.Details.Name)
	return object + " is not valid, says the server:\n" + strings.Join(lines, "\n")
}

func noMatchWords(err error) string {
	what := err.Error()
	if kind, ok := errors.AsType[*meta.NoKindMatchError](err); ok {
		what = "kind " + kind.GroupKind.String()
	} else if resource, ok := errors.AsType[*meta.NoResourceMatchError](err); ok {
		what = "resource " + resource.PartialResource.GroupResource().String()
	}
	return "server does not serve " + what + ": its CustomResourceDefinition is not installed, or not in a version that is known here; see what it serves with kubectl api-resources"
}

// networkWords says why a server could not be spoken to. inner is what the
// words stand for, nil when err is of another kind.
func networkWords(err error) (said string, inner error) {
	outer := urlError(err)
	if outer == nil {
		return "", nil
	}
	server := outer.URL
	if u, err := url.Parse(outer.URL); err == nil && u.Host != "" {
		server = u.Host
	}
	return "server " + server + " " + cause(outer), outer
}

// cause completes a sentence that begins with the server.
func cause(err *url.Error) string {
	const check = "check that it runs and that the context in use names the right one (kubectl config view --minify)"
	dns, isDNS := errors.AsType[*net.DNSError](err)
	op, isOp := errors.AsType[*net.OpError](err)
	plain := err.Err.Error()
	switch {
	case isOp && op.Op == "proxyconnect":
		return "was not reached, since its proxy does not answer: " + op.Err.Error() + ": check --proxy-url and HTTPS_PROXY"
	case isDNS && dns.IsNotFound:
		return "was not found: there is no host " + dns.Name + ": " + check
	case isDNS:
		return "was not found, since the name server does not answer: " + dns.Err + ": check this machine's network"
	case errors.Is(err, syscall.ECONNREFUSED), strings.Contains(plain, "connection refused"):
		return "refuses connections: " + check
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "cannot be reached from here: check this machine's network and VPN"
	case strings.Contains(plain, "getting credentials: "):
		return "was not asked, since the context's credential plugin failed: " + credentialWords(plain)
	}
	if words := certificateWords(err); words != "" {
		return words
	}
	switch {
	case errors.Is(err, context.Canceled):
		return "was being asked when the command was interrupted: the same command can be run again"
	case err.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return "did not answer in time: " + check + ", or allow more with --request-timeout"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "closed the connection: it may be restarting, or a proxy stands between; run the command again"
	default:
		return "could not be asked: " + plain + ": " + check
	}
}

// certificateWords never suggests to switch the verification off: a
// certificate that does not fit is how another cluster shows itself.
func certificateWords(err error) string {
	const other = ": this may be another server than you think; correct certificate-authority or tls-server-name of the context in use if it is the right one"
	var record tls.RecordHeaderError
	if errors.As(err, &record) || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		return "does not speak TLS: check the server's URL and port in the context in use"
	}
	if e, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "has a certificate that the context's CA did not sign (" + e.Error() + ")" + other
	}
	if e, ok := errors.AsType[x509.HostnameError](err); ok {
		return "has a certificate for other names (" + e.Error() + ")" + other
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		return "has a certificate that is not valid (" + e.Error() + "): check the clock of this machine, and renew the certificate if it is right"
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "has a certificate that cannot be verified (" + e.Err.Error() + ")" + other
	}
	// crypto/tls reports the other side's alert in this form alone.
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" {
		return "ended the TLS handshake (" + op.Err.Error() + "): its rules may want another client certificate; log in again, or check the user of the context in use"
	}
	return ""
}

// credentialWords keeps the first line of what client-go says of a credential
// plugin; the rest is a page of general advice.
func credentialWords(plain string) string {
	_, said, _ := strings.Cut(plain, "getting credentials: ")
	said, _, _ = strings.Cut(said, "\n")
	said = strings.TrimPrefix(said, "exec: ")
	if strings.HasSuffix(said, "not found") {
		return said + ": install it, or choose another user with --context or --user"
	}
	return said + ": run it by hand to see why, or log in again (kubectl config view --minify shows it)"
}

func urlError(err error) *url.Error {
	e, _ := errors.AsType[*url.Error](err)
	return e
}
