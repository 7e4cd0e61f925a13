// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// List is the versioned report of `kubectl tiers -o json`.
type List struct {
	metav1.TypeMeta `json:",inline"`
	Server          Server       `json:"server"`
	Items           []Item       `json:"items"`
	Cycles          [][]flux.Ref `json:"cycles,omitempty"`
}

// Server is the cluster that a report is about.
type Server struct {
	URL string `json:"url"`
	UID string `json:"uid,omitempty"`
}

// Item is one tier of a List. What is unknown or does not apply is absent.
type Item struct {
	Level          int                    `json:"level"`
	Object         flux.Ref               `json:"object"`
	Ready          metav1.ConditionStatus `json:"ready"`
	State          State                  `json:"state"`
	Message        string                 `json:"message,omitempty"`
	Revision       string                 `json:"revision,omitempty"`
	SourceRevision string                 `json:"sourceRevision,omitempty"`
	DependsOn      []flux.Ref             `json:"dependsOn,omitempty"`
	ContainedBy    *flux.Ref              `json:"containedBy,omitempty"`
	BlockedBy      []flux.Ref             `json:"blockedBy,omitempty"`
	RootCause      *ItemRoot              `json:"rootCause,omitempty"`
	// RetryAt is when the controller tries again by itself, in UTC.
	RetryAt *time.Time `json:"retryAt,omitempty"`
	Gate    Gate       `json:"gate"`
	// Gates is the number of tiers that cannot come up before this one.
	Gates int `json:"gates"`
}

// ItemRoot is the root cause of a tier that is not ready.
type ItemRoot struct {
	Object  flux.Ref `json:"object"`
	Message string   `json:"message"`
}

// Report turns nodes of the graph into the items of a List.
func Report(nodes []*Node) []Item {
	items := make([]Item, 0, len(nodes))
	for _, n := range nodes {
		it := Item{
			Level: n.Level, Object: n.Ref, Ready: n.ReadyStatus(), State: n.State, Message: n.Why,
			Revision: n.AppliedRevision(), SourceRevision: n.SourceRevision(), Gate: n.Gate, Gates: n.Below,
		}
		for _, d := range n.DependsOn {
			it.DependsOn = append(it.DependsOn, d.Ref)
		}
		for _, b := range n.Blockers {
			if n.State == Blocked {
				it.BlockedBy = append(it.BlockedBy, b.On)
			}
		}
		if n.ContainedBy != nil {
			it.ContainedBy = &n.ContainedBy.Ref
		}
		if n.Root != nil && n.Root.Object != n.Ref {
			it.RootCause = &ItemRoot{n.Root.Object, n.Root.Message}
		}
		if !n.RetryAt.IsZero() {
			at := n.RetryAt.UTC()
			it.RetryAt = &at
		}
		items = append(items, it)
	}
	return items
}
