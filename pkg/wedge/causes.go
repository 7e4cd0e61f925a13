// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import "slices"

// Cause names a kind of wedge. It is stable: scripts and --only select on it.
type Cause string

// The causes, in the order in which they are repaired: what keeps others from
// being repaired comes first.
const (
	ControllerMissing   Cause = "controller-missing"
	ControllerDies      Cause = "controller-dies"
	APIUnavailable      Cause = "api-unavailable"
	WebhookWithoutEnd   Cause = "webhook-without-backend"
	ConversionFails     Cause = "conversion-fails"
	StoredVersions      Cause = "stored-versions"
	TooLong             Cause = "annotation-too-long"
	CDIError            Cause = "cdi-error"
	FinalizerHeld       Cause = "finalizer-held"
	DefinitionHeld      Cause = "crd-terminating"
	NamespaceHeld       Cause = "namespace-terminating"
	ReleaseElsewhere    Cause = "release-elsewhere"
	ReleaseUnreadable   Cause = "release-unreadable"
	ReleaseUninstalling Cause = "release-uninstalling"
	ReleasePending      Cause = "release-pending"
	ReleaseUninstalled  Cause = "release-uninstalled"
	ReleaseExhausted    Cause = "release-exhausted"
	ReleaseNoTarget     Cause = "release-no-rollback-target"
	ReleaseTooBig       Cause = "release-too-big"
	ReleaseMoves        Cause = "release-target-changed"
	ReleaseHeld         Cause = "release-held"
	ColdStart           Cause = "cold-start-deadlock"
	VersionNotServed    Cause = "version-not-served"
	StaleMapper         Cause = "stale-mapper"
	Asleep              Cause = "asleep"
	Cycle               Cause = "dependency-cycle"
	DependencySuspended Cause = "dependency-suspended"
	DependencyMissing   Cause = "dependency-missing"
	StaleCache          Cause = "stale-discovery-cache"
)

// judge is a cause: a pure function from what was observed to verdicts.
type judge func(*World) []Verdict

// cause is a cause with its judge.
type cause struct {
	Cause
	judge judge
	// about is what it finds, in a few words.
	about string
}

// causes are all of them, in the order in which they are repaired.
func causes() []cause {
	return []cause{
		{ControllerMissing, controllerMissing, "a controller of Flux that does not run, while its objects wait"},
		{ControllerDies, controllerDies, "a controller of Flux that is killed again and again"},
		{APIUnavailable, deadAPIs, "an aggregated API that nothing answers, which breaks discovery and the deletion of Namespaces"},
		{WebhookWithoutEnd, deadWebhooks, "a webhook that fails closed and that nothing answers"},
		{ConversionFails, conversions, "a conversion webhook that does not answer, or answers wrongly"},
		{StoredVersions, storedVersions, "a CRD with objects stored in a version that is to go, or has gone"},
		{TooLong, applyFailures, "a tier that fails on an annotation that is too long"},
		{ManagedFields, managedFields, "a tier that fails on managed fields of an older schema"},
		{CDIError, cdiErrors, "KubeVirt CDI in phase Error, or on its way"},
		{FinalizerHeld, finalizers, "an object that is being deleted, whose controller is gone"},
		{DefinitionHeld, terminatingDefinitions, "a CRD that is being deleted and held by its objects"},
		{NamesRefused, refusedNames, "a CRD that is not served, since another one has its names"},
		{NamespaceHeld, namespaces, "a Namespace that cannot go, and exactly what holds it"},
		{ReleaseElsewhere, releaseElsewhere, "a release whose records are on another cluster"},
		{ReleaseUnreadable, releaseUnreadable, "a release whose newest record cannot be read"},
		{ReleaseUninstalling, releaseUninstalling, "a release that was being uninstalled, and never was"},
		{ReleasePending, releasePending, "a release that says an operation runs, and whether one does"},
		{ReleaseUninstalled, releaseUninstalled, "a release that is wanted, while its records say uninstalled"},
		{ReleaseExhausted, releaseExhausted, "a release that has used up its retries"},
		{ReleaseNoTarget, releaseNoTarget, "a release whose failed upgrade has nothing to be rolled back to"},
		{ReleaseTooBig, releaseTooBig, "a release whose record does not fit into a Secret"},
		{ReleaseMoves, releaseMoves, "a suspended release that a resume would uninstall"},
		{ReleaseHeld, releaseHeld, "a release that a killed run left suspended, or whose deletion lacks rights"},
		{ColdStart, coldStart, "a tier that waits for kinds which only it would bring"},
		{VersionNotServed, versionsNotServed, "a kind that is served, but not in the version that is asked for"},
		{StaleMapper, staleMappers, "an old controller that still knows nothing of a kind that is there"},
		{Asleep, asleep, "a tier whose kind is there now, and that looks again much later"},
		{TierStalled, stalledTiers, "a tier whose controller has given up on its spec"},
		{Cycle, cycles, "tiers that depend on each other in a loop"},
		{DependencySuspended, dependencySuspended, "a suspended tier that others wait for"},
		{DependencyMissing, dependencyMissing, "a dependency that does not exist"},
		{StaleCache, staleCache, "kubectl's own discovery cache, where it no longer tells the truth"},
	}
}

// Causes are the names of all causes, in the order in which they are repaired.
func Causes() []Cause {
	var names []Cause
	for _, c := range causes() {
		names = append(names, c.Cause)
	}
	return names
}

// About is what a cause finds, in a few words.
func (c Cause) About() string {
	for _, known := range causes() {
		if known.Cause == c {
			return known.about
		}
	}
	return ""
}

// Judge is the plan for a world: every verdict of every cause, in the order of
// repair and then of the objects.
func Judge(w *World) []Verdict {
	var all []Verdict
	for _, c := range causes() {
		found := c.judge(w)
		slices.SortStableFunc(found, func(a, b Verdict) int { return a.Object.Compare(b.Object) })
		all = append(all, found...)
	}
	return all
}
