// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/release"
)

// hookStep creates the object of a hook and, where it is a Job or a Pod, waits
// until it has ended, as Helm does.
type hookStep struct {
	object *unstructured.Unstructured
	// mark is on what this step creates: an object of that name may be there from
	// an upgrade, from another event, or from the Helm that was killed, and tells
	// nothing of whether the hook has run at this one.
	mark string
	// replace is true where the hook's policy lets an earlier object be deleted.
	replace bool
}

// runHook is the action that runs one hook of a release at an event.
func (w *World) runHook(r *Release, h release.Hook, event string) (Action, error) {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(h.Manifest), &u.Object); err != nil || u.GetKind() == "" || u.GetName() == "" {
		return Action{}, fmt.Errorf("hook %s/%s: %w", h.Kind, h.Name, errHookManifest)
	}
	if u.GetNamespace() == "" {
		u.SetNamespace(r.Record.ReleaseNamespace)
	}
	mark := fmt.Sprintf("%s %s", event, r.Latest().UID)
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[flux.UnwedgeAnnotation] = mark
	u.SetAnnotations(annotations)
	ref := flux.Ref{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
	replace := len(h.DeletePolicies) == 0 || slices.Contains(h.DeletePolicies, "before-hook-creation")
	switch {
	case slices.Contains([]string{"Job", "Pod", "ConfigMap", "Secret", "ServiceAccount", "Role", "RoleBinding"}, h.Kind), w.allows(ref):
	default:
		return Action{}, fmt.Errorf("hook %s is no work that is done and forgotten: making it anew could lose data: --allow %s", ref, Arg(ref))
	}
	description := "run it, as the chart wants at a deletion, and wait until it has ended"
	if replace {
		description = "delete what an earlier run of this hook has left by that name, and " + description
	}
	return Action{
		Verb: RunHook, Object: ref, Destructive: true, step: hookStep{u, mark, replace}, Description: description,
	}, nil
}

func (s hookStep) run(ctx context.Context, x *execution, a *Action) error {
	client, err := x.client(a.Object)
	if err != nil {
		return err
	}
	live, err := x.get(ctx, a.Object)
	if err != nil {
		return err
	}
	if live != nil {
		if ended, err := hookEnded(live); ended && err == nil && live.GetAnnotations()[flux.UnwedgeAnnotation] == s.mark {
			a.Message = "it has run already"
			return nil
		}
		// Helm's default policy for a hook is before-hook-creation.
		if _, hook := live.GetAnnotations()["helm.sh/hook"]; !hook || !s.replace {
			return &skip{fmt.Sprintf("%s is there already, and is not for this to delete", a.Object)}
		}
		if err := (deleteStep{}).run(ctx, x, a); err != nil {
			return err
		}
		if err := (goneStep{refs(a.Object)}).run(ctx, x, a); err != nil {
			return err
		}
	}
	_, err = client.Create(ctx, s.object.DeepCopy(), metav1.CreateOptions{FieldManager: manager})
	if apierrors.IsAlreadyExists(err) {
		return &skip{fmt.Sprintf("%s appeared meanwhile", a.Object)}
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", a.Object, err)
	}
	return x.until(ctx, a.Object, func() string { return fmt.Sprintf("%s has not ended", a.Object) }, func(u *unstructured.Unstructured) (bool, error) {
		if u == nil {
			return true, nil // it has a time to live
		}
		return hookEnded(u)
	})
}

// hookEnded is true once the object has done its work: a Job or a Pod when it
// has ended, anything else when it is there.
func hookEnded(u *unstructured.Unstructured) (bool, error) {
	switch u.GetKind() {
	case "Job":
		if c := conditionOf(u, "Failed"); c != nil && c.Status == metav1.ConditionTrue {
			return true, fmt.Errorf("hook %s/%s failed: %s", u.GetKind(), u.GetName(), firstLine(c.Message))
		}
		c := conditionOf(u, "Complete")
		return c != nil && c.Status == metav1.ConditionTrue, nil
	case "Pod":
		phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
		if phase == "Failed" {
			return true, fmt.Errorf("hook %s/%s failed", u.GetKind(), u.GetName())
		}
		return phase == "Succeeded", nil
	}
	return true, nil
}
