// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"context"
	"encoding/json"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// atOnce is how many lists of one stage are read side by side.
const atOnce = 8

// apiReader fills the API part of a World. Every list that fails is a gap.
type apiReader struct {
	*lister
	cluster *Cluster
	world   *World

	// noDefinitions is why the definitions could not be read.
	noDefinitions string

	mu   sync.Mutex
	gaps []Gap
}

// observeAPI reads the API's own state: one list per kind of it; the
// EndpointSlices of the namespaces whose Services it names; and, only where
// something is wrong, the Deployments, the Pods of the namespaces concerned and
// the objects that finalizers hold, and the schemas of a CRD.
func (c *Cluster) observeAPI(ctx context.Context, w *World) []Gap {
	l, err := newLister(c.cfg)
	if err != nil {
		return []Gap{{What: "the API's own state", Why: err.Error()}}
	}
	r := &apiReader{lister: l, cluster: c, world: w}
	w.Unread, w.Backends, w.Named = map[Part]string{}, map[types.NamespacedName]*Backend{}, map[string]Named{}
	r.together(ctx, r.definitions, r.apiServices, r.validating, r.mutating, r.namespaces)
	r.noDefinitions = w.Unread[PartDefinitions]
	r.together(ctx, r.backends, r.triggers, r.held, r.schemas)
	r.named(ctx)
	if r.trouble() {
		r.together(ctx, r.workloads, r.data)
		r.together(ctx, r.pods, r.lock)
	}
	return r.gaps
}

func (r *apiReader) together(ctx context.Context, parts ...func(context.Context)) {
	var g errgroup.Group
	g.SetLimit(atOnce)
	for _, p := range parts {
		g.Go(func() error {
			p(ctx)
			return nil
		})
	}
	_ = g.Wait()
}

func (r *apiReader) gap(what string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gaps = append(r.gaps, Gap{What: what, Why: reason(err)})
}

