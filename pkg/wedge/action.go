// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// Verb is what an action does.
type Verb string

// The verbs.
const (
	Suspend         Verb = "suspend"
	Resume          Verb = "resume"
	Nudge           Verb = "nudge"
	Reset           Verb = "reset"
	MarkFailed      Verb = "mark-failed"
	DropDocuments   Verb = "drop-documents"
	SkipHooks       Verb = "skip-hooks"
	RunHook         Verb = "run-hook"
	Delete          Verb = "delete"
	RemoveFinalizer Verb = "remove-finalizer"
	Rewrite         Verb = "rewrite"
	Patch           Verb = "patch"
	Apply           Verb = "apply"
	Restart         Verb = "restart"
	Await           Verb = "wait"
)

// Result is how an action ended.
type Result string

// The results.
const (
	Done    Result = "done"
	Skipped Result = "skipped"
	Failed  Result = "failed"
)

// Action is one step of a repair. The exported fields tell a person; what is
// sent is in the step.
type Action struct {
	Verb   Verb     `json:"verb"`
	Object flux.Ref `json:"object"`
	// Destructive actions delete, or rewrite what Flux cannot recreate.
	Destructive bool   `json:"destructive"`
	Description string `json:"description"`
	// Backup is the file that holds the object as it was.
	Backup  string `json:"backup,omitempty"`
	Result  Result `json:"result,omitempty"`
	Message string `json:"message,omitempty"`

	step step
	pin  pin
	// while must still hold when the action is done.
	while []condition
}

// pin is the object as the plan saw it. An action on an object that has
// changed since is skipped.
type pin struct {
	uid types.UID
	// resourceVersion pins to every change; generation, where it is set
	// instead, to changes of the spec and to deletion alone: the status of an
	// object whose controller retries changes all the time.
	resourceVersion string
	generation      int64
}

// condition is a value that an object must have.
type condition struct {
	object flux.Ref
	path   []string
	want   any
}

// step is what an action does, as a value; run does it. What run returns is
// judged by the executor: see skip and deadline.
type step interface {
	run(ctx context.Context, x *execution, a *Action) error
}

// patchStep is a JSON patch. Its operations are pinned by the executor.
type patchStep struct {
	ops         []op
	subresource string
	manager     string
}

// op is one operation of a JSON patch (RFC 6902).
type op struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// mergeStep is a JSON merge patch, pinned by the executor. With ask it also
// asks Flux, as an askStep does, in the same patch.
type mergeStep struct {
	patch       map[string]any
	subresource string
	manager     string
	ask         []string
}

// askStep sets requestedAt and the further annotations to one new token, in
// one patch: Flux acts on resetAt and forceAt only where they equal it.
type askStep struct{ also []string }

// deleteStep deletes the object, in the background unless foreground.
type deleteStep struct{ foreground bool }

// goneStep waits until the objects are gone.
type goneStep struct{ objects []flux.Ref }

// outcomeStep waits until the controller has answered the last request on the
// object, and judges what came of it.
type outcomeStep struct{}

// breakStep applies the trigger of a deadlock and waits for its kinds.
type breakStep struct{ diagnosis *crds.Diagnosis }
