// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"fmt"
	"sync"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	kustypes "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// kustomizeLock is held for every build: kustomize keeps the OpenAPI schema in a
// variable of its own package (kubernetes-sigs/kustomize#3659), and
// helm-controller holds one as well.
var kustomizeLock sync.Mutex

// postRender patches the objects as helm-controller does (internal/postrender
// build.go, kustomize.go, internal/action post_render.go), without the labels
// that it adds.
func (c *Chart) postRender(all []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var hooks []*unstructured.Unstructured
	strategy := c.object.GetPostRenderStrategy()
	if strategy == helmv2.PostRenderStrategyNoHooks || strategy == helmv2.PostRenderStrategySeparate {
		var rest []*unstructured.Unstructured
		for _, u := range all {
			if _, isHook := u.GetAnnotations()[hookAnnotation]; isHook {
				hooks = append(hooks, u)
			} else {
				rest = append(rest, u)
			}
		}
		all = rest
	}
	for i, r := range c.object.Spec.PostRenderers {
		var err error
		if all, err = patch(r.Kustomize, all); err == nil && strategy == helmv2.PostRenderStrategySeparate {
			hooks, err = patch(r.Kustomize, hooks)
		}
		if err != nil {
			return nil, fmt.Errorf("postRenderers[%d]: %w", i, err)
		}
	}
	return append(all, hooks...), nil
}

func patch(by *helmv2.Kustomize, all []*unstructured.Unstructured) (out []*unstructured.Unstructured, err error) {
	if by == nil || len(by.Patches)+len(by.Images) == 0 || len(all) == 0 {
		return all, nil
	}
	kustomization := kustypes.Kustomization{
		TypeMeta:  kustypes.TypeMeta{APIVersion: kustypes.KustomizationVersion, Kind: kustypes.KustomizationKind},
		Resources: []string{"chart.yaml"},
	}
	for _, image := range by.Images {
		kustomization.Images = append(kustomization.Images, kustypes.Image{
			Name: image.Name, NewName: image.NewName, NewTag: image.NewTag, Digest: image.Digest,
		})
	}
	for _, p := range by.Patches {
		each := kustypes.Patch{Patch: p.Patch}
		if t := p.Target; t != nil {
			each.Target = &kustypes.Selector{LabelSelector: t.LabelSelector, AnnotationSelector: t.AnnotationSelector}
			each.Target.Group, each.Target.Version, each.Target.Kind = t.Group, t.Version, t.Kind
			each.Target.Name, each.Target.Namespace = t.Name, t.Namespace
		}
		kustomization.Patches = append(kustomization.Patches, each)
	}
	var text []byte
	for _, u := range all {
		one, err := yaml.Marshal(u.Object)
		if err != nil {
			return nil, err
		}
		text = append(append(text, "---\n"...), one...)
	}
	head, err := yaml.Marshal(kustomization)
	if err != nil {
		return nil, err
	}
	files := filesys.MakeFsInMemory()
	if err := errors.Join(files.WriteFile("chart.yaml", text), files.WriteFile("kustomization.yaml", head)); err != nil {
		return nil, err
	}
	kustomizeLock.Lock()
	defer kustomizeLock.Unlock()
	defer func() {
		// kustomize panics on some malformed objects.
		if r := recover(); r != nil {
			err = errors.New("kustomize panics on what the templates make")
		}
	}()
	made, err := krusty.MakeKustomizer(&krusty.Options{
		LoadRestrictions: kustypes.LoadRestrictionsNone, PluginConfig: kustypes.DisabledPluginConfig(),
	}).Run(files, ".")
	if err != nil {
		return nil, err
	}
	for _, r := range made.Resources() {
		object, err := r.Map()
		if err != nil {
			return nil, err
		}
		out = append(out, &unstructured.Unstructured{Object: object})
	}
	return out, nil
}