func (r *apiReader) unread(p Part, err error) {
	if err == nil {
		return
	}
	r.gap(string(p)+" in all namespaces", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.world.Unread[p] = reason(err)
}

// trouble is true when anything was seen that a Deployment might mend.
func (r *apiReader) trouble() bool {
	w := r.world
	if len(w.Held) > 0 || len(w.Terminating) > 0 {
		return true
	}
	for _, b := range w.Backends {
		if b.Unknown == "" && !b.External && b.Ready == 0 {
			return true
		}
	}
	for _, t := range w.Triggers {
		if !t.Deleted.IsZero() || t.Phase != "" && t.Phase != phaseDeployed {
			return true
		}
	}
	return w.cdiIsMissing()
}

type serviceReference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (s *serviceReference) named() types.NamespacedName {
	if s == nil {
		return types.NamespacedName{}
	}
	return types.NamespacedName(*s)
}

func (r *apiReader) definitions(ctx context.Context) {
	type item struct {
		Metadata fields `json:"metadata"`
		Spec     struct {
			Group string `json:"group"`
			Names struct {
				Kind   string `json:"kind"`
				Plural string `json:"plural"`
			} `json:"names"`
			Scope      string    `json:"scope"`
			Versions   []Version `json:"versions"`
			Conversion *struct {
				Strategy string `json:"strategy"`
				Webhook  *struct {
					ClientConfig struct {
						Service  *serviceReference `json:"service"`
						CABundle string            `json:"caBundle"`
					} `json:"clientConfig"`
				} `json:"webhook"`
			} `json:"conversion"`
		} `json:"spec"`
		Status struct {
			StoredVersions []string           `json:"storedVersions"`
			Conditions     []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	var err error
	r.world.Definitions, err = all(ctx, r.lister, query{
		path: []string{"/apis/apiextensions.k8s.io/v1/customresourcedefinitions"}, limit: definitionsPage,
	}, func(i *item) (*Definition, bool) {
		d := &Definition{
			Observed: i.Metadata.observed("apiextensions.k8s.io/v1", "CustomResourceDefinition"), Owner: i.Metadata.owner(),
			Defines: schema.GroupKind{Group: i.Spec.Group, Kind: i.Spec.Names.Kind}, Plural: i.Spec.Names.Plural,
			Namespaced: i.Spec.Scope == "Namespaced", Versions: i.Spec.Versions,
			StoredVersions: i.Status.StoredVersions, Conditions: i.Status.Conditions,
		}
		if c := i.Spec.Conversion; c != nil && c.Strategy == "Webhook" && c.Webhook != nil {
			d.Conversion = &Conversion{c.Webhook.ClientConfig.Service.named(), c.Webhook.ClientConfig.CABundle != ""}
		}
		return d, true
	})
	r.unread(PartDefinitions, err)
}

func (r *apiReader) apiServices(ctx context.Context) {
	type item struct {
		Metadata fields `json:"metadata"`
		Spec     struct {
			Group   string            `json:"group"`
			Version string            `json:"version"`
			Service *serviceReference `json:"service"`
		} `json:"spec"`
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	var err error
	r.world.APIServices, err = all(ctx, r.lister, query{path: []string{"/apis/apiregistration.k8s.io/v1/apiservices"}},
		func(i *item) (*APIService, bool) {
			a := &APIService{
				Observed: i.Metadata.observed("apiregistration.k8s.io/v1", "APIService"), Owner: i.Metadata.owner(),
				GroupVersion: schema.GroupVersion{Group: i.Spec.Group, Version: i.Spec.Version}, Service: i.Spec.Service.named(),
				Available: conditionNamed(i.Status.Conditions, "Available"),
			}
			return a, i.Spec.Service != nil
		})
	r.unread(PartAPIServices, err)
}

func conditionNamed(conditions []metav1.Condition, kind string) *metav1.Condition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}

func (r *apiReader) validating(ctx context.Context) {
	found := r.webhooks(ctx, PartValidating, "validatingwebhookconfigurations", "ValidatingWebhookConfiguration")
	r.addWebhooks(found)
}

func (r *apiReader) mutating(ctx context.Context) {
	found := r.webhooks(ctx, PartMutating, "mutatingwebhookconfigurations", "MutatingWebhookConfiguration")
	r.addWebhooks(found)
}

func (r *apiReader) addWebhooks(found []*WebhookConfiguration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.world.Webhooks = append(r.world.Webhooks, found...)
}

// selects is true for a selector, or a list of conditions, that is not empty.
type selects bool

// UnmarshalJSON implements json.Unmarshaler.
func (s *selects) UnmarshalJSON(raw []byte) error {
	*s = string(raw) != "{}" && string(raw) != "[]" && string(raw) != "null"
	return nil
}

func (r *apiReader) webhooks(ctx context.Context, part Part, plural, kind string) []*WebhookConfiguration {
	type item struct {
		Metadata fields `json:"metadata"`
		Webhooks []struct {
			Name         string `json:"name"`
			ClientConfig struct {
				Service *serviceReference `json:"service"`
			} `json:"clientConfig"`
			FailurePolicy *string `json:"failurePolicy"`
			Rules         []struct {
				APIGroups  []string `json:"apiGroups"`
				Resources  []string `json:"resources"`
				Operations []string `json:"operations"`
			} `json:"rules"`
			NamespaceSelector selects `json:"namespaceSelector"`
			ObjectSelector    selects `json:"objectSelector"`
			MatchConditions   selects `json:"matchConditions"`
		} `json:"webhooks"`
	}
	found, err := all(ctx, r.lister, query{path: []string{"/apis/admissionregistration.k8s.io/v1", plural}},
		func(i *item) (*WebhookConfiguration, bool) {
			c := &WebhookConfiguration{Observed: i.Metadata.observed("admissionregistration.k8s.io/v1", kind), Owner: i.Metadata.owner()}
			for _, h := range i.Webhooks {
				hook := Webhook{
					Name: h.Name, FailClosed: h.FailurePolicy == nil || *h.FailurePolicy != "Ignore",
					Service: h.ClientConfig.Service.named(), Narrow: bool(h.NamespaceSelector || h.ObjectSelector || h.MatchConditions),
				}
				for _, rule := range h.Rules {
					hook.Rules = append(hook.Rules, Rule{rule.APIGroups, rule.Resources, rule.Operations})
				}
				c.Webhooks = append(c.Webhooks, hook)
			}
			return c, true
		})
	r.unread(part, err)
	return found
}

func (r *apiReader) namespaces(ctx context.Context) {
	type item struct {
		Metadata fields `json:"metadata"`
		Spec     struct {
			Finalizers []string `json:"finalizers"`
		} `json:"spec"`
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	var err error
	r.world.Terminating, err = all(ctx, r.lister, query{path: []string{"/api/v1/namespaces"}},
		func(i *item) (*TerminatingNamespace, bool) {
			return &TerminatingNamespace{
				Observed: i.Metadata.observed("v1", "Namespace"), Spec: i.Spec.Finalizers, Conditions: i.Status.Conditions,
			}, !i.Metadata.DeletionTimestamp.IsZero()
		})
	r.unread(PartNamespaces, err)
}

// object reads one object; ok is false when there is none.
func object[T any](ctx context.Context, l *lister, path ...string) (_ *T, ok bool, _ error) {
	res := l.client.Get().AbsPath(path...).Do(ctx)
	if err := res.Error(); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, false, nil
		}
		return nil, false, err
	}
	raw, err := res.Raw()
	if err != nil {
		return nil, false, err
	}
	into := new(T)
	return into, true, json.Unmarshal(raw, into)
}
