// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sync/singleflight"
)

// Cache is a folder with charts that were fetched, to be used without a network
// afterwards. Any number of processes may use it.
//
// A file requests/SHA256.json says of a repository, chart and version, which may
// be a range, which version was chosen and which file charts/SHA256.tgz holds
// it, so that the same is rendered until the folder is removed. Each chart is
// checked against the digest that names it whenever it is read.
type Cache struct {
	dir    string
	fetch  bool
	single singleflight.Group

	lock sync.Mutex
	// indexes are those of this run. They are never written down.
	indexes map[string]*index
}

// NewCache is the cache in dir, which is made when the first chart is written.
// With fetch, what it does not hold is fetched; without, it is never changed and
// no network is used.
func NewCache(dir string, fetch bool) *Cache {
	return &Cache{dir: dir, fetch: fetch, indexes: map[string]*index{}}
}

// entry is the content of a file below requests.
type entry struct {
	request
	Version string `json:"version"`
	Origin  string `json:"origin"`
	// Digest is that of a registry's manifest.
	Digest string `json:"digest,omitempty"`
	// SHA256 is that of the chart's archive, in hexadecimal.
	SHA256 string `json:"sha256"`
}

// errNotCached says that nobody has fetched the chart.
var errNotCached = errors.New("it is not in the cache")

// damagedError says that a file of the cache is not what was written.
type damagedError struct{ file string }

func (e *damagedError) Error() string {
	return fmt.Sprintf("file %s of the cache is damaged: fetch the chart again (--fetch-charts), or remove the file", e.file)
}

// get is the chart that was fetched for the same request, else what fetch gives.
func (k *Cache) get(ctx context.Context, q request, fetch func(context.Context) (*packed, error)) (*packed, error) {
	made, err, _ := k.single.Do(q.file(), func() (any, error) {
		p, err := k.read(q)
		var damaged *damagedError
		switch {
		case err == nil:
			return p, nil
		case !errors.Is(err, errNotCached) && !errors.As(err, &damaged):
			return nil, err
		case !k.fetch && errors.Is(err, errNotCached):
			return nil, fmt.Errorf("%w at %s: fetch it once (--fetch-charts)", err, k.dir)
		case !k.fetch:
			return nil, err
		}
		if p, err = fetch(ctx); err != nil {
			return nil, err
		}
		// An error page that says 200 is not worth keeping.
		if _, err := load(p.raw); err != nil {
			return nil, fmt.Errorf("%s is no chart: %w", p.Origin, err)
		}
		return p, k.write(q, p)
	})
	if err != nil {
		return nil, err
	}
	p := *made.(*packed) // what is shared is not changed
	return &p, nil
}

// file is the name of a request's file, below requests. No part of it is taken
// from the request.
func (q request) file() string {
	// Only strings, which always encode.
	raw, _ := json.Marshal(q)
	return digestOf(raw) + ".json"
}

func digestOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

const (
	requestsFolder = "requests"
	chartsFolder   = "charts"
	archiveEnd     = ".tgz"
	// maxEntry is in bytes.
	maxEntry = 64 << 10
)

// read wraps errNotCached for what is not there.
func (k *Cache) read(q request) (*packed, error) {
	raw, err := k.content(requestsFolder, q.file(), maxEntry)
	if err != nil {
		return nil, err
	}
	var e entry
	if json.Unmarshal(raw, &e) != nil || e.request != q || e.Version == "" || len(e.SHA256) != 2*sha256.Size {
		return nil, &damagedError{filepath.Join(k.dir, requestsFolder, q.file())}
	}
	name := filepath.Base(e.SHA256) + archiveEnd
	if raw, err = k.content(chartsFolder, name, maxChart); err != nil {
		return nil, err
	}
	if digestOf(raw) != e.SHA256 {
		return nil, &damagedError{filepath.Join(k.dir, chartsFolder, name)}
	}
	return &packed{raw: raw, Version: e.Version, Origin: e.Origin, Digest: e.Digest}, nil
}

// content is a file of the cache. What is larger than limit was not written by
// this package.
func (k *Cache) content(folder, name string, limit int64) (raw []byte, err error) {
	path := filepath.Join(k.dir, folder, name)
	f, err := os.Open(path) // below the user's own folder
	if errors.Is(err, os.ErrNotExist) {
		return nil, errNotCached
	}
	if err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if raw, err = io.ReadAll(io.LimitReader(f, limit+1)); err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	if int64(len(raw)) > limit {
		return nil, &damagedError{path}
	}
	return raw, nil
}

// write keeps the chart, then says for which request: who finds the second finds
// the first.
func (k *Cache) write(q request, p *packed) error {
	e := entry{request: q, Version: p.Version, Origin: p.Origin, Digest: p.Digest, SHA256: digestOf(p.raw)}
	if err := k.replace(chartsFolder, e.SHA256+archiveEnd, p.raw); err != nil {
		return err
	}
	wanted := []string{q.Wanted}
	if q.More == "" && p.Version != q.Wanted { // who asks for that very version gets the same
		wanted = append(wanted, p.Version)
	}
	for _, e.Wanted = range wanted {
		raw, err := json.MarshalIndent(e, "", "  ")
		if err != nil {
			return fmt.Errorf("cache: %w", err)
		}
		if err := k.replace(requestsFolder, e.file(), append(raw, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// replace writes a file at once, so that no process reads a part of it. What is
// the same is left: another process may be reading it.
func (k *Cache) replace(folder, name string, raw []byte) (err error) {
	if have, err := k.content(folder, name, int64(len(raw))); err == nil && bytes.Equal(have, raw) {
		return nil
	}
	in := filepath.Join(k.dir, folder)
	if err := os.MkdirAll(in, 0o700); err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	f, err := os.CreateTemp(in, "kubestandup-") // for this user alone
	if err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("cache: %w", errors.Join(err, os.Remove(f.Name())))
		}
	}()
	if _, err := f.Write(raw); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(in, name))
}

// index is one that this run has read, else what fetch gives.
func (k *Cache) index(key string, fetch func() (*index, error)) (*index, error) {
	made, err, _ := k.single.Do("index "+key, func() (any, error) {
		k.lock.Lock()
		known := k.indexes[key]
		k.lock.Unlock()
		if known != nil {
			return known, nil
		}
		read, err := fetch()
		if err != nil {
			return nil, err
		}
		k.lock.Lock()
		k.indexes[key] = read
		k.lock.Unlock()
		return read, nil
	})
	if err != nil {
		return nil, err
	}
	return made.(*index), nil
}
