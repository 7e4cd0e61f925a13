// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// World is what was observed of a cluster, and what a person has chosen: all
// that a verdict may depend on. It is values and no client.
type World struct {
	Now     time.Time
	Choices Choices

	// Flux and Graph are nil where Flux is not installed.
	Flux   *flux.Snapshot
	Graph  *tiers.Graph
	Served *crds.Served
	// Controllers are Flux's own, by name: kustomize-controller and so on. One
	// whose Deployment was not seen is absent.
	Controllers map[string]*Controller
	Releases    []*Release
	Diagnoses   []*crds.Diagnosis
	API
	FluxState
	// Cache is what kubectl has cached of this server; nil where nothing is.
	Cache *Cache
	Gaps  []Gap

	asked *asked
}

// Choices are what a person has decided on the command line.
type Choices struct {
	// Names are the objects that are asked about, all where there is none.
	Names []string
	// Namespace narrows that to one and what is in it; empty for all.
	Namespace string
	// Timeout bounds each wait; 0 where nobody has said so.
	Timeout time.Duration
	// Uninstalling is "finish", "keep", or empty.
	Uninstalling string
	// Hooks is true when the hooks of a release shall be run.
	Hooks bool
	// OlderThan is how old an operation of plain Helm must be to count as
	// abandoned; 0 where nobody has said so.
	OlderThan time.Duration
	// Allow names objects that may be lost: TYPE/NAME, or TYPE/NAMESPACE/NAME
	// for one that has a Namespace.
	Allow []string
}

// Controller is one of Flux's controllers, as its Deployment and Pods tell.
type Controller struct {
	Deployment    flux.Ref
	Wanted, Ready int32
	Version       string // of its image's tag: "v1.6.3"
	Args          []string
	MemoryLimit   string
	// Started is of the oldest Pod that has not ended, one that is going away and
	// those of its shards included: any of them may be at work since then. It is
	// the zero time when there is none, or when not all could be looked at.
	Started time.Time
	// Youngest is when the last of its own Pods started that runs and stays: what
	// the controller has learnt cannot be older. The zero time when none runs.
	Youngest         time.Time
	Restarts         int32
	LastTermination  string // the reason of the last one: OOMKilled
	LastTerminatedAt time.Time
}

// Running is true when the controller can act.
func (c *Controller) Running() bool { return c != nil && c.Ready > 0 }

// pin is to what the object is to be, not to its status, which its controller
// may write at any time; to all of it where the two are not told apart.
func (o *Observed) pin() pin {
	if o.Generation > 0 {
		return pin{uid: o.UID, generation: o.Generation}
	}
	return pin{uid: o.UID, resourceVersion: o.ResourceVersion}
}

// Observed is what is kept of the metadata of an object.
type Observed struct {
	Ref             flux.Ref
	UID             types.UID
	ResourceVersion string
	Generation      int64
	Created         time.Time
	Deleted         time.Time // the zero time when deletion was not asked for
	Finalizers      []string
}
