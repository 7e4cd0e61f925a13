// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// Verdict is what becomes of a tier.
type Verdict string

// The verdicts.
const (
	// AtOnce is that the first attempt applies everything.
	AtOnce Verdict = "at-once"
	// ByRetry is that an attempt fails, or may fail, before one succeeds.
	ByRetry Verdict = "by-retry"
	// Never is that no attempt ever applies everything, for a reason of the
	// tier's own.
	Never Verdict = "never"
	// Blocked is that the tier is never attempted: a tier that it depends on, or
	// the one that contains it, does not come up.
	Blocked Verdict = "blocked"
	// Suspended is that git says so.
	Suspended Verdict = "suspended"
	// Unknown is that what the tier applies is not known: its source is
	// outside, or it does not build.
	Unknown Verdict = "unknown"
)

// Prediction is what becomes of a cold cluster.
type Prediction struct {
	// Outcomes are one for each tier, in the order of Cluster.Tiers.
	Outcomes []Outcome
	// Releases are one for each HelmRelease, in the order in which tiers apply
	// them.
	Releases []Release
	// Kinds are the audit: what each tier needs that is not built in.
	Kinds []KindUse
}

// Outcome is what becomes of one tier.
type Outcome struct {
	Tier    flux.Ref
	Verdict Verdict
	// Ready is whether the tier becomes Ready in the end. It may apply
	// everything and wait for ever.
	Ready bool
	// Needs are what it lacks, or may lack, at its first attempt: the whole
	// set, of which Flux reports one at a time. Of a Blocked tier they are what
	// it would lack for ever even if all that blocks it were mended.
	Needs []Need
	// Stage is the first stage that a need stops, 0 where none does.
	Stage int
	// BlockedBy are the tiers that keep a Blocked tier from being attempted.
	BlockedBy []flux.Ref
	// WaitsFor are the objects that its Ready waits for and that never become
	// healthy.
	WaitsFor []flux.Ref
	// Claims are those that its Ready waits for and that are not mounted before.
	Claims []Claim
	// Retry is how long it takes until a failed attempt is repeated.
	Retry time.Duration
	// RetryIsInterval is true when spec.retryInterval is not set, so that Retry
	// is spec.interval.
	RetryIsInterval bool
}

// Release is what becomes of one HelmRelease. helm-controller tries again after
// seconds, and longer each time, so that being late costs little.
type Release struct {
	Release flux.Ref
	// Tier applies it.
	Tier flux.Ref
	// Attempted is false where it is never tried: its tier does not apply it, or
	// a release that it depends on does not come up.
	Attempted bool
	Installed bool
	// Needs are the kinds of its chart's objects that are not there, or may not
	// be, at its first attempt.
	Needs []Need
	// Unrendered are the kinds, with their objects, that come after its first
	// attempt (Missing), or may (Late): templates that ask for them then make nothing of them, and
	// helm-controller renders no chart again that has not changed.
	Unrendered []Need
}

// When says when what a tier needs is there.
type When string

// The values of When.
const (
	// InTime is before the tier's first attempt can need it.
	InTime When = "in-time"
	// Late is that the first attempt may come before it.
	Late When = "late"
	// Missing is that it never comes.
	Missing When = "missing"
	// Perhaps is that nothing known brings it, and something of unknown content
	// may.
	Perhaps When = "perhaps"
)

// Need is one thing that must be there before a stage of a tier can be applied.
type Need struct {
	// Kind is the kind that must be served; zero for a need of an object.
	Kind schema.GroupVersionKind
	// Object is the Namespace, ConfigMap, Secret or source that must exist; of a
	// Pod, its ServiceAccount or class. Zero for a need of a kind.
	Object flux.Ref
	// Webhook is set where a webhook must answer. Object is then its
	// configuration, or the HelmRelease whose chart brings that.
	Webhook *Webhook
	// Users are the objects of the tier that need it. Empty for an object that
	// the build itself needs.
	Users []build.Object
	// Stage is the stage that it stops, 0 for the build.
	Stage int
	When  When
	// Providers are what brings it, the likeliest first. Empty where nothing
	// in the cluster's tiers does.
	Providers []Provider
	// TooLate are what brings it as far as is known, where that cannot be in time
	// and one of the Candidates may: then there are no Providers.
	TooLate []Provider
	// Candidates are what may bring it and whose content is unknown: opaque
	// charts, tiers of outside sources.
	Candidates []flux.Ref
	// OtherVersions are those in which something registers the kind.
	OtherVersions []string
	// Creators are the relations that would create the kind, where none of
	// their triggers is in the cluster's tiers.
	Creators []knowledge.Relation
}

