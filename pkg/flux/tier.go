// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package flux

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Tier is one Flux Kustomization or HelmRelease, as far as the graph needs it.
// Durations are resolved: what Flux would use, not what was typed.
type Tier struct {
	Ref             Ref
	UID             types.UID
	ResourceVersion string
	Generation      int64
	Created         time.Time
	// Deleted is when deletion was asked for, the zero time when it was not.
	Deleted    time.Time
	Finalizers []string

	Suspended bool
	// SuspendedBy is the field manager that owns spec.suspend, and since when.
	SuspendedBy    string
	SuspendedSince time.Time
	// Unwedge is the annotation with which `kubectl unwedge` marks a tier that
	// it has suspended for a repair: a run that was killed is finished by the
	// next one.
	Unwedge string
	// Hold is the reason of the annotation kubestandup.dev/hold: somebody wants
	// the tier to stay suspended.
	Hold string

	DependsOn []Dependency
	// Source is what the tier is built from. For a HelmRelease it is the
	// HelmChart that helm-controller made, or the object that chartRef names.
	Source Ref
	// Path is the folder inside the source, for a Kustomization.
	Path string
	// Remote is true when spec.kubeConfig sends the tier to another cluster.
	Remote bool

	Interval      time.Duration
	RetryInterval time.Duration
	Timeout       time.Duration

	Wait             bool
	Prune            bool
	HealthChecks     []Ref
	HealthCheckExprs bool
	// Helm is set for a HelmRelease, nil for a Kustomization.
	Helm *Helm

	// Owner is the Kustomization that applied this object, by the labels that
	// kustomize-controller sets. The zero Ref when there is none.
	Owner Ref

	ObservedGeneration    int64
	Conditions            []metav1.Condition
	LastAppliedRevision   string
	LastAttemptedRevision string
	// LastOutcome is the reason with which the last finished attempt ended,
	// which the conditions forget while the next one is under way. Empty for a
	// HelmRelease, and before the first attempt that got as far as an apply.
	LastOutcome string
	// RequestedAt is the token of the last nudge; LastHandledReconcileAt the
	// last one that the controller has answered.
	RequestedAt            string
	LastHandledReconcileAt string
}

// Dependency is one entry of spec.dependsOn, its namespace resolved.
type Dependency struct {
	Ref Ref
	// ReadyExpr, when set, replaces the built-in check of the dependency
	// (kustomize-controller internal/controller checkDependencies, v1.9.6).
	ReadyExpr string
}

// Source is an object that produces an artifact: GitRepository,
// OCIRepository, Bucket, ExternalArtifact, HelmChart or HelmRepository.
type Source struct {
	Ref                Ref
	Generation         int64
	ObservedGeneration int64
	Suspended          bool
	URL                string
	Interval           time.Duration
	Conditions         []metav1.Condition
	// Artifact is nil until the source has produced one.
	Artifact *Artifact
	// Requested token and its answer, as for a tier.
	RequestedAt            string
	LastHandledReconcileAt string
}

// Artifact is what a source offers to the controllers that build from it.
type Artifact struct {
	URL            string
	Digest         string
	Revision       string
	LastUpdateTime time.Time
}

// SuspendedWhy says of a suspended tier by whom, and since when, as far as that
// is known.
func (t *Tier) SuspendedWhy() string {
	why := "suspended"
	if t.SuspendedBy != "" {
		why += " by " + t.SuspendedBy
	}
	if !t.SuspendedSince.IsZero() {
		why += " since " + t.SuspendedSince.UTC().Format(time.RFC3339)
	}
	return why
}
