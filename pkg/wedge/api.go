// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// API is the part of a World that lives in the API's own state: who answers
// for which kinds and requests, and what is being deleted and cannot go.
type API struct {
	Definitions []*Definition
	// APIServices are those that a Service stands behind.
	APIServices []*APIService
	Webhooks    []*WebhookConfiguration
	// Backends are the Services that an APIService, a webhook or a conversion
	// names.
	Backends map[types.NamespacedName]*Backend
	// Terminating are the Namespaces that are being deleted.
	Terminating []*TerminatingNamespace
	// Held are objects with finalizers that keep a CRD or a Namespace from
	// going, or that are themselves being deleted.
	Held []*Held
	// Triggers are the resources whose reconciliation creates CRDs, where the
	// operator is known.
	Triggers []*TriggerState
	// Workloads are what may run a controller. They are only read when
	// something is wrong that one of them might mend.
	Workloads []*Workload
	// Pods are those that are not Ready, in the namespaces that matter.
	Pods []Pod
	Data Data
	// Lock is the ConfigMap by which cdi-operator knows its CDI resource; nil
	// when there was no reason to look.
	Lock *Lock
	// Named are the objects that a person has named, by the name as typed.
	Named map[string]Named
	// Unread is why a part could not be read, by part. Nothing may then be
	// concluded from its absence.
	Unread map[Part]string
}

// Part is a part of the API's state that is read by itself.
type Part string

// The parts.
const (
	PartDefinitions Part = "CustomResourceDefinitions"
	PartAPIServices Part = "APIServices"
	PartValidating  Part = "ValidatingWebhookConfigurations"
	PartMutating    Part = "MutatingWebhookConfigurations"
	PartNamespaces  Part = "Namespaces"
	PartWorkloads   Part = "workloads"
)

// Owner is who put an object there, as far as its metadata tells.
type Owner struct {
	// Tier is the Kustomization or HelmRelease that applies it.
	Tier flux.Ref
	// Release is namespace/name of the Helm release that it belongs to.
	Release string
	// Controller and ControllerUID are its owner reference with controller: true.
	Controller    flux.Ref
	ControllerUID types.UID
	// Managers are its field managers.
	Managers []string
}

// Version is one version of a definition.
type Version struct {
	Name            string
	Served, Storage bool
}

// Definition is a CustomResourceDefinition without its schemas.
type Definition struct {
	Observed

	Owner          Owner
	Defines        schema.GroupKind
	Plural         string
	Namespaced     bool
	Versions       []Version
	StoredVersions []string
	// Conversion is nil where no webhook converts.
	Conversion *Conversion
	// Pruning is nil where there was no reason to compare the schemas.
	Pruning    *Pruning
	Conditions []metav1.Condition
	// Unread is why its objects could not be listed, where that was tried.
	Unread string
}

// Conversion is the webhook that converts between the versions of a kind.
type Conversion struct {
	// Service is the zero value where the webhook is reached by URL.
	Service  types.NamespacedName
	CABundle bool
}

// APIService is an aggregated API.
type APIService struct {
	Observed

	Owner        Owner
	GroupVersion schema.GroupVersion
	Service      types.NamespacedName
	// Available is nil when the aggregator has not looked yet.
	Available *metav1.Condition
}

// WebhookConfiguration is a ValidatingWebhookConfiguration or a
// MutatingWebhookConfiguration.
type WebhookConfiguration struct {
	Observed

	Owner    Owner
	Webhooks []Webhook
}

// Webhook is one webhook of a configuration.
type Webhook struct {
	Name string
	// FailClosed is failurePolicy Fail, which is also the default.
	FailClosed bool
	// Service is the zero value where the webhook is reached by URL.
	Service types.NamespacedName
	Rules   []Rule
	// Narrow is true when selectors or match conditions restrict the rules to
	// some objects.
	Narrow bool
}

// Rule says for which requests a webhook is called.
type Rule struct {
	Groups, Resources, Operations []string
}

// Backend is a Service that requests of the API server go to.
type Backend struct {
	Service types.NamespacedName
	// Unknown is why nothing can be said of it.
	Unknown string
	Exists  bool
	// External is true for a Service of type ExternalName: it has no endpoints.
	External bool
	// Ready and NotReady are numbers of endpoints.
	Ready, NotReady int
	Selector        map[string]string
}

// TerminatingNamespace is a Namespace that is being deleted.
type TerminatingNamespace struct {
	Observed // its Finalizers are those of the metadata

	// Spec are the finalizers of spec, of which Kubernetes' own is one.
	Spec       []string
	Conditions []metav1.Condition
	// Unread is why what holds it could not be listed.
	Unread []string
}

// Held is an object that finalizers keep.
type Held struct {
	Observed

	// Named is true for one that a person has named, and that would not have
	// been looked at else.
	Named bool

	Plural string
	Owner  Owner
	// SetBy are the field managers that wrote the finalizers.
	SetBy []string
	// Relation is that of the system whose resource this is; nil when it is of
	// none that is known.
	Relation *knowledge.Relation
}

// TriggerState is a trigger with its status.
type TriggerState struct {
	Held

	Phase           string
	Conditions      []metav1.Condition
	OperatorVersion string
	ObservedVersion string
	// UninstallStrategy is CDI's and KubeVirt's.
	UninstallStrategy string
}

// Workload is a Deployment, a StatefulSet or a DaemonSet.
type Workload struct {
	Observed

	Labels            map[string]string
	PodLabels         map[string]string
	Wanted, Available int32
	// Names are those by which a process of it may call itself: of its
	// containers, images and commands.
	Names []string
	Image string // of its first container
	// RestartedAt is when its Pods were last replaced by intent.
	RestartedAt time.Time
}

// Pod is a Pod that is not Ready, and why.
type Pod struct {
	Ref    flux.Ref
	Labels map[string]string
	Why    string
}

// Data are the objects whose loss is a loss of somebody's data.
type Data struct {
	// Unknown is why it cannot be said which there are.
	Unknown string
	Objects []Datum
}

// Datum is a VirtualMachineInstance, a DataVolume, or a claim that an import
// fills.
type Datum struct {
	Ref    flux.Ref
	Plural string
	Phase  string
	// InFlight is true while data is being written.
	InFlight bool
}

// Lock is a ConfigMap that an operator holds for one resource of its own.
type Lock struct {
	Observed

	// Unknown is why it could not be read.
	Unknown string
	Exists  bool
	Owner   Owner
}

// refs are all objects that were seen, so that a person can name them.
func (a *API) refs() []flux.Ref {
	var out []flux.Ref
	for _, d := range a.Definitions {
		out = append(out, d.Ref)
	}
	for _, s := range a.APIServices {
		out = append(out, s.Ref)
	}
	for _, c := range a.Webhooks {
		out = append(out, c.Ref)
	}
	for _, n := range a.Terminating {
		out = append(out, n.Ref)
	}
	for _, h := range a.Held {
		out = append(out, h.Ref)
	}
	for _, t := range a.Triggers {
		out = append(out, t.Ref)
	}
	for _, d := range a.Data.Objects {
		out = append(out, d.Ref)
	}
	return out
}
