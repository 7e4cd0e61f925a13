// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// triggerManager applies the trigger. It starts with "kubectl" so that
// kustomize-controller takes the object over in silence: it drops the managed
// fields of such managers before its own apply (fluxcd/pkg/ssa patch.go,
// matchFieldManager, v0.76.2), so nothing of ours is left on the object.
const triggerManager = "kubectl-standup"

// discoveryPoll is how often discovery is asked for a kind whose CRD is
// Established. Discovery cannot be watched, and follows within a second.
const discoveryPoll = 200 * time.Millisecond

const (
	exitDeadline = 4
	exitRefused  = 6
)

// RefusedError says that breaking a deadlock is not safe, or makes no sense,
// before something else has happened.
type RefusedError struct {
	Trigger flux.Ref
	Reason  string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s is not applied: %s", e.Trigger, e.Reason)
}

// ExitCode is 6, refused.
func (*RefusedError) ExitCode() int { return exitRefused }

// DeadlineError says that the kinds did not appear in time.
type DeadlineError struct {
	Trigger  flux.Ref
	Waited   time.Duration
	Missing  []string
	Operator Operator
}

func (e *DeadlineError) Error() string {
	return fmt.Sprintf("%s was applied, but after %s these are not served: %s\n%s",
		e.Trigger, e.Waited, finding.And(e.Missing), e.Operator.Sentence())
}

// ExitCode is 4, past a deadline.
func (*DeadlineError) ExitCode() int { return exitDeadline }

// Break is how a deadlock is broken.
type Break struct {
	// DryRun sends the trigger with dryRun=All and stops there.
	DryRun bool
	// Timeout is how long the operator may take to create the kinds.
	Timeout time.Duration
	// Say is told what is done, one line at a time.
	Say func(string)
}

// Break applies each trigger that the deadlock keeps back, and nothing else,
// exactly as Flux would render it; waits until the kinds that the tier lacks
// are Established and discoverable; and nudges the tier. Where the trigger is on
// the cluster already, say because a former run was killed, only the rest is
// left to do.
//
// It returns a *RefusedError (exit 6) when the trigger cannot work yet, and a
// *DeadlineError (exit 4) when the kinds do not appear.
func (c *Cluster) Break(ctx context.Context, d *Diagnosis, b Break) error {
	for _, t := range d.Kept() {
		if err := c.stillKept(ctx, d, t.Object.Ref()); err != nil {
			return err
		}
		if err := c.apply(ctx, d, t, b); err != nil {
			return err
		}
	}
	if b.DryRun {
		b.Say(fmt.Sprintf("%s would be nudged", d.Tier))
		return nil
	}
	for _, t := range append(d.Kept(), d.Applied()...) {
		if err := c.awaitKinds(ctx, t, b); err != nil {
			return err
		}
	}
	if _, err := flux.Nudge(ctx, c.dynamic, d.served, d.Tier); err != nil {
		return err
	}
	b.Say(fmt.Sprintf("%s nudged", d.Tier))
	return nil
}

// stillKept looks at the tier once more: what Flux would not apply now is not
// applied in its place.
func (c *Cluster) stillKept(ctx context.Context, d *Diagnosis, trigger flux.Ref) error {
	if d.Rejected != nil {
		return &RefusedError{trigger, fmt.Sprintf("Flux would not apply it either: %v", d.redact(d.Rejected))}
	}
	res, _ := flux.ResourceOf(d.served, d.Tier.Kind)
	tier, err := c.dynamic.Resource(res.GroupVersionResource()).Namespace(d.Tier.Namespace).Get(ctx, d.Tier.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get %s: %w", d.Tier, err)
	}
	suspended, _, _ := unstructured.NestedBool(tier.Object, "spec", "suspend")
	switch {
	case tier.GetDeletionTimestamp() != nil:
		return &RefusedError{trigger, fmt.Sprintf("%s is being deleted", d.Tier)}
	case suspended:
		return &RefusedError{trigger, fmt.Sprintf("%s is suspended, so Flux would not apply it either", d.Tier)}
	}
	return nil
}

func (c *Cluster) apply(ctx context.Context, d *Diagnosis, t Trigger, b Break) error {
	ref := t.Object.Ref()
	operator, err := c.Operator(ctx, t.Relation)
	if err != nil {
		return err
	}
	if err := c.refuse(ctx, t, operator); err != nil {
		return err
	}
	if !operator.Found() {
		b.Say("Warning: " + operator.Sentence() + "; going on, since it may run elsewhere")
	}
	served, err := Discover(ctx, c.discovery)
	if err != nil {
		return err
	}
	res, ok := served.Resource(t.Object.GroupVersionKind())
	if !ok {
		return &RefusedError{ref, fmt.Sprintf("its kind is not served in version %s", t.Object.GroupVersionKind().Version)}
	}
	options := metav1.ApplyOptions{FieldManager: triggerManager}
	if b.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	// kustomize gives every object the namespace of the tier, also those that
	// have none.
	trigger, namespace := t.Object.DeepCopy(), ref.Namespace
	if !res.Namespaced {
		namespace = ""
		trigger.SetNamespace("")
	}
	client := c.dynamic.Resource(t.Object.GroupVersionKind().GroupVersion().WithResource(res.Plural)).Namespace(namespace)
	if _, err := client.Apply(ctx, ref.Name, trigger, options); err != nil {
		if apierrors.IsConflict(err) {
			return fmt.Errorf("%s appeared meanwhile, and others manage it: %w", ref, d.redact(err))
		}
		return fmt.Errorf("apply %s: %w", ref, d.redact(err))
	}
	if b.DryRun {
		b.Say(fmt.Sprintf("%s would be applied (server dry run)", ref))
	} else {
		b.Say(fmt.Sprintf("%s applied", ref))
	}
	return nil
}

