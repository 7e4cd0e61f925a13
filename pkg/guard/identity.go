// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

const kubeSystem = "kube-system"

// Identity is what tells one cluster from another.
type Identity struct {
	// URL is the server's, normalised.
	URL string `json:"url"`
	// UID is that of the Namespace kube-system: made once per cluster. It
	// survives a restore of etcd, so two clusters can share it.
	UID string `json:"uid,omitempty"`
	// CAFingerprint is "sha256:" and hex, over the DER of the CA's certificates
	// in the kubeconfig, each once, in byte order. Absent when the kubeconfig
	// carries no CA: the system's roots then vouch for the server.
	CAFingerprint string `json:"caFingerprint,omitempty"`
	// Context is the kubeconfig's context.
	Context string `json:"context,omitempty"`
	// Unprovable is the sentence why this connection can never be proof.
	Unprovable string `json:"unprovable,omitempty"`
}

// CA says in words what vouches for the server.
func (i Identity) CA() string {
	switch {
	case strings.HasPrefix(i.URL, "http:"):
		return "none (plain http)"
	case i.Unprovable != "":
		return "not verified (insecure-skip-tls-verify)"
	}
	return orText(i.CAFingerprint, "the system's roots (the kubeconfig carries no CA)")
}

// Table lists the identity for a person, one property a line.
func (i Identity) Table() string {
	return sideBySide(
		[]string{"server", i.URL},
		[]string{"uid", orText(i.UID, "(not known)")},
		[]string{"ca", i.CA()},
		[]string{"context", orText(printable(i.Context), "(none)")},
	)
}

// fileHeader begins a standup.yaml, so that Flux, which may build the folder
// that it is in, leaves it alone (pkg/standup/config Header).
const fileHeader = `  apiVersion: kubestandup.dev/v1alpha1
  kind: Standup
  metadata:
    name: standup
    annotations: {config.kubernetes.io/local-config: "true"}
`

// Paste is Table and the lines that make this identity an expectation, as
// flags and as standup.yaml.
func (i Identity) Paste() string {
	return i.Table() +
		"If this is the cluster that you mean, add to the command\n" +
		"  " + strings.Join(expectArgs(i.URL, i.UID), " ") + "\n" +
		"or keep as its standup.yaml\n" +
		fileHeader +
		"  cluster:\n" +
		"    server: " + i.URL + "\n" +
		"    uid: " + i.UID
}

// Identity asks the server who it is, in one request, or in two where RBAC
// forbids the first. It needs no proof.
func (s *Server) Identity(ctx context.Context) (Identity, error) {
	found, _, err := s.look(ctx)
	return found, err
}

func (s *Server) readUID(ctx context.Context) (string, error) {
	namespaces := s.metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	object, err := namespaces.Get(ctx, kubeSystem, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		object, err = listOne(ctx, namespaces)
	}
	if err != nil {
		return "", s.explain(err)
	}
	if object.Name != kubeSystem || !validUID(string(object.UID)) {
		return "", errors.New("answer has no usable UID of the Namespace kube-system: is the path of its URL right?")
	}
	return string(object.UID), nil
}

// listOne is for those who may list Namespaces but not get this one.
func listOne(ctx context.Context, namespaces metadata.Getter) (*metav1.PartialObjectMetadata, error) {
	found, err := namespaces.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + kubeSystem})
	if err != nil {
		return nil, err
	}
	for i := range found.Items {
		if found.Items[i].Name == kubeSystem {
			return &found.Items[i], nil
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, kubeSystem)
}

// explain makes one sentence of what came back.
func (s *Server) explain(err error) error {
	err = sanitized{err}
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("identity cannot be read, since both get and list of the Namespace kube-system are forbidden: "+
			`let a ClusterRole grant {apiGroups: [""], resources: [namespaces], resourceNames: [kube-system], verbs: [get]}: %w`, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("credentials of %s were rejected: log in again: %w", contextName(s.context), err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("no Namespace kube-system was found: is this an API server, and is the path of its URL right?: %w", err)
	}
	// net/http repeats the whole URL in front of the cause.
	var inURL *url.Error
	isURL := errors.As(err, &inURL)
	if isURL {
		err = sanitized{inURL.Err}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("identity was not read in time: is the server up, and reachable from here?: %w", err)
	case isWrongServer(err):
		return fmt.Errorf("identity cannot be read: %w: this may be another server than you think; "+
			"correct certificate-authority or tls-server-name of the context in use if it is the right one", err)
	case isURL:
		return fmt.Errorf("identity cannot be read: %w: check that it runs, "+
			"and that the context in use names the right one (kubectl config view --minify)", err)
	}
	return fmt.Errorf("identity cannot be read: %w", err)
}

// isWrongServer is true when the handshake itself says that whoever answers
// is not who the kubeconfig's CA vouches for.
func isWrongServer(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		authority    x509.UnknownAuthorityError
		hostname     x509.HostnameError
		invalid      x509.CertificateInvalidError
		roots        x509.SystemRootsError
		record       tls.RecordHeaderError
	)
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &hostname) ||
		errors.As(err, &invalid) || errors.As(err, &roots) || errors.As(err, &record) ||
		errors.Is(err, http.ErrSchemeMismatch)
}

// caFingerprint hashes the certificates of a PEM bundle; nothing for no
// bundle. Comments and the order in the file do not count.
func caFingerprint(bundle []byte) (string, error) {
	if len(bytes.TrimSpace(bundle)) == 0 {
		return "", nil
	}
	var certificates [][]byte
	for rest := bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type == "CERTIFICATE" {
			certificates = append(certificates, block.Bytes)
		}
	}
	if len(certificates) == 0 {
		return "", errors.New("certificate authority of the kubeconfig holds no certificate in PEM form")
	}
	slices.SortFunc(certificates, bytes.Compare)
	certificates = slices.CompactFunc(certificates, bytes.Equal)
	sum := sha256.New()
	for _, c := range certificates {
		sum.Write(c)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}
