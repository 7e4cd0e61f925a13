// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"time"
)

// Record is one revision, decoded. The values of the release are not in it.
type Record struct {
	// Revision is the record's own metadata; zero when it came from Decode.
	Revision
	// Status is the payload's, and the truth.
	Status Status
	// Name and ReleaseNamespace are the payload's: the namespace is where the
	// release's objects go, Revision.Namespace is where its records are.
	Name, ReleaseNamespace string
	// Number is the payload's revision.
	Number int

	Chart, ChartVersion, AppVersion string
	// FirstDeployed is when the release was first installed, LastDeployed when
	// the operation of this revision began, DeletedAt when an uninstall did;
	// zero when Helm wrote none.
	FirstDeployed, LastDeployed, DeletedAt time.Time
	Description                            string
	// Manifest is what was applied, without hooks and without the chart's crds/.
	Manifest string
	// ApplyMethod is Helm 4's, ssa or csa; empty in a record of Helm 3.
	ApplyMethod string
	// RollbackTo is the revision that a rollback restores. Only Helm 4 writes it;
	// 0 when it is none, or unknown.
	RollbackTo int
	Hooks      []Hook

	// data is the payload as it came. Packed it takes a tenth of the memory, and
	// few records are ever edited.
	data []byte
}

// Hook is an object that Helm creates at certain events. It is not part of the
// manifest, and an uninstall does not delete it.
type Hook struct {
	Name, Kind string
	// Path is the template's file in the chart.
	Path     string
	Manifest string
	// Events are Helm's words, such as pre-delete.
	Events         []string
	Weight         int
	DeletePolicies []string
	LastRun        HookRun
}

// HookRun is the last time that a hook ran, as the record tells. Phase is
// Unknown, Running, Succeeded or Failed, and empty when it never ran.
type HookRun struct {
	StartedAt, CompletedAt time.Time
	Phase                  string
}

// On tells whether the hook runs at an event, such as pre-delete.
func (h Hook) On(event string) bool { return slices.Contains(h.Events, event) }
