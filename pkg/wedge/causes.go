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
}

// causes are all of them, in the order in which they are repaired.
func causes() []cause {
	return []cause{
		{ControllerMissing, controllerMissing},
		{ControllerDies, controllerDies},
		{APIUnavailable, deadAPIs},
		{WebhookWithoutEnd, deadWebhooks},
		{ConversionFails, conversions},
		{StoredVersions, storedVersions},
		{TooLong, applyFailures},
		{ManagedFields, managedFields},
		{CDIError, cdiErrors},
		{FinalizerHeld, finalizers},
		{DefinitionHeld, terminatingDefinitions},
		{NamesRefused, refusedNames},
		{NamespaceHeld, namespaces},
		{ReleaseElsewhere, releaseElsewhere},
		{ReleaseUnreadable, releaseUnreadable},
		{ReleaseUninstalling, releaseUninstalling},
		{ReleasePending, releasePending},
		{ReleaseUninstalled, releaseUninstalled},
		{ReleaseExhausted, releaseExhausted},
		{ReleaseNoTarget, releaseNoTarget},
		{ReleaseTooBig, releaseTooBig},
		{ReleaseMoves, releaseMoves},
		{ReleaseHeld, releaseHeld},
		{ColdStart, coldStart},
		{VersionNotServed, versionsNotServed},
		{StaleMapper, staleMappers},
		{Asleep, asleep},
		{TierStalled, stalledTiers},
		{Cycle, cycles},
		{DependencySuspended, dependencySuspended},
		{DependencyMissing, dependencyMissing},
		{StaleCache, staleCache},
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
