// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// Cluster is the way to an artifact that leads through the API server. Package
// guard implements it.
type Cluster interface {
	// DialArtifact opens one connection to one port of one pod. ctx bounds the
	// dial, not the connection.
	DialArtifact(ctx context.Context, namespace, pod string, port int) (net.Conn, error)
	// GetArtifact GETs one path of one service, over HTTP. port is a number or
	// a name. The caller closes the body.
	GetArtifact(ctx context.Context, namespace, service, port, path string) (io.ReadCloser, error)
}

// Errors that a caller may look for.
var (
	// ErrNoArtifact is that a source has produced nothing yet.
	ErrNoArtifact = errors.New("it has no artifact yet")
	// ErrUnreachable is that the artifact exists, and none of the ways to it
	// led there. A working tree can be built instead.
	ErrUnreachable = errors.New("its artifact cannot be fetched")
)

// Fetcher fetches the artifacts of sources, each once.
type Fetcher struct {
	core    typedcorev1.CoreV1Interface
	cluster Cluster
	limit   limits
	dial    func(ctx context.Context, network, address string) (net.Conn, error)

	mu     sync.Mutex
	closed bool
	trees  map[string]*fetched
}

// fetched is one artifact. It is fetched by the first who asks, and whoever
// asks meanwhile waits.
type fetched struct {
	once sync.Once
	tree *Tree
	err  error
}

// NewFetcher reads the pods behind a source's Service with core, and reaches
// them through cluster. Where both are nil, an artifact is only fetched from
// its own URL.
func NewFetcher(core typedcorev1.CoreV1Interface, cluster Cluster) *Fetcher {
	return &Fetcher{
		core: core, cluster: cluster, limit: defaultLimits(),
		dial: (&net.Dialer{Timeout: dialTimeout}).DialContext, trees: map[string]*fetched{},
	}
}

// Fetch returns the tree that the source's artifact holds. It is tried from
// the artifact's URL, then by port-forward to a pod behind the Service that the
// URL names, then through the API server's service proxy. What arrives is
// unpacked only when it has the digest that the source states, so it does not
// matter by which way it came.
//
// The error wraps ErrNoArtifact or ErrUnreachable where it is one of them. The
// tree belongs to the Fetcher.
func (f *Fetcher) Fetch(ctx context.Context, source flux.Source) (*Tree, error) {
	if source.Artifact == nil {
		return nil, fmt.Errorf("source %s: %w", source.Ref, ErrNoArtifact)
	}
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil, fmt.Errorf("source %s: the fetcher is closed", source.Ref)
	}
	entry, known := f.trees[source.Artifact.Digest]
	if !known {
		entry = &fetched{}
		f.trees[source.Artifact.Digest] = entry
	}
	f.mu.Unlock()

	entry.once.Do(func() { entry.tree, entry.err = f.fetch(ctx, *source.Artifact) })
	if entry.err == nil {
		return entry.tree, nil
	}
	// A failure is not kept: the controller may be there the next time.
	f.mu.Lock()
	if f.trees[source.Artifact.Digest] == entry {
		delete(f.trees, source.Artifact.Digest)
	}
	f.mu.Unlock()
	return nil, fmt.Errorf("source %s: %w", source.Ref, entry.err)
}

// Trees gives the trees of the sources of a snapshot.
func (f *Fetcher) Trees(sources []flux.Source) Trees {
	type key struct{ kind, namespace, name string }
	known := map[key]flux.Source{}
	for _, s := range sources {
		known[key{s.Ref.Kind, s.Ref.Namespace, s.Ref.Name}] = s
	}
	return func(ctx context.Context, ref flux.Ref) (*Tree, error) {
		source, ok := known[key{ref.Kind, ref.Namespace, ref.Name}]
		if !ok || source.Artifact == nil {
			return nil, nil // the contract of Trees
		}
		return f.Fetch(ctx, source)
	}
}

// Close removes all trees. Fetch fails from then on.
func (f *Fetcher) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	var all error
	for _, entry := range f.trees {
		// Waits for a fetch that is under way, and prevents a later one.
		entry.once.Do(func() { entry.err = errors.New("the fetcher is closed") })
		if entry.tree != nil {
			all = errors.Join(all, entry.tree.Close())
		}
	}
	f.trees = nil
	return all
}

// fetch fetches an artifact and unpacks it.
func (f *Fetcher) fetch(ctx context.Context, artifact flux.Artifact) (*Tree, error) {
	return fetch(ctx, f, artifact, func(a archive) (*Tree, error) { return unpack(a, f.limit) })
}

// fetch tries the ways in order, and uses what arrives. What was downloaded is
// gone when it returns.
func fetch[T any](ctx context.Context, f *Fetcher, artifact flux.Artifact, use func(archive) (T, error)) (none T, err error) {
	digest, err := parseDigest(artifact.Digest)
	if err != nil {
		return none, err
	}
	at, err := parseLocation(artifact.URL)
	if err != nil {
		return none, err
	}
	var tried []error
	for _, w := range f.ways(at) {
		used, err := along(ctx, f, w, digest, use)
		if err == nil {
			return used, nil
		}
		if ctx.Err() != nil {
			return none, fmt.Errorf("%w: %w", ErrUnreachable, ctx.Err())
		}
		var unusable *unusableError
		if errors.As(err, &unusable) {
			return none, err // it is what the source offers; another way brings the same
		}
		tried = append(tried, fmt.Errorf("%s: %w", w.name, err))
	}
	return none, &unreachableError{artifact: artifact, tried: tried}
}

// along fetches by one way.
func along[T any](ctx context.Context, f *Fetcher, w way, digest checksum, use func(archive) (T, error)) (used T, err error) {
	body, err := w.open(ctx)
	if err != nil {
		return used, err
	}
	arrived, err := download(body, digest, f.limit)
	if err != nil {
		return used, w.explain(err)
	}
	defer func() { err = errors.Join(err, arrived.remove()) }()
	return use(arrived)
}

// unreachableError is one sentence per way.
type unreachableError struct {
	artifact flux.Artifact
	tried    []error
}

func (e *unreachableError) Error() string {
	text := fmt.Sprintf("%s (%s)", ErrUnreachable, e.artifact.Digest)
	for _, err := range e.tried {
		text += "; " + err.Error()
	}
	return text
}

func (e *unreachableError) Is(target error) bool { return target == ErrUnreachable }
func (e *unreachableError) Unwrap() []error      { return e.tried }

// unusableError is about an artifact that arrived as its source made it.
type unusableError struct{ err error }

func (e *unusableError) Error() string { return e.err.Error() }
func (e *unusableError) Unwrap() error { return e.err }
