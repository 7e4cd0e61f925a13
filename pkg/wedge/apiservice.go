// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// deadAPIs are the aggregated APIs that do not answer. Discovery of all groups
// then fails for many clients, and no Namespace can be deleted (kubernetes
// pkg/controller/namespace/deletion deleteAllContent).
func deadAPIs(w *World) []Verdict {
	var out []Verdict
	for _, a := range w.APIServices {
		if a.Available != nil && a.Available.Status == metav1.ConditionTrue {
			continue
		}
		out = append(out, w.deadAPI(a))
	}
	return out
}

func (w *World) deadAPI(a *APIService) Verdict {
	state, sentence := w.backend(a.Service)
	v := Verdict{
		Cause: APIUnavailable, Object: a.Ref, ResolvesItself: When,
		Summary: fmt.Sprintf("aggregated API %s does not answer: %s", a.GroupVersion, sentence),
		Why:     "the API server asks again and again; it never gives up an APIService by itself",
	}
	if c := a.Available; c != nil {
		v.since(c.LastTransitionTime.Time)
		v.evidence(a.Ref, "Available", because(c.Reason, c.Message))
	} else {
		v.evidence(a.Ref, "Available", "the API server has not looked yet")
	}
	w.evidenceBackend(&v, a.Service)
	if w.Served != nil {
		if err := w.Served.Unknown(a.GroupVersion); err != nil {
			v.evidence(a.Ref, "discovery", err.Error())
			v.Summary += "; what it serves is unknown, which is not the same as absent"
		}
	}
	for _, n := range w.undiscovered(a) {
		v.evidence(n.Ref, "NamespaceDeletionDiscoveryFailure", conditionNamed(n.Conditions, "NamespaceDeletionDiscoveryFailure").Message)
		v.Summary += fmt.Sprintf("; %s cannot be deleted because of it", n.Ref)
	}
	svc := serviceRef(a.Service)
	v.ResolvesWhen = fmt.Sprintf("as soon as an endpoint of %s is ready", svc)
	switch state {
	case backendAlive:
		v.State = "answers-wrong"
		v.ResolvesWhen = "as soon as the server behind it answers discovery"
		v.Repair = fmt.Sprintf("the Pods of %s are ready, and yet the API server cannot use them: look at the message of the condition; "+
			"usual causes are a NetworkPolicy or firewall between the API server and the Pods, and a certificate that the caBundle of %s does not trust", svc, a.Ref)
	case backendComing, backendRevived:
		v.State = "waiting"
		v.Repair = fmt.Sprintf("mend what keeps the Pods behind %s from being Ready; do not delete %s, it would only come back with them", svc, a.Ref)
	case backendEmpty:
		v.State, v.ResolvesItself, v.ResolvesWhen = "no-workload", Never, ""
		v.Repair = fmt.Sprintf("bring back, or scale up, the workload that %s selects; or remove all of it the way it was installed. "+
			"The APIService is not deleted while its Service exists", svc)
	case backendUnknown:
		v.State = "unknown"
		v.Repair = fmt.Sprintf("look whether %s exists and what is behind it; the APIService is not deleted before that is known", svc)
	case backendGone:
		v.State, v.ResolvesItself, v.ResolvesWhen = "no-service", Never, ""
		v.Repair = fmt.Sprintf("if the API is still wanted, install again what served it; if not, delete %s", a.Ref)
		v.Actions = []Action{
			stillAbsent(a.Service),
			{
				Verb: Delete, Object: a.Ref, Destructive: true, step: deleteStep{}, pin: pin{uid: a.UID, resourceVersion: a.ResourceVersion},
				Description: fmt.Sprintf("delete the registration of %s: requests for it then fail at once instead of after a connect, "+
					"and discovery is whole again. It holds no data; what served it makes it anew", a.GroupVersion),
			},
		}
	}
	return v
}

// undiscovered are the Namespaces whose deletion the API holds up.
func (w *World) undiscovered(a *APIService) []*TerminatingNamespace {
	var out []*TerminatingNamespace
	for _, n := range w.Terminating {
		c := conditionNamed(n.Conditions, "NamespaceDeletionDiscoveryFailure")
		if c != nil && c.Status == metav1.ConditionTrue && strings.Contains(c.Message, a.GroupVersion.String()) {
			out = append(out, n)
		}
	}
	return out
}

// stillAbsent looks once more that a Service does not exist: it may have come
// back between the plan and the act.
func stillAbsent(service types.NamespacedName) Action {
	return Action{
		Verb: Await, Object: serviceRef(service), step: absentStep{},
		Description: "look once more that it does not exist",
	}
}

// absentStep skips what follows when the object exists.
type absentStep struct{}

func (absentStep) run(ctx context.Context, x *execution, a *Action) error {
	live, err := x.get(ctx, a.Object)
	if err != nil {
		return err
	}
	if live != nil {
		return &skip{fmt.Sprintf("%s exists now: run again to see what is behind it", a.Object)}
	}
	return nil
}
