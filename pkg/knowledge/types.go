// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// File is a file of knowledge: ours, and what is given to extend it.
type File struct {
	// APIVersion and Kind head every file.
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	// Lists are kinds that several relations and charts name, by a name of
	// their own. Later files may name them too.
	Lists map[string][]Kind `json:"lists,omitempty"`
	// Relations are one per system and way in which it creates CRDs.
	Relations []Relation `json:"relations,omitempty"`
	// Charts are what charts register, for where they are not rendered.
	Charts []Chart `json:"charts,omitempty"`
	// Effects are kinds whose effect no Ready proves.
	Effects []Effect `json:"effects,omitempty"`
}

// Class says when the CRDs of a relation come to be.
type Class string

// The classes. Of all but None and Remote, the kinds are missing on a cold
// cluster until something has run.
const (
	// CR is that a trigger must be reconciled, and that the kinds are known.
	CR Class = "cr"
	// CRDynamic is as CR, and the kinds are in the trigger itself.
	CRDynamic Class = "cr-dynamic"
	// Start is that the controller registers them when it starts.
	Start Class = "start"
	// AutoCR is as CR, and the operator creates the trigger when it starts.
	AutoCR Class = "auto-cr"
	// Job is that a Job of a chart's hook applies them.
	Job Class = "job"
	// Aggregated is that an APIService serves the kinds. There are no CRDs.
	Aggregated Class = "aggregated"
	// Remote is that the CRDs are made in another API server.
	Remote Class = "remote"
	// Before is that the kinds are there before Flux reconciles anything: the
	// distribution, or whoever bootstraps the cluster, registers them.
	Before Class = "before"
	// None is that the installer registers everything. It is said so that
	// nobody looks again.
	None Class = "none"
)

// Scope is that of the objects of a kind.
type Scope string

// The scopes.
const (
	Cluster    Scope = "Cluster"
	Namespaced Scope = "Namespaced"
)

// Relation is one way in which CRDs come to be.
type Relation struct {
	// ID is unique and stable. A later file replaces the relation of the same
	// ID.
	ID string `json:"id"`
	// System is the name that people know it by.
	System string `json:"system"`
	Class  Class  `json:"class"`
	// Network is true for the cluster's network. Flux's own pods need one, so
	// that what it registers is there before Flux reconciles anything.
	Network bool `json:"network,omitempty"`
	// Triggers are the first-order kinds whose reconciliation creates the
	// CRDs. One of them is enough.
	Triggers []Trigger `json:"triggers,omitempty"`
	// Creates are the second-order kinds.
	Creates []Kind `json:"creates,omitempty"`
	// Derive says how the kinds follow from a trigger, for class cr-dynamic.
	// Empty where only a live cluster tells, or where code of ours does.
	Derive []Derivation `json:"derive,omitempty"`
	// Chain are the triggers of other relations that the controller creates,
	// and through which more CRDs come to be.
	Chain []Kind `json:"chain,omitempty"`
	// Registers are the first-order kinds that the system's installer brings,
	// the triggers not among them.
	Registers []Kind `json:"registers,omitempty"`
	// Operator is where the controller usually runs.
	Operator *Operator `json:"operator,omitempty"`
	// Trace is what the controller leaves on the CRDs that it creates.
	Trace *Trace `json:"trace,omitempty"`
	// Sources are where this was read, and Confidence how sure that makes it.
	Sources    []string   `json:"sources"`
	Confidence Confidence `json:"confidence"`
	// Note is for people.
	Note string `json:"note,omitempty"`
}

// Confidence says how a relation is known.
type Confidence string

// The degrees of confidence, best first.
const (
	// Run is that it was seen on a real control plane.
	Run Confidence = "run"
	// Source is that the current source says so.
	Source Confidence = "source"
	// OldSource is that the source of an older release says so.
	OldSource Confidence = "old-source"
	// Memory is that somebody remembers it.
	Memory Confidence = "memory"
)

