// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package flux

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Cache is a snapshot that follows a cluster: watches write to it, and
// Snapshot returns what it holds as a value. It is safe for concurrent use.
type Cache struct {
	mu      sync.Mutex
	served  []Resource
	objects map[Ref]cached
}

type cached struct {
	res  Resource
	item item
	// raw is the object without its managedFields, kept for tiers alone: a
	// readyExpr may be evaluated over it.
	raw []byte
}

// NewCache makes an empty cache for the given kinds.
func NewCache(served []Resource) *Cache {
	return &Cache{served: served, objects: map[Ref]cached{}}
}

// Upsert stores one object of the kind.
func (c *Cache) Upsert(res Resource, obj *unstructured.Unstructured) error {
	entry, err := newCached(res, obj)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.objects[entry.item.ref(res)] = entry
	return nil
}

// Delete forgets one object of the kind.
func (c *Cache) Delete(res Resource, obj *unstructured.Unstructured) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.objects, Ref{res.APIVersion(), res.Kind, obj.GetNamespace(), obj.GetName()})
}

// Replace makes the objects of the kind exactly these.
func (c *Cache) Replace(res Resource, objs []*unstructured.Unstructured) error {
	entries := make([]cached, 0, len(objs))
	for _, obj := range objs {
		entry, err := newCached(res, obj)
		if err != nil {
			return err
		}
		entries = append(entries, entry)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for ref := range c.objects {
		if ref.Kind == res.Kind {
			delete(c.objects, ref)
		}
	}
	for _, e := range entries {
		c.objects[e.item.ref(res)] = e
	}
	return nil
}

// Snapshot is what the cache holds now.
func (c *Cache) Snapshot() (*Snapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &Snapshot{Taken: time.Now(), Served: c.served}
	for _, e := range c.objects {
		s.add(e.res, &e.item)
	}
	s.sort()
	for _, ref := range s.exprRefs() {
		if e, ok := c.objects[ref]; ok {
			if err := s.keep(ref, e.raw); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

func newCached(res Resource, obj *unstructured.Unstructured) (cached, error) {
	raw, err := obj.MarshalJSON()
	if err != nil {
		return cached{}, fmt.Errorf("%s/%s/%s: %w", res.Kind, obj.GetNamespace(), obj.GetName(), err)
	}
	e := cached{res: res}
	if err := json.Unmarshal(raw, &e.item); err != nil {
		return cached{}, fmt.Errorf("%s/%s/%s: %w", res.Kind, obj.GetNamespace(), obj.GetName(), err)
	}
	if res.IsTier() {
		bare := obj.DeepCopy()
		bare.SetManagedFields(nil)
		if e.raw, err = bare.MarshalJSON(); err != nil {
			return cached{}, fmt.Errorf("%s/%s/%s: %w", res.Kind, obj.GetNamespace(), obj.GetName(), err)
		}
	}
	return e, nil
}
