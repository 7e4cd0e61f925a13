// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

func selfServedSource() Rule {
	return Rule{
		ID: "DG008", Name: "self-served-source", Severity: finding.Warning,
		Title: "A source is served by what is built from it, so that a cold cluster cannot fetch it.",
		Check: func(s *Subject) []finding.Finding {
			l := newLook(s)
			var all []finding.Finding
			for _, src := range l.sources() {
				for _, h := range l.serving(src.host) {
					if by := l.needsSource(h, src.ref); by != "" {
						all = append(all, l.reportServed(src, h, by))
						break // one way round is enough
					}
				}
			}
			return all
		},
	}
}

// origin is a source, and from where it is fetched.
type origin struct {
	ref, tier flux.Ref
	host      string
}

func (l *look) sources() []origin {
	var all []origin
	for i := range l.World.Tiers {
		f := &l.World.Tiers[i]
		for _, o := range l.objects(f) {
			if o.GroupVersionKind().Group != flux.SourceGroup {
				continue
			}
			address, _, _ := unstructured.NestedString(o.Object, "spec", "url")
			if address == "" {
				address, _, _ = unstructured.NestedString(o.Object, "spec", "endpoint") // of a Bucket
			}
			known := slices.ContainsFunc(all, func(s origin) bool { return same(s.ref, o.Ref()) })
			if host := hostOf(address); host != "" && !known {
				all = append(all, origin{o.Ref(), f.Tier, host})
			}
		}
	}
	return all
}

func hostOf(address string) string {
	if !strings.Contains(address, "://") {
		address = "//" + address
	}
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
}

// host is what makes a name lead into the cluster.
type host struct {
	tier   flux.Ref
	object flux.Ref
	// release is set for an object of a chart.
	release *flux.Ref
}

// serving finds the Services and routes that answer to a host.
func (l *look) serving(name string) []host {
	var all []host
	for i := range l.World.Tiers {
		f := &l.World.Tiers[i]
		if f.Remote || l.spec(f.Tier).KubeConfig != nil {
			continue
		}
		for _, o := range l.objects(f) {
			if answers(o.Unstructured, o.GetNamespace(), name) {
				all = append(all, host{f.Tier, o.Ref(), nil})
			}
			if !isRelease(o.Ref()) {
				continue
			}
			release := o.Ref()
			for _, c := range l.World.Charts[coldstart.Key(release)].Objects {
				namespace := c.GetNamespace()
				if namespace == "" {
					namespace = into(o)
				}
				if answers(c, namespace, name) {
					all = append(all, host{f.Tier, refOf(c), &release})
				}
			}
		}
	}
	return all
}

func answers(o *unstructured.Unstructured, namespace, name string) bool {
	group := o.GroupVersionKind().Group
	switch kind := o.GetKind(); {
	case kind == "Service" && group == "":
		service := strings.ToLower(o.GetName() + "." + namespace)
		return name == service || name == service+".svc" || name == service+".svc.cluster.local"
	case kind == "Ingress" && group == "networking.k8s.io":
		rules, _, _ := unstructured.NestedSlice(o.Object, "spec", "rules")
		return slices.ContainsFunc(rules, func(r any) bool {
			rule, _ := r.(map[string]any)
			h, _ := rule["host"].(string)
			return strings.EqualFold(h, name)
		})
	case strings.HasSuffix(kind, "Route") && group == "gateway.networking.k8s.io":
		names, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "hostnames")
		return slices.ContainsFunc(names, func(h string) bool { return strings.EqualFold(h, name) })
	}
	return false
}

// needsSource says why what serves the host cannot come up before the source is
// fetched, empty where it can.
func (l *look) needsSource(h host, source flux.Ref) string {
	if h.release != nil {
		for _, o := range l.objects(l.followed(h.tier)) {
			if same(o.Ref(), *h.release) && chartFrom(o, source) {
				return fmt.Sprintf("%s installs its chart from it", l.place(h.tier, *h.release))
			}
		}
	}
	start := l.Graph.Node(h.tier)
	if start == nil {
		return ""
	}
	seen := map[flux.Ref]bool{}
	queue := []flux.Ref{start.Ref}
	for len(queue) > 0 {
		tier := queue[0]
		queue = queue[1:]
		if seen[coldstart.Key(tier)] {
			continue
		}
		seen[coldstart.Key(tier)] = true
		n := l.Graph.Node(tier)
		if n == nil {
			continue
		}
		if isKustomization(tier) && n.Source.Kind == source.Kind && n.Source.Namespace == source.Namespace && n.Source.Name == source.Name {
			if tier == start.Ref {
				return l.place(tier, tier) + " is built from it"
			}
			return fmt.Sprintf("%s comes after %s, which is built from it", l.name(start.Ref), l.place(tier, tier))
		}
		for _, d := range n.DependsOn {
			queue = append(queue, d.Ref)
		}
		if n.ContainedBy != nil {
			queue = append(queue, n.ContainedBy.Ref)
		}
	}
	return ""
}

// chartFrom is true when a HelmRelease has its chart from the source.
func chartFrom(release build.Object, source flux.Ref) bool {
	for _, path := range [][]string{{"spec", "chartRef"}, {"spec", "chart", "spec", "sourceRef"}} {
		ref, _, _ := unstructured.NestedStringMap(release.Object, path...)
		namespace := ref["namespace"]
		if namespace == "" {
			namespace = release.GetNamespace()
		}
		if ref["kind"] == source.Kind && ref["name"] == source.Name && namespace == source.Namespace {
			return true
		}
	}
	return false
}

func (l *look) reportServed(src origin, h host, by string) finding.Finding {
	what := h.object.String()
	if h.release != nil {
		what += " of the chart of " + h.release.String()
	}
	f := l.report("DG008", finding.Warning, src.tier, src.ref, fmt.Sprintf(
		"%s is fetched from %s, which %s in %s serves, and that comes up only after the fetch: a cold cluster cannot fetch its own source",
		src.ref, src.host, what, l.name(h.tier)))
	object := h.object
	if h.release != nil {
		object = *h.release
	}
	f.Causes = []string{
		fmt.Sprintf("%s is fetched from %s", l.place(src.tier, src.ref), src.host),
		fmt.Sprintf("%s answers to that host", l.place(h.tier, object)),
		by,
	}
	f.Fix = "Have a source outside of the cluster for a cold start (a mirror, and the url of that one in a second entry point or applied by hand), and switch over once the cluster serves its own."
	return f
}

// into is the namespace that a HelmRelease installs into.
func into(release build.Object) string {
	target, _, _ := unstructured.NestedString(release.Object, "spec", "targetNamespace")
	return cmp.Or(target, release.GetNamespace())
}