// Kind is a kind, or a list of kinds.
type Kind struct {
	// List is the name of a list. Nothing else is then set.
	List  string `json:"list,omitempty"`
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind,omitempty"`
	// Plural is the name of the resource, and the first part of the CRD's name.
	Plural string `json:"plural,omitempty"`
	Scope  Scope  `json:"scope,omitempty"`
	// Versions are the API versions that the newest release serves.
	Versions []string `json:"versions,omitempty"`
	// Since is the first release that has the kind, Until the first that has it
	// no more. Both are empty for a kind that all releases have that are in
	// use.
	Since string `json:"since,omitempty"`
	Until string `json:"until,omitempty"`
	// When is what must be switched on for the kind to appear, in words.
	When string `json:"when,omitempty"`
}

// GroupKind names the kind.
func (k Kind) GroupKind() schema.GroupKind { return schema.GroupKind{Group: k.Group, Kind: k.Kind} }

// CRD is the name of the CRD that registers the kind.
func (k Kind) CRD() string { return k.Plural + "." + k.Group }

// Trigger is a kind whose reconciliation creates CRDs.
type Trigger struct {
	Group  string `json:"group"`
	Kind   string `json:"kind"`
	Plural string `json:"plural"`
	Scope  Scope  `json:"scope"`
	// Ready is the health check that proves that the trigger was reconciled.
	Ready *Ready `json:"ready,omitempty"`
	// When is what the trigger must say for the CRDs to be made, in words.
	When string `json:"when,omitempty"`
}

// GroupKind names the kind of the trigger.
func (t Trigger) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: t.Group, Kind: t.Kind}
}

// CRD is the name of the first-order CRD that registers the trigger.
func (t Trigger) CRD() string { return t.Plural + "." + t.Group }

// Ready is an entry of spec.healthCheckExprs of a Kustomization: CEL over the
// fields of the trigger. Without it kstatus calls the trigger healthy as soon
// as it is applied.
type Ready struct {
	APIVersion string `json:"apiVersion"`
	Current    string `json:"current"`
	InProgress string `json:"inProgress,omitempty"`
	Failed     string `json:"failed,omitempty"`
}

// Operator is where a controller usually runs. Namespace and Deployment are
// what its own manifests say, and are changed by many; the labels of the
// Deployment and of its pods are not.
type Operator struct {
	Namespace  string            `json:"namespace,omitempty"`
	Deployment string            `json:"deployment,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	// Images are the repositories of its image, without registry, tag and
	// digest: kubevirt/cdi-operator. A workload that runs one is the operator.
	Images []string `json:"images,omitempty"`
}

// Trace is what a controller leaves on the CRDs that it creates.
type Trace struct {
	// Owned is true when the CRD has an owner reference to the trigger, as its
	// controller.
	Owned bool `json:"owned,omitempty"`
	// Managers are the field managers that created it.
	Managers []string `json:"managers,omitempty"`
	// Labels are keys with their values. A value that differs from one cluster
	// to the next is empty.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are keys.
	Annotations []string `json:"annotations,omitempty"`
}

// Derivation makes one kind of the fields of a trigger.
type Derivation struct {
	Group  Value `json:"group"`
	Kind   Value `json:"kind"`
	Plural Value `json:"plural"`
	Scope  Scope `json:"scope,omitempty"`
	// ScopePath leads to a field that says Cluster or Namespaced. Where it says
	// neither, Scope holds.
	ScopePath string `json:"scopePath,omitempty"`
	// If is a path. Where the trigger does not have it, nothing is derived.
	If string `json:"if,omitempty"`
}

// Value is a constant, or a field of the trigger.
type Value struct {
	Constant string `json:"constant,omitempty"`
	// Path leads to a field, with dots: spec.crd.spec.names.kind.
	Path string `json:"path,omitempty"`
	// Default is taken where the field is not there or empty.
	Default string `json:"default,omitempty"`
	// Lower turns the value into lower case.
	Lower bool `json:"lower,omitempty"`
	// Plural turns it, after that, into the plural of an English word.
	Plural bool `json:"plural,omitempty"`
}

// Second is true when the kinds of the relation are missing on a cold cluster
// until something has run.
func (r Relation) Second() bool { return r.Class != None && r.Class != Remote }

// HasTrigger is true when objects of the kind create the relation's CRDs.
func (r Relation) HasTrigger(gk schema.GroupKind) bool {
	return slices.ContainsFunc(r.Triggers, func(t Trigger) bool { return t.GroupKind() == gk })
}
