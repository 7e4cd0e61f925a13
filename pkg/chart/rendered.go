// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// Rendered is what an install of a chart applies, in the order in which it does.
type Rendered struct {
	// Definitions are the CustomResourceDefinitions of crds/ folders, by name.
	// helm-controller applies them first and waits for them, unless
	// spec.install.crds says Skip.
	Definitions []*unstructured.Unstructured
	// Objects are what the templates make, CustomResourceDefinitions among
	// them. Helm maps each to a kind that is served before it applies any, and
	// before it runs a hook. Lists are taken apart.
	Objects []*unstructured.Unstructured
	// PreInstall and PostInstall are the objects of hooks that run before and
	// after Objects are applied, in their order. Helm maps each when its turn
	// comes. Hooks of other events run at no install and are left out.
	PreInstall, PostInstall []*unstructured.Unstructured
}

// Annotations of a hook (helm pkg/release/v1 hook.go).
const (
	hookAnnotation = "helm.sh/hook"
	weightOfHook   = "helm.sh/hook-weight"
	preInstall     = "pre-install"
	postInstall    = "post-install"
)

// Render renders the chart as helm-controller would install it, with the
// postRenderers of the HelmRelease. What the server serves is as it was before
// the install; the CRDs of crds/ folders are there when the templates ask.
//
// An object is in the namespace that the template writes, and else in that of
// the release. An object of a kind of which nobody says that it has namespaces
// (Server.Namespaced) is as the template writes it.
//
// The chart is used up: it is rendered once, by Render or by Definitions. An
// error names the file and holds no value of a Secret. It is a *RemoteError
// where a dependency is missing, and a *BrokenError of a chart of the repository
// that helm-controller does not render either.
//
// It is a *SlowError where ctx has a deadline and a template runs beyond it, and
// a *MemoryError where a template takes more than a gigabyte of memory. Such a
// template ends when it next calls a function; one that calls none goes on until
// the program ends, and the error says so (Running). All that the templates make
// may be 64 MiB, and so may what a function returns.
func (c *Chart) Render(ctx context.Context, server Server) (*Rendered, error) {
	var out *Rendered
	err := c.inTime(ctx, func(r *rendering) (err error) {
		out, err = c.render(r, server)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (c *Chart) render(r *rendering, server Server) (*Rendered, error) {
	if err := c.enable(server); err != nil {
		return nil, err
	}
	folders := map[string]*unstructured.Unstructured{}
	if err := c.folders(folders); err != nil {
		return nil, err
	}
	out := &Rendered{Definitions: byName(folders)}
	install := c.object.GetInstall()
	if install.CRDs != helmv2.Skip {
		server.Kinds = slices.Clone(server.Kinds)
		for _, definition := range out.Definitions {
			server.Kinds = append(server.Kinds, knowledge.DefinitionOf(definition).Kinds()...)
		}
	}
	files, err := c.files(r, server)
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, document := range documents(files[name]) {
			if r.ctx.Err() != nil {
				return nil, r.ctx.Err()
			}
			if all, err = parse(name, document, all); err != nil {
				return nil, &refusedError{err}
			}
		}
	}
	if all, err = c.postRender(all); err != nil {
		return nil, err
	}
	out.sort(all, install.DisableHooks)
	scope := scopesOf(server, out)
	for _, u := range slices.Concat(out.Objects, out.PreInstall, out.PostInstall) {
		if u.GetNamespace() == "" && scope(u.GroupVersionKind().GroupKind()) {
			u.SetNamespace(c.object.GetReleaseNamespace())
		}
	}
	return out, nil
}

// sort tells hooks from the rest.
func (r *Rendered) sort(all []*unstructured.Unstructured, disableHooks bool) {
	for _, u := range all {
		on, isHook := u.GetAnnotations()[hookAnnotation]
		if !isHook {
			r.Objects = append(r.Objects, u)
			continue
		}
		for _, event := range events(on) {
			switch {
			case disableHooks:
			case event == preInstall:
				r.PreInstall = append(r.PreInstall, u)
			case event == postInstall:
				r.PostInstall = append(r.PostInstall, u)
			}
		}
	}
	for _, hooks := range [][]*unstructured.Unstructured{r.PreInstall, r.PostInstall} {
		slices.SortStableFunc(hooks, func(a, b *unstructured.Unstructured) int { return cmp.Compare(weight(a), weight(b)) })
	}
}

// events are those of a hook. One that Helm does not know makes it leave out the
// object (helm pkg/release/v1/util manifest_sorter.go).
func events(annotation string) []string {
	known := []string{
		preInstall, postInstall, "pre-delete", "post-delete", "pre-upgrade", "post-upgrade", "pre-rollback", "post-rollback", "test", "test-success",
	}
	var all []string
	for event := range strings.SplitSeq(annotation, ",") {
		event = strings.ToLower(strings.TrimSpace(event))
		if !slices.Contains(known, event) {
			return nil
		}
		all = append(all, event)
	}
	return all
}

// weight is 0 for what is no number (helm pkg/release/v1/util manifest_sorter.go
// calculateHookWeight).
func weight(u *unstructured.Unstructured) int {
	weight, err := strconv.Atoi(u.GetAnnotations()[weightOfHook])
	if err != nil {
		return 0
	}
	return weight
}

// scopesOf says whether the objects of a kind are in namespaces; false where
// that is not known.
func scopesOf(server Server, rendered *Rendered) func(schema.GroupKind) bool {
	known := maps.Clone(server.Namespaced)
	if known == nil {
		known = map[schema.GroupKind]bool{}
	}
	for _, u := range slices.Concat(rendered.Definitions, rendered.Objects, rendered.PreInstall) {
		if u.GetKind() == crdKind && u.GroupVersionKind().Group == crdGroup {
			d := knowledge.DefinitionOf(u)
			known[d.Kind] = d.Scope == knowledge.Namespaced
		}
	}
	return func(kind schema.GroupKind) bool {
		if namespaced, builtIn := knowledge.NamespacedKind(kind); builtIn {
			return namespaced
		}
		return known[kind]
	}
}
