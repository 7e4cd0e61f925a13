// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package flux

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Snapshot is all of Flux in one cluster at one moment.
type Snapshot struct {
	Taken   time.Time
	Tiers   []Tier
	Sources []Source
	// Served are the Flux kinds that the cluster serves, in the version that
	// was read.
	Served []Resource
	// Objects holds, as they came, the objects that a readyExpr is evaluated
	// over: the tiers that have one, and the dependencies that it is about.
	Objects map[Ref]map[string]any
}

// Resource is one Flux kind as a cluster serves it.
type Resource struct {
	Group, Version, Kind, Plural string
}

// APIVersion is group/version.
func (r Resource) APIVersion() string { return r.Group + "/" + r.Version }

// GroupVersionResource names the resource to a client.
func (r Resource) GroupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Plural}
}

// IsTier is true for the kinds that are nodes of the graph.
func (r Resource) IsTier() bool { return r.Kind == KustomizationKind || r.Kind == HelmReleaseKind }

// resources are the kinds that a snapshot holds, in the version that current
// Flux serves. An older version is looked for where that one is not served.
func resources() []Resource {
	return []Resource{
		{KustomizeGroup, "v1", KustomizationKind, "kustomizations"},
		{HelmGroup, "v2", HelmReleaseKind, "helmreleases"},
		{SourceGroup, "v1", "GitRepository", "gitrepositories"},
		{SourceGroup, "v1", "OCIRepository", "ocirepositories"},
		{SourceGroup, "v1", "Bucket", "buckets"},
		{SourceGroup, "v1", "ExternalArtifact", "externalartifacts"},
		{SourceGroup, "v1", "HelmChart", "helmcharts"},
		{SourceGroup, "v1", "HelmRepository", "helmrepositories"},
	}
}

// RequestedAtAnnotation asks a controller to reconcile an object now: a nudge
// (fluxcd/pkg/apis/meta ReconcileRequestAnnotation).
const RequestedAtAnnotation = "reconcile.fluxcd.io/requestedAt"

// UnwedgeAnnotation marks a tier that `kubectl unwedge` has suspended for a
// repair, with the cause.
const UnwedgeAnnotation = "kubestandup.dev/unwedge"

// ResourceOf finds the kind among those that a cluster serves.
func ResourceOf(served []Resource, kind string) (Resource, bool) {
	for _, r := range served {
		if r.Kind == kind {
			return r, true
		}
	}
	return Resource{}, false
}

// NotInstalledError says that the cluster serves no kind of tier.
type NotInstalledError struct {
	Server string
}

func (e *NotInstalledError) Error() string {
	return fmt.Sprintf("server %s: it serves neither %s nor %s, so Flux is not installed there; "+
		"check that this is the cluster you mean (kubectl config current-context), or install Flux (flux install)",
		e.Server, KustomizeGroup, HelmGroup)
}
