// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/chart"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// gated are the objects that the chart of the release makes only where the
// server has the APIs that its templates ask for: it is rendered once more, for
// a server that has them all. Of objects of other groups it is not known that
// they are there for that.
func (s *shelf) gated(ctx context.Context, release build.Object, asks []string, plain *chart.Rendered) []*unstructured.Unstructured {
	server := s.server
	server.Kinds = slices.Clone(server.Kinds)
	var groups []string
	for _, gvk := range chart.AskedKinds(asks) {
		// Groups without a dot are built in.
		if strings.Contains(gvk.Group, ".") && !slices.ContainsFunc(s.server.Kinds, func(k schema.GroupVersionKind) bool { return k.Group == gvk.Group }) {
			server.Kinds = append(server.Kinds, gvk)
			groups = append(groups, gvk.Group)
		}
	}
	if len(groups) == 0 {
		return nil
	}
	loaded, err := s.charts.Load(ctx, release.GetNamespace(), release.GetName())
	if err != nil {
		return nil // it was had a moment ago
	}
	more, err := loaded.Render(ctx, server)
	if err != nil {
		return nil // what it is like on a server of that kind is not known
	}
	had := map[flux.Ref]bool{}
	for _, o := range plain.Objects {
		had[coldstart.Key(refOf(o))] = true
	}
	return slices.DeleteFunc(more.Objects, func(o *unstructured.Unstructured) bool {
		return had[coldstart.Key(refOf(o))] || !slices.Contains(groups, o.GroupVersionKind().Group)
	})
}
