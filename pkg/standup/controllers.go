// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/wedge"
)

// fluxInstances selects the controllers of Flux, however it was installed
// (flux2 manifests and the Flux Operator set it).
const fluxInstances = "app.kubernetes.io/part-of=flux"

// controller is one of Flux's controllers.
type controller struct {
	name, group string
	// deployment is nil when none was seen.
	deployment *appsv1.Deployment
	// version is the tag of its image, empty when it has none.
	version string
}

// listControllers takes one LIST a page. The controllers come in the order in
// which Flux needs them, also those of which no Deployment was seen.
func listControllers(ctx context.Context, cfg *rest.Config) ([]controller, error) {
	client, err := typedappsv1.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	all := []controller{
		{name: "source-controller", group: flux.SourceGroup},
		{name: "kustomize-controller", group: flux.KustomizeGroup},
		{name: "helm-controller", group: flux.HelmGroup},
	}
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return client.Deployments(metav1.NamespaceAll).List(ctx, o)
	}
	err = pager.New(list).EachListItem(ctx, metav1.ListOptions{LabelSelector: fluxInstances}, func(o runtime.Object) error {
		d := o.(*appsv1.Deployment)
		if at := slices.IndexFunc(all, func(c controller) bool { return c.name == d.Name }); at >= 0 {
			all[at].deployment, all[at].version = d, imageVersion(d)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list deployments in all namespaces: %w", err)
	}
	return all, nil
}

// controllers reports the controllers whose kinds are served and that do not
// run (CRD-16): their objects are never looked at.
func (p *preflight) controllers(context.Context) (Check, error) {
	var c Check
	all, err := p.deployments()
	if err != nil {
		return c, err
	}
	var good []string
	for _, want := range all {
		if !slices.ContainsFunc(p.snapshot.Served, func(r flux.Resource) bool { return r.Group == want.group }) {
			continue
		}
		if want.deployment == nil || want.deployment.Status.AvailableReplicas == 0 {
			c.Findings = append(c.Findings, p.controllerFinding(want.name, want.deployment))
			continue
		}
		version := want.version
		if version == "" {
			version = "(version unknown)"
		}
		good = append(good, want.name+" "+version)
	}
	c.Message = strings.Join(good, ", ")
	world, err := p.world()
	if err != nil {
		return c, nil //nolint:nilerr // the check of wedges says so
	}
	c.Findings = append(c.Findings, tooOld(all, world.Definitions)...)
	return c, nil
}

func (p *preflight) controllerFinding(name string, d *appsv1.Deployment) finding.Finding {
	f := finding.Finding{Rule: "flux-controller-down", Severity: finding.Error, Blocks: true}
	if d == nil {
		f.Message = fmt.Sprintf("%s: its kinds are served, but no Deployment of that name with label %s exists", name, fluxInstances)
		f.Fix = "install it, or, if it runs under another name or outside of this cluster, ignore this"
		f.Severity, f.Blocks = finding.Warning, false
		return f
	}
	f.Object = &flux.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: d.Namespace, Name: d.Name}
	f.Message = fmt.Sprintf("%s has no available replica, so none of its objects is reconciled", f.Object)
	f.Fix = "see why: " + p.command(fmt.Sprintf("kubectl -n %s describe deployment %s", d.Namespace, d.Name))
	if d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
		f.Message = fmt.Sprintf("%s is scaled to zero, so none of its objects is reconciled", f.Object)
		f.Fix = p.command(fmt.Sprintf("kubectl -n %s scale deployment %s --replicas=1", d.Namespace, d.Name))
	}
	return f
}

// imageVersion is the tag of a controller's image, empty where it has none.
func imageVersion(d *appsv1.Deployment) string {
	containers := d.Spec.Template.Spec.Containers
	// A service mesh puts its own container beside it.
	for i := range containers {
		if containers[i].Name == "manager" {
			containers = containers[i : i+1]
			break
		}
	}
	for _, c := range containers {
		image, _, _ := strings.Cut(c.Image, "@")
		if at := strings.LastIndex(image, ":"); at > strings.LastIndex(image, "/") {
			return image[at+1:]
		}
	}
	return ""
}

// promoted is a kind, the version in which its objects are stored, and the
// first release of its controller that reads it.
type promoted struct{ resource, group, version, controller, since string }

// promotions come from the changelogs of the controllers: kustomize-controller
// 1.0.0-rc.1; source-controller 1.0.0-rc.1, 1.3.0, 1.4.0, 1.6.0; helm-controller
// 1.0.0.
func promotions() []promoted {
	return []promoted{
		{"kustomizations", flux.KustomizeGroup, "v1", "kustomize-controller", "1.0.0"},
		{"gitrepositories", flux.SourceGroup, "v1", "source-controller", "1.0.0"},
		{"helmcharts", flux.SourceGroup, "v1", "source-controller", "1.3.0"},
		{"helmrepositories", flux.SourceGroup, "v1", "source-controller", "1.3.0"},
		{"buckets", flux.SourceGroup, "v1", "source-controller", "1.4.0"},
		{"ocirepositories", flux.SourceGroup, "v1", "source-controller", "1.6.0"},
		{"helmreleases", flux.HelmGroup, "v2", "helm-controller", "1.0.0"},
	}
}

// tooOld are the controllers that do not know a version in which the cluster
// stores their objects: the CRDs were updated, and they were not.
func tooOld(controllers []controller, definitions []*wedge.Definition) []finding.Finding {
	var found []finding.Finding
	for _, c := range controllers {
		if c.deployment == nil || c.version == "" {
			continue
		}
		var stored []string
		for _, p := range promotions() {
			isOld, err := older(c.version, p.since)
			if p.controller != c.name || err != nil || padded(c.version) == "" || !isOld {
				continue
			}
			for _, d := range definitions {
				if d.Ref.Name == p.resource+"."+p.group && slices.Contains(d.StoredVersions, p.version) {
					stored = append(stored, fmt.Sprintf("%s stores objects in %s, which %s reads since %s", d.Ref, p.version, p.controller, p.since))
				}
			}
		}
		if len(stored) > 0 {
			found = append(found, finding.Finding{
				Rule: "flux-controller-too-old", Severity: finding.Error, Causes: stored,
				Object:  &flux.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: c.deployment.Namespace, Name: c.deployment.Name},
				Message: fmt.Sprintf("%s %s is older than the CRDs of its kinds", c.name, c.version),
				Fix:     "install controllers and CRDs of one release of Flux: flux install",
			})
		}
	}
	return found
}
