// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"fmt"
	"os"

	securejoin "github.com/cyphar/filepath-securejoin"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	generator "github.com/fluxcd/pkg/kustomize"
	"github.com/fluxcd/pkg/ssa/normalize"
	ssautil "github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/kustomize/api/resmap"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// Builder builds tiers as one kustomize-controller would. The zero value is a
// controller with its default flags, on a cluster with no ConfigMaps and no
// Secrets.
type Builder struct {
	// Variables is where spec.postBuild.substituteFrom is read.
	Variables Variables
	// Live says that Variables, and the roots that Follow is given, are those of
	// a running cluster: they win over what a tree makes of them, which Flux
	// has not applied yet. What the cluster lacks is still taken from the tree.
	Live bool
	// LooseSubstitution makes a variable that is not set empty, as feature
	// gate StrictPostBuildSubstitutions=false does, and as every controller
	// before v1.9 did.
	LooseSubstitution bool
	// CustomStageKinds is flag --custom-apply-stage-kinds.
	CustomStageKinds map[schema.GroupKind]struct{}
	// NoCrossNamespaceRefs is flag --no-cross-namespace-refs.
	NoCrossNamespaceRefs bool
	// UnknownVariables builds a tier although an object that its
	// substituteFrom names is nowhere: somebody makes it by hand, say. Variables
	// without a value and without a default then become placeholders, which
	// IsUnknown recognises; Result.Absent names the object.
	UnknownVariables bool
	// Injected says that something on the cluster adds variables to
	// spec.postBuild of tiers when they are created, a mutating webhook say:
	// with UnknownVariables, one without a value becomes a placeholder in every
	// tier.
	Injected bool
	// UnknownBases builds what the tree holds of a tier that has remote bases
	// too: Follow answers it beside the *RemoteBaseError.
	UnknownBases bool
	// Built, where set, is called by Follow with each tier that was built, and
	// again when it was built anew; not concurrently, and in the order of the
	// answer among tiers that were built at the same time.
	Built func(*Result)
	// AllowRemoteBases lets kustomize fetch over the network, with git where
	// the base is a repository, as the controller does unless it runs with
	// --no-remote-bases.
	AllowRemoteBases bool

	withoutRemote bool
}

// Build builds the tier, a Kustomization of kustomize.toolkit.fluxcd.io, from
// the tree of its source. Errors are those of the controller, prefixed with
// the tier, and name files relative to the tree. A *RemoteBaseError is among
// them where the controller would have used the network.
func (b Builder) Build(ctx context.Context, tier *unstructured.Unstructured, tree *Tree) (*Result, error) {
	return b.build(ctx, tier, tree, newVarReader(b.Variables))
}

// build also tells, in vars, which variables led nowhere when it fails.
func (b Builder) build(ctx context.Context, tier *unstructured.Unstructured, tree *Tree, vars *varReader) (*Result, error) {
	vars.tolerant = b.UnknownVariables
	result, err := b.run(ctx, tier, tree, vars)
	if err == nil {
		return result, nil
	}
	at, placed := PositionOf(err)
	err = vars.redact(tree.readable(err))
	if field, unknown := unknownIn(tier); unknown {
		err = &UnknownError{Field: field, Err: err}
	}
	key := flux.Ref{Namespace: tier.GetNamespace(), Name: tier.GetName()}.Key()
	err = fmt.Errorf("kustomization %s: %w", key, err)
	if placed {
		err = &placedError{at, err}
	}
	return nil, err
}

func (b Builder) run(ctx context.Context, tier *unstructured.Unstructured, tree *Tree, vars *varReader) (*Result, error) {
	spec, typed, err := decode(tier)
	if err != nil {
		return nil, err
	}
	if b.Injected {
		if typed, err = inject(spec); err != nil {
			return nil, err
		}
	}
	result := &Result{Tier: refOf(tier), Source: SourceOf(tier), tree: tree}
	if b.NoCrossNamespaceRefs && result.Source.Namespace != spec.GetNamespace() {
		return nil, fmt.Errorf("source: can't access '%s/%s', cross-namespace references have been blocked", result.Source.Kind, result.Source.Key())
	}
	dir, err := securejoin.SecureJoin(tree.root, spec.Spec.Path)
	if err != nil {
		return nil, fmt.Errorf("path: %w", err)
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("kustomization path not found: %w", err)
	}
	var resources []byte
	var files *overlay
	if err := withSchema(func(alone bool) (err error) {
		if files, err = b.generate(tree, dir, typed, alone); err != nil {
			return err
		}
		resources, err = b.kustomize(ctx, spec, typed, files, dir, vars)
		return err
	}); err != nil {
		return nil, tree.place(fmt.Errorf("build: %w", err), files, dir)
	}
	result.manifests, result.Bases = files.manifests(), files.bases
	objects, err := ssautil.ReadObjects(bytes.NewReader(resources))
	if err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	if result.Objects, result.Rejected, err = b.finish(spec, objects); err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	result.Unknown, result.Absent = vars.unknown(), vars.absentRefs(spec)
	result.vars = vars
	return result, nil
}