// refuse says why a trigger cannot work yet.
func (c *Cluster) refuse(ctx context.Context, t Trigger, operator Operator) error {
	ref := t.Object.Ref()
	if t.Object.Encrypted {
		return &RefusedError{ref, "it holds encrypted values, which only Flux can decrypt"}
	}
	if !t.Served {
		return &RefusedError{ref, fmt.Sprintf("its own CRD is not Established; the tier that installs %s has not run yet: see `kubectl tiers`", t.Relation.System)}
	}
	namespace := t.namespace(operator)
	if namespace == "" {
		return nil
	}
	ns, err := c.core.Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return &RefusedError{ref, fmt.Sprintf("namespace %s does not exist; the tier that makes it has not run yet: see `kubectl tiers`", namespace)}
	case err != nil:
		return fmt.Errorf("get namespace %s: %w", namespace, err)
	case ns.DeletionTimestamp != nil:
		return &RefusedError{ref, fmt.Sprintf("namespace %s is being deleted", namespace)}
	}
	return nil
}

// namespace is the one that the trigger needs: its own, or, for one that has
// none, its operator's: where that was seen, else where it usually is.
func (t *Trigger) namespace(operator Operator) string {
	for _, k := range t.Relation.Triggers {
		if k.GroupKind() == t.Kind && k.Scope == knowledge.Namespaced {
			return t.Object.GetNamespace()
		}
	}
	switch {
	case operator.Found():
		return operator.Deployment.Namespace
	case t.Relation.Operator != nil:
		return t.Relation.Operator.Namespace
	}
	return ""
}

// awaitKinds waits until the kinds that the trigger creates, as far as the
// tier lacks them, are Established and in discovery.
func (c *Cluster) awaitKinds(ctx context.Context, t Trigger, b Break) error {
	start := time.Now()
	wanted := t.definitions()
	limited, cancel := context.WithTimeout(ctx, b.Timeout)
	defer cancel()
	group, groupCtx := errgroup.WithContext(limited)
	for _, name := range wanted {
		group.Go(func() error { return c.awaitEstablished(groupCtx, name) })
	}
	err := group.Wait()
	if err == nil {
		err = c.awaitDiscovery(limited, t.Creates)
	}
	var bad *definitionError
	switch {
	case err == nil:
		b.Say(fmt.Sprintf("%s served after %s", kindNames(t.Creates), time.Since(start).Round(100*time.Millisecond)))
		return nil
	case errors.As(err, &bad):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() == nil:
		return err
	}
	operator, lookErr := c.Operator(ctx, t.Relation)
	if lookErr != nil {
		return lookErr
	}
	return &DeadlineError{Trigger: t.Object.Ref(), Waited: b.Timeout, Missing: c.absent(ctx, wanted), Operator: operator}
}

// definitionError is a CRD that will never be Established.
type definitionError struct{ name, why string }

func (e *definitionError) Error() string {
	return fmt.Sprintf("CRD %s will not be Established: %s", e.name, e.why)
}

// awaitEstablished watches one CRD.
func (c *Cluster) awaitEstablished(ctx context.Context, name string) error {
	crds := c.dynamic.Resource(customResourceDefinition())
	only := fields.OneTermEqualSelector("metadata.name", name).String()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = only
			return crds.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = only
			return crds.Watch(ctx, o)
		},
	}
	_, err := watchtools.UntilWithSync(ctx, lw, &unstructured.Unstructured{}, nil, func(e watch.Event) (bool, error) {
		crd, ok := e.Object.(*unstructured.Unstructured)
		if !ok || e.Type == watch.Deleted {
			return false, nil
		}
		return established(crd)
	})
	return err
}

// established is true for a CRD that is Established. A name that clashes with
// another CRD's is no "not yet": nothing resolves it by itself.
func established(crd *unstructured.Unstructured) (bool, error) {
	result, err := status.Compute(crd)
	if err != nil {
		return false, fmt.Errorf("CRD %s: %w", crd.GetName(), err)
	}
	if result.Status == status.FailedStatus {
		return false, &definitionError{crd.GetName(), result.Message}
	}
	return result.Status == status.CurrentStatus, nil
}

// awaitDiscovery waits until discovery shows the kinds: for about a second
// after it is Established, a CRD is not served yet.
func (c *Cluster) awaitDiscovery(ctx context.Context, kinds []schema.GroupVersionKind) error {
	return utilwait.PollUntilContextCancel(ctx, discoveryPoll, true, func(ctx context.Context) (bool, error) {
		served, err := Discover(ctx, c.discovery)
		if err != nil {
			return false, nil //nolint:nilerr // an API server that restarts is waited for, too
		}
		for _, kind := range kinds {
			if _, ok := served.Resource(kind); !ok {
				return false, nil
			}
		}
		return true, nil
	})
}

// absent names those of the CRDs that are not there.
func (c *Cluster) absent(ctx context.Context, names []string) []string {
	var out []string
	for _, name := range names {
		crd, err := c.dynamic.Resource(customResourceDefinition()).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			if ok, _ := established(crd); ok {
				continue
			}
		}
		out = append(out, name)
	}
	return out
}
