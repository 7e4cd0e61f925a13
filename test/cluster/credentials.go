// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Credentials are what a client trusts of an API server and an API server of
// its clients: a CA, a serving certificate, the key of service accounts and the
// users' tokens. Two clusters with the same ones differ in nothing a TLS
// handshake or a login can tell.
type Credentials struct {
	ca, cert, key, serviceAccountKey []byte // PEM

	mu     sync.Mutex
	tokens map[string]string // by user
}

// NewCredentials makes credentials that no other cluster has.
func NewCredentials() (*Credentials, error) {
	now := time.Now()
	template := func(serial int64, name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(serial),
			Subject:      pkix.Name{CommonName: name},
			NotBefore:    now.Add(-time.Hour),
			NotAfter:     now.Add(365 * 24 * time.Hour),
			KeyUsage:     x509.KeyUsageDigitalSignature,
		}
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	ca := template(1, "kubestandup test CA "+rand.Text()[:8])
	ca.IsCA, ca.BasicConstraintsValid = true, true
	ca.KeyUsage |= x509.KeyUsageCertSign
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return nil, err
	}

	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf := template(2, "kube-apiserver")
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	leaf.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	leaf.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, leafKey.Public(), caKey)
	if err != nil {
		return nil, err
	}

	serviceAccountKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	c := &Credentials{tokens: map[string]string{}}
	c.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
	c.cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leafDER})
	if c.key, err = encodeKey(leafKey); err != nil {
		return nil, err
	}
	if c.serviceAccountKey, err = encodeKey(serviceAccountKey); err != nil {
		return nil, err
	}
	return c, nil
}

// CA is the certificate of the authority, PEM encoded.
func (c *Credentials) CA() []byte { return c.ca }

// token returns the token of a user, the same one every time.
func (c *Credentials) token(user string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tokens[user] == "" {
		c.tokens[user] = rand.Text()
	}
	return c.tokens[user]
}

// write puts the files that the API server reads into dir.
func (c *Credentials) write(dir string, users []User) error {
	var tokens strings.Builder
	for _, u := range users {
		fmt.Fprintf(&tokens, "%s,%q,%q,%q\n", c.token(u.Name), u.Name, u.Name, strings.Join(u.Groups, ","))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		"ca.crt":     c.ca,
		"tls.crt":    c.cert,
		"tls.key":    c.key,
		"sa.key":     c.serviceAccountKey,
		"tokens.csv": []byte(tokens.String()),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
