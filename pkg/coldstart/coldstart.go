// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// Cluster is all that a prediction is made of.
type Cluster struct {
	// Tiers are the Kustomizations with what each applies.
	Tiers []build.Followed
	// Charts are what the charts of the HelmReleases bring, by HelmRelease
	// without its API version (Key). A release without one has an opaque chart.
	Charts map[flux.Ref]Chart
	Book   *knowledge.Base
	// Bootstrap are the charts that are there before Flux is, with their CRDs.
	Bootstrap []Installed
	// Standing are the Namespaces, ConfigMaps and Secrets that are there before
	// Flux is.
	Standing []flux.Ref
}

// Installed is a chart that is installed before Flux reconciles anything. Empty
// fields are not known.
type Installed struct {
	Name, Namespace, Chart string
	// Project is owner/name on GitHub of manifests that are no chart.
	Project string
	// By says who installs it: a file of the repository.
	By string
}

// Key is a reference without its API version, in which references to one
// object differ.
func Key(r flux.Ref) flux.Ref {
	r.APIVersion = ""
	return r
}

// Basis says how the content of a chart is known.
type Basis string

// The bases.
const (
	// Rendered is that the chart was rendered with the values of its release.
	Rendered Basis = "rendered"
	// Known is that the knowledge file says which kinds it registers.
	Known Basis = "known"
	// Opaque is that nothing is known: it may register any kind.
	Opaque Basis = "opaque"
	// Failed is that the controllers cannot pack or render it: it is never
	// installed. Its Definitions are applied all the same.
	Failed Basis = "failed"
)

// Chart is what the chart of one HelmRelease brings, with that release's values.
type Chart struct {
	// Name and Version are as the HelmRelease or its source writes them.
	Name, Version string
	Basis         Basis
	// Why says of an opaque chart why nothing is known of it, and of a Known one
	// why it could not be had.
	Why string
	// Definitions are the CRDs of its crds/ folders: applied before anything
	// else is looked at, unless spec.install.crds says Skip.
	Definitions []*unstructured.Unstructured
	// Objects are what its templates make, CRDs among them. Helm maps all of
	// them to kinds before it creates any.
	Objects []*unstructured.Unstructured
	// PreInstall and PostInstall are the objects of hooks: each is mapped when
	// its turn comes, before and after Objects are created.
	PreInstall, PostInstall []*unstructured.Unstructured
	// Gated are what its templates make only where the server has APIs that they
	// ask for (.Capabilities.APIVersions), of kinds of those APIs. They are not
	// among the others.
	Gated []*unstructured.Unstructured
	// Registers are the kinds of a chart that is Known, Groups the API groups
	// of which it registers every kind.
	Registers []schema.GroupKind
	Groups    []string
	// Relations are those of the knowledge whose controller a chart that is not
	// Rendered runs.
	Relations []string
	// Webhooks are the API groups of whose objects the webhooks of a chart are
	// asked that is not Rendered.
	Webhooks []string
	// Off is set when the chart would register kinds that its values switch
	// off: the row of the knowledge file.
	Off *knowledge.Chart
}