// Webhook is what the API server asks about the objects that need it.
type Webhook struct {
	Name string
	// First is whether it is there whenever the tier is applied; else it may
	// come before the tier, or after.
	First bool
	// Refused is true of one among the tier's own objects that the API server
	// does not take, for it may have side effects.
	Refused bool
}

// How says in which way a provider brings what is needed.
type How string

// The ways.
const (
	// ByGit is that a tier applies the CRD, or the object.
	ByGit How = "git"
	// ByChart is that a HelmRelease installs it.
	ByChart How = "chart"
	// ByTrigger is that a controller creates it when it reconciles a trigger.
	ByTrigger How = "trigger"
	// ByStart is that a controller creates it when it starts.
	ByStart How = "start"
)

// Reach says how an attempt of the needing tier comes after its provider.
type Reach string

// The values of Reach, best first.
const (
	// Proved is that the edges and gates on the way prove the provider done.
	Proved Reach = "proved"
	// Hollow is that the needing tier waits for the provider's tier to be Ready,
	// and that this proves nothing: Provider.Tier's gate is hollow.
	Hollow Reach = "hollow"
	// Applied is that the provider's object is applied before, and that no gate
	// could wait for it: by containment.
	Applied Reach = "applied"
	// NoPath is that no path of edges leads to the provider's tier.
	NoPath Reach = "no-path"
	// Same is that the provider is in the same tier, in a stage that is not
	// applied before the need: a deadlock.
	Same Reach = "same"
	// Behind is that the provider itself waits for the needing tier: a deadlock
	// of several tiers.
	Behind Reach = "behind"
	// Down is that the provider never comes up, for another reason.
	Down Reach = "down"
)

// Provider is what brings a kind or an object.
type Provider struct {
	How How
	// Tier is the tier whose apply brings it about.
	Tier flux.Ref
	// Object is what the tier applies: the CRD, the HelmRelease, the trigger,
	// the operator's workload.
	Object flux.Ref
	// Stage is the stage in which Object is applied.
	Stage int
	// Relation is set for ByTrigger and ByStart.
	Relation *knowledge.Relation
	// Release is the HelmRelease whose chart holds Object, where it is not the
	// tier itself that applies it.
	Release *flux.Ref
	Reach   Reach
	// Gate is, for Hollow, the tier whose Ready is waited for and does not prove
	// the provider done: Tier, or a tier that contains it.
	Gate flux.Ref
	// Waits leads, for Behind, from the provider's tier to the needing one:
	// each waits for the next.
	Waits []flux.Ref
	// Operator is the workload or HelmRelease that runs the controller; nil
	// where the cluster's tiers hold none and it is taken to run.
	Operator *flux.Ref
}

// Nearest is the provider that takes the least to be proved; nil where none comes
// up.
func (n *Need) Nearest() *Provider {
	for _, reach := range []Reach{Proved, Hollow, Applied, NoPath} {
		for i := range n.Providers {
			if n.Providers[i].Reach == reach {
				return &n.Providers[i]
			}
		}
	}
	return nil
}

// About is what a tier itself applies: of what a chart holds, the HelmRelease.
func (p Provider) About() flux.Ref {
	if p.Release != nil {
		return *p.Release
	}
	return p.Object
}

// GateTier is the tier whose Ready would prove the provider done.
func (p Provider) GateTier() flux.Ref {
	if p.Gate.Name != "" {
		return p.Gate
	}
	return p.Tier
}

// KindUse is one kind that is not built in, as one tier uses it.
type KindUse struct {
	Tier flux.Ref
	Need Need
	// Before is what serves the kind before Flux reconciles anything; empty for
	// a kind that the cluster's tiers bring, or nobody.
	Before string
	// First says in words when the kind is first known: in which stage of which
	// tier. Empty where it never is, or where that is not known.
	First string
	// SecondOrder is true when a controller creates the kind at run time.
	SecondOrder bool
}
