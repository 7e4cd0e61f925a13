// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// FluxNamespace is where Flux's controllers look for their own objects, and
// where InstallRoot puts the root.
const FluxNamespace = "flux-system"

// fluxManager is the field manager of flux install and flux bootstrap.
const fluxManager = "flux"

const fluxNamespaceYAML = `apiVersion: v1
kind: Namespace
metadata:
  name: flux-system
  labels:
    app.kubernetes.io/instance: flux-system
    app.kubernetes.io/part-of: flux
`

// installFluxCRDs applies what flux install applies first, with its labels and
// field manager, and waits until the CRDs are established: a controller that
// starts earlier gives up.
func (c *Cluster) installFluxCRDs(ctx context.Context) error {
	if err := c.applyAs(ctx, fluxManager, []byte(fluxNamespaceYAML)); err != nil {
		return err
	}
	files, err := c.programs.FluxCRDs()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, file := range files {
		group.Go(func() error {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			objects, err := decodeYAML(text)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			for _, o := range objects {
				labelFlux(o, "")
				if err := c.applyObject(ctx, fluxManager, o); err != nil {
					return err
				}
				if err := c.untilEstablished(ctx, o.GetName()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (c *Cluster) untilEstablished(ctx context.Context, name string) error {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return c.Until(ctx, crd, func() bool {
		for _, condition := range crd.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true
			}
		}
		return false
	})
}

// installFluxDeployments makes the objects of the three controllers, as their
// modules have them and flux install labels them, and lets their pods run.
func (c *Cluster) installFluxDeployments(ctx context.Context) error {
	group, groupCtx := errgroup.WithContext(ctx)
	for _, comp := range []Component{SourceController, KustomizeController, HelmController} {
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), c.programs.FluxManager(string(comp)))
		if err != nil {
			return err
		}
		text, err := built.AsYaml()
		if err != nil {
			return err
		}
		objects, err := decodeYAML(text)
		if err != nil {
			return err
		}
		group.Go(func() error {
			for _, o := range objects {
				o.SetNamespace(FluxNamespace)
				labelFlux(o, string(comp))
				if err := c.applyObject(groupCtx, fluxManager, o); err != nil {
					return err
				}
			}
			return c.MarkAvailable(groupCtx, FluxNamespace, string(comp))
		})
	}
	if err := group.Wait(); err != nil || !c.makesPods() {
		return err
	}
	return c.untilEndpoint(ctx, FluxNamespace, string(SourceController))
}

func labelFlux(o *unstructured.Unstructured, component string) {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels["app.kubernetes.io/instance"] = FluxNamespace
	labels["app.kubernetes.io/part-of"] = "flux"
	if component != "" {
		labels["app.kubernetes.io/component"] = component
	}
	o.SetLabels(labels)
}

// Root is the entry point of a GitOps repository.
type Root struct {
	Repo string // as given to Push
	Path string // of the root Kustomization; "" is the top of the repository
	// Name of the GitRepository and the Kustomization; "" is flux-system.
	Name string
	// SourceInterval is how often the repository is looked at; 0 is an hour, so
	// that a test decides with Sync what is fetched when.
	SourceInterval time.Duration
	// Interval and RetryInterval of the Kustomization. 0 is an hour, and two
	// seconds: without the latter, one that failed because a component was just
	// away would be tried again in an hour.
	Interval, RetryInterval time.Duration
	// Timeout of the Kustomization; 0 leaves it out.
	Timeout     time.Duration
	Prune, Wait bool
}

// InstallRoot applies, as flux bootstrap does, the GitRepository and the
// Kustomization that everything else comes from. It returns at once.
func (c *Cluster) InstallRoot(ctx context.Context, r Root) error {
	if r.Name == "" {
		r.Name = FluxNamespace
	}
	object := func(apiVersion, kind string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": apiVersion,
			"kind":       kind,
			"metadata":   map[string]any{"name": r.Name, "namespace": FluxNamespace},
			"spec":       spec,
		}}
	}
	kustomization := map[string]any{
		"interval":      cmp.Or(r.Interval, time.Hour).String(),
		"retryInterval": cmp.Or(r.RetryInterval, 2*time.Second).String(),
		"path":          "./" + strings.TrimPrefix(r.Path, "./"),
		"prune":         r.Prune,
		"wait":          r.Wait,
		"sourceRef":     map[string]any{"kind": "GitRepository", "name": r.Name},
	}
	if r.Timeout != 0 {
		kustomization["timeout"] = r.Timeout.String()
	}
	for _, o := range []*unstructured.Unstructured{
		object("source.toolkit.fluxcd.io/v1", "GitRepository", map[string]any{
			"interval": cmp.Or(r.SourceInterval, time.Hour).String(),
			"url":      c.RepoURL(r.Repo),
			"ref":      map[string]any{"branch": "main"},
		}),
		object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", kustomization),
	} {
		if err := c.applyObject(ctx, fluxManager, o); err != nil {
			return err
		}
	}
	return nil
}

// Sync asks source-controller to fetch the GitRepository flux-system/NAME now
// and returns when its artifact has the revision. Kustomizations of that source
// reconcile by themselves then.
func (c *Cluster) Sync(ctx context.Context, name, revision string) error {
	repo := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: FluxNamespace, Name: name}}
	if err := c.Nudge(ctx, repo); err != nil {
		return err
	}
	return c.Until(ctx, repo, func() bool {
		return repo.Status.Artifact != nil && repo.Status.Artifact.Revision == revision
	})
}

// Nudge asks the controller of a Flux object to reconcile it now, as flux
// reconcile does, and returns at once.
func (c *Cluster) Nudge(ctx context.Context, obj client.Object) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, meta.ReconcileRequestAnnotation, time.Now().Format(time.RFC3339Nano))
	return c.client.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", patch), client.FieldOwner("flux"))
}