// decode reads the tier as the controller does: through its types, which drop
// what they do not know.
func decode(tier *unstructured.Unstructured) (*kustomizev1.Kustomization, unstructured.Unstructured, error) {
	if gk := tier.GroupVersionKind().GroupKind(); gk.Group != flux.KustomizeGroup || gk.Kind != flux.KustomizationKind {
		return nil, unstructured.Unstructured{}, fmt.Errorf("it is a %s, not a %s of %s", gk, flux.KustomizationKind, flux.KustomizeGroup)
	}
	spec := &kustomizev1.Kustomization{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tier.Object, spec); err != nil {
		return nil, unstructured.Unstructured{}, fmt.Errorf("decode: %w", err)
	}
	typed, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return nil, unstructured.Unstructured{}, fmt.Errorf("decode: %w", err)
	}
	return spec, unstructured.Unstructured{Object: typed}, nil
}

// generate makes the kustomization file that Flux builds from, in memory.
func (b Builder) generate(tree *Tree, dir string, typed unstructured.Unstructured, alone bool) (*overlay, error) {
	// Without a kustomization file Flux decodes every manifest below, and
	// copies what an alias stands for as it does.
	if err := tree.checkManifests(dir); err != nil {
		return nil, err
	}
	content, file, _, err := generator.NewGenerator(tree.root, typed).GenerateManifest(dir)
	if err != nil {
		return nil, err
	}
	return b.newOverlay(tree, file, content, alone)
}

// kustomize is the controller's build: kustomize, then the variables.
func (b Builder) kustomize(ctx context.Context, spec *kustomizev1.Kustomization, typed unstructured.Unstructured, files *overlay, dir string, vars *varReader) ([]byte, error) {
	m, err := runKustomize(files, dir)
	if files.refused != nil {
		return nil, files.refused
	}
	if err != nil {
		return nil, fmt.Errorf("kustomize build failed: %w", err)
	}
	if err := b.substitute(ctx, spec, typed, m, vars); err != nil {
		return nil, err
	}
	resources, err := m.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("kustomize build failed: %w", err)
	}
	return resources, nil
}

func (b Builder) substitute(ctx context.Context, spec *kustomizev1.Kustomization, typed unstructured.Unstructured, m resmap.ResMap, vars *varReader) error {
	for _, res := range m.Resources() {
		if res.GetName() == "" || res.GetKind() == "" || res.GetApiVersion() == "" {
			// The controller prints the whole object here; it may be a Secret.
			return fmt.Errorf("failed to decode Kubernetes apiVersion, kind and name: one of the three is missing from an object (apiVersion %q, kind %q, name %q)",
				res.GetApiVersion(), res.GetKind(), res.GetName())
		}
		if spec.Spec.PostBuild == nil {
			continue
		}
		if err := vars.prepare(ctx, spec, typed, res); err != nil {
			return fmt.Errorf("post build failed for '%s/%s': %w", res.GetGvk(), res.GetName(), err)
		}
		out, err := generator.SubstituteVariables(vars.collect(ctx), vars, typed, res,
			generator.SubstituteWithStrict(!b.LooseSubstitution),
			generator.SubstituteWithAlways(spec.GetSubstituteStrategy() == kustomizev1.SubstituteStrategyAlways))
		if err != nil && onlyInjected(spec) {
			continue // nobody knows that anything is added, and without it nothing is substituted
		}
		if err != nil {
			return fmt.Errorf("post build failed for '%s/%s': %w", res.GetGvk(), res.GetName(), err)
		}
		if out == nil {
			continue
		}
		if _, err := m.Replace(res); err != nil {
			return err
		}
	}
	return nil
}

// finish is what the controller does between the build and the first request:
// owner labels, normalisation, common metadata, the check for encrypted
// Secrets, stages, order.
func (b Builder) finish(spec *kustomizev1.Kustomization, objects []*unstructured.Unstructured) ([]Object, error, error) {
	setOwnerLabels(objects, spec.GetName(), spec.GetNamespace())

	all := make([]Object, len(objects))
	var normal []*unstructured.Unstructured
	for i, o := range objects {
		all[i] = Object{Unstructured: o, Encrypted: isEncrypted(o)}
		// Where the controller decrypts, it normalises what came out of it.
		// Normalising the ciphertext would lose the SOPS metadata.
		if !all[i].Encrypted || !decrypts(spec, o) {
			normal = append(normal, o)
		}
	}
	if err := normalize.UnstructuredList(normal); err != nil {
		return nil, nil, err
	}
	if meta := spec.Spec.CommonMetadata; meta != nil {
		ssautil.SetCommonMetadata(objects, meta.Labels, meta.Annotations)
	}
	var rejected error
	for i, o := range objects {
		if rejected == nil && !decrypts(spec, o) && isRejected(o) {
			rejected = fmt.Errorf("%s is SOPS encrypted, configuring decryption is required for this secret to be reconciled", ssautil.FmtUnstructured(o))
		}
		ssautil.RemoveCABundleFromCRD(o)
		all[i].Stage = Stage(o, b.CustomStageKinds)
		all[i].Ignored = ssautil.AnyInMetadata(o, map[string]string{
			kustomizev1.GroupVersion.Group + "/reconcile": kustomizev1.DisabledValue,
			kustomizev1.GroupVersion.Group + "/ssa":       kustomizev1.IgnoreValue,
		})
	}
	sortToApply(all)
	return all, rejected, nil
}
