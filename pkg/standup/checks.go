// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// fluxInstances selects the controllers of Flux, however it was installed
// (flux2 manifests and the Flux Operator set it).
const fluxInstances = "app.kubernetes.io/part-of=flux"

// identity holds by the time a step runs: the shell has proved it.
func (p *preflight) identity(context.Context) (Check, error) {
	i := p.env.Identity
	said := "as expected"
	if p.env.Expected.UID == "" {
		said = "the URL is as expected, the UID was not compared: add --expect-uid"
	}
	return Check{Name: "identity", Message: fmt.Sprintf("%s, UID %s, CA %s: %s", i.URL, i.UID, i.CA(), said)}, nil
}

// kinds are those of Flux that the cluster serves. One that no controller
// needs is missing without harm.
func (p *preflight) kinds(context.Context) (Check, error) {
	served := make([]string, 0, len(p.snapshot.Served))
	for _, r := range p.snapshot.Served {
		served = append(served, r.Kind+" "+r.Version)
	}
	c := Check{Name: "flux-kinds", Message: strings.Join(served, ", ")}
	if !slices.ContainsFunc(p.snapshot.Served, func(r flux.Resource) bool { return r.Group == flux.SourceGroup }) {
		c.Findings = append(c.Findings, finding.Finding{
			Rule: "flux-sources-not-served", Severity: finding.Error, Blocks: true,
			Message: "the cluster serves tiers and no source of any kind: Flux is only half installed",
			Fix:     "install Flux again, whole: flux install",
		})
	}
	return c, nil
}

// controllers reports the controllers whose kinds are served and that do not
// run (CRD-16): their objects are never looked at.
func (p *preflight) controllers(ctx context.Context) (Check, error) {
	c := Check{Name: "flux-controllers"}
	client, err := typedappsv1.NewForConfig(p.env.Config)
	if err != nil {
		return c, err
	}
	list, err := client.Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: fluxInstances, Limit: 500})
	if err != nil {
		return c, fmt.Errorf("list deployments in all namespaces: %w", err)
	}
	var good []string
	for _, want := range []struct{ name, group string }{
		{"source-controller", flux.SourceGroup}, {"kustomize-controller", flux.KustomizeGroup}, {"helm-controller", flux.HelmGroup},
	} {
		if !slices.ContainsFunc(p.snapshot.Served, func(r flux.Resource) bool { return r.Group == want.group }) {
			continue
		}
		at := slices.IndexFunc(list.Items, func(d appsv1.Deployment) bool { return d.Name == want.name })
		if at < 0 {
			c.Findings = append(c.Findings, controllerFinding(want.name, nil))
			continue
		}
		d := &list.Items[at]
		if d.Status.AvailableReplicas == 0 {
			c.Findings = append(c.Findings, controllerFinding(want.name, d))
			continue
		}
		good = append(good, want.name+" "+imageVersion(d))
	}
	c.Message = strings.Join(good, ", ")
	return c, nil
}

func controllerFinding(name string, d *appsv1.Deployment) finding.Finding {
	f := finding.Finding{Rule: "flux-controller-down", Severity: finding.Error, Blocks: true}
	if d == nil {
		f.Message = fmt.Sprintf("%s: its kinds are served, but no Deployment of that name with label %s exists", name, fluxInstances)
		f.Fix = "install it, or, if it runs under another name or outside of this cluster, ignore this"
		f.Severity, f.Blocks = finding.Warning, false
		return f
	}
	f.Object = &flux.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: d.Namespace, Name: d.Name}
	f.Message = fmt.Sprintf("%s has no available replica, so none of its objects is reconciled", f.Object)
	f.Fix = fmt.Sprintf("see why: kubectl -n %s describe deployment %s", d.Namespace, d.Name)
	if d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
		f.Message = fmt.Sprintf("%s is scaled to zero, so none of its objects is reconciled", f.Object)
		f.Fix = fmt.Sprintf("kubectl -n %s scale deployment %s --replicas=1", d.Namespace, d.Name)
	}
	return f
}

func imageVersion(d *appsv1.Deployment) string {
	for _, c := range d.Spec.Template.Spec.Containers {
		image, _, _ := strings.Cut(c.Image, "@")
		if at := strings.LastIndex(image, ":"); at > strings.LastIndex(image, "/") {
			return image[at+1:]
		}
	}
	return "(version unknown)"
}

// sources reports those that tiers are built from and that cannot be fetched.
func (p *preflight) sources(context.Context) (Check, error) {
	c := Check{Name: "sources"}
	used := map[flux.Ref]int{}
	for _, n := range p.graph.Tiers() {
		if n.Origin != nil {
			used[n.Origin.Ref]++
		}
	}
	var good []string
	for i := range p.snapshot.Sources {
		s := &p.snapshot.Sources[i]
		count := used[s.Ref]
		if count == 0 {
			continue
		}
		if f, bad := sourceFinding(s, count); bad {
			c.Findings = append(c.Findings, f)
			continue
		}
		if len(good) < 3 {
			good = append(good, fmt.Sprintf("%s at %s", s.Ref, s.Artifact.Revision))
		} else if len(good) == 3 {
			good = append(good, "and others")
		}
	}
	c.Message = strings.Join(good, ", ")
	return c, nil
}

func sourceFinding(s *flux.Source, count int) (finding.Finding, bool) {
	f := finding.Finding{Severity: finding.Error, Blocks: true, Object: &s.Ref}
	needed := fmt.Sprintf("%d tiers are built from it", count)
	if count == 1 {
		needed = "one tier is built from it"
	}
	ready := meta.FindStatusCondition(s.Conditions, "Ready")
	switch {
	case s.Suspended:
		f.Rule, f.Severity, f.Blocks = "source-suspended", finding.Warning, false
		f.Message = fmt.Sprintf("%s is suspended, so no new revision arrives; %s", s.Ref, needed)
		f.Fix = fmt.Sprintf("if it is meant to run: flux resume source %s %s -n %s", fluxSource(s.Ref.Kind), s.Ref.Name, s.Ref.Namespace)
	case s.Artifact == nil:
		f.Rule = "source-without-artifact"
		f.Message = fmt.Sprintf("%s has no artifact; %s%s", s.Ref, needed, because(ready))
		f.Fix = "make its URL reachable from inside the cluster and its credentials valid; source-controller goes on by itself"
	case ready != nil && ready.Status == metav1.ConditionFalse:
		f.Rule = "source-not-ready"
		f.Message = fmt.Sprintf("%s cannot be fetched, and is still at %s; %s%s", s.Ref, s.Artifact.Revision, needed, because(ready))
		f.Fix = "make its URL reachable from inside the cluster and its credentials valid; source-controller goes on by itself"
	default:
		return f, false
	}
	return f, true
}

func because(c *metav1.Condition) string {
	if c == nil || c.Message == "" || c.Status == metav1.ConditionTrue {
		return ""
	}
	return ": " + c.Message
}

// fluxSource is what the Flux CLI calls a kind of source.
func fluxSource(kind string) string {
	switch kind {
	case "GitRepository":
		return "git"
	case "OCIRepository":
		return "oci"
	case "HelmRepository":
		return "helm"
	case "HelmChart":
		return "chart"
	}
	return strings.ToLower(kind)
}
