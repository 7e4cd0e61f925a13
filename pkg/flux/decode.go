// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package flux

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// timeoutFloor and timeoutMargin are how kustomize-controller derives a
	// timeout from an interval (api/v1 Kustomization.GetTimeout, v1.9.6).
	timeoutFloor  = 30 * time.Second
	timeoutMargin = 30 * time.Second

	// kustomizeController is the field manager of what git says.
	kustomizeController = "kustomize-controller"

	// helmTimeout is HelmRelease's default (api/v2 HelmRelease.GetTimeout).
	helmTimeout = 5 * time.Minute
)

// item is what every Flux object has in common on the wire. Only what the
// project reads is named here: a list of two thousand Kustomizations is then
// decoded in a fraction of the time and memory that the full types take.
type item struct {
	Metadata struct {
		Namespace         string            `json:"namespace"`
		Name              string            `json:"name"`
		UID               types.UID         `json:"uid"`
		ResourceVersion   string            `json:"resourceVersion"`
		Generation        int64             `json:"generation"`
		CreationTimestamp time.Time         `json:"creationTimestamp"`
		DeletionTimestamp time.Time         `json:"deletionTimestamp"`
		Finalizers        []string          `json:"finalizers"`
		Labels            map[string]string `json:"labels"`
		Annotations       annotations       `json:"annotations"`
		ManagedFields     []managed         `json:"managedFields"`
	} `json:"metadata"`
	Spec   spec   `json:"spec"`
	Status status `json:"status"`
}

type annotations struct {
	RequestedAt string `json:"reconcile.fluxcd.io/requestedAt"`
	Unwedge     string `json:"kubestandup.dev/unwedge"`
	Hold        string `json:"kubestandup.dev/hold"`
}

type managed struct {
	Manager  string      `json:"manager"`
	Time     time.Time   `json:"time"`
	FieldsV1 ownsSuspend `json:"fieldsV1"`
}

// ownsSuspend is true when a manager's field set holds spec.suspend. The set
// itself is looked at in place and never copied: it is most of an object.
type ownsSuspend bool

func (o *ownsSuspend) UnmarshalJSON(set []byte) error {
	*o = ownsSuspend(bytes.Contains(set, []byte(`"f:suspend"`)))
	return nil
}

// duration reads Flux's durations, which are Go's. One that does not parse is
// zero: the API server validates them, and a wrong one must not hide a tier.
type duration time.Duration

func (d *duration) UnmarshalJSON(raw []byte) error {
	v, err := time.ParseDuration(strings.Trim(string(raw), `"`))
	if err == nil {
		*d = duration(v)
	}
	return nil
}

type crossRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	ReadyExpr  string `json:"readyExpr"`
}

type spec struct {
	Suspend          bool              `json:"suspend"`
	Interval         duration          `json:"interval"`
	RetryInterval    *duration         `json:"retryInterval"`
	Timeout          *duration         `json:"timeout"`
	DependsOn        []crossRef        `json:"dependsOn"`
	SourceRef        crossRef          `json:"sourceRef"`
	ChartRef         *crossRef         `json:"chartRef"`
	Path             string            `json:"path"`
	KubeConfig       json.RawMessage   `json:"kubeConfig"`
	Wait             bool              `json:"wait"`
	Prune            bool              `json:"prune"`
	HealthChecks     []crossRef        `json:"healthChecks"`
	HealthCheckExprs []json.RawMessage `json:"healthCheckExprs"`
	URL              string            `json:"url"`
	Endpoint         string            `json:"endpoint"`
	Install          *action           `json:"install"`
	Upgrade          *action           `json:"upgrade"`

	ReleaseName        string    `json:"releaseName"`
	TargetNamespace    string    `json:"targetNamespace"`
	StorageNamespace   string    `json:"storageNamespace"`
	ServiceAccountName string    `json:"serviceAccountName"`
	Chart              *template `json:"chart"`
	Uninstall          *struct {
		DisableHooks bool `json:"disableHooks"`
		KeepHistory  bool `json:"keepHistory"`
	} `json:"uninstall"`
}

// template is spec.chart of a HelmRelease. That of a HelmChart is a string, and
// nothing that is asked for.
type template struct {
	Spec struct {
		Chart string `json:"chart"`
	} `json:"spec"`
}

func (t *template) UnmarshalJSON(raw []byte) error {
	if !bytes.HasPrefix(raw, []byte("{")) {
		return nil
	}
	type plain template
	return json.Unmarshal(raw, (*plain)(t))
}

// action is the part of a HelmRelease's install or upgrade that decides when
// a failure is tried again, and what is done about it.
type action struct {
	Strategy *struct {
		Name          string    `json:"name"`
		RetryInterval *duration `json:"retryInterval"`
	} `json:"strategy"`
	Remediation *struct {
		Retries  int    `json:"retries"`
		Strategy string `json:"strategy"`

		LastFailure bool `json:"remediateLastFailure"`
	} `json:"remediation"`
	Replace         bool   `json:"replace"`
	ChartNameChange string `json:"chartNameChangeStrategy"`
}

type status struct {
	ObservedGeneration     int64              `json:"observedGeneration"`
	Conditions             []metav1.Condition `json:"conditions"`
	LastAppliedRevision    string             `json:"lastAppliedRevision"`
	LastAttemptedRevision  string             `json:"lastAttemptedRevision"`
	LastHandledReconcileAt string             `json:"lastHandledReconcileAt"`
	HelmChart              string             `json:"helmChart"`
	History                []attempt          `json:"history"`

	StorageNamespace           string `json:"storageNamespace"`
	LastAttemptedReleaseAction string `json:"lastAttemptedReleaseAction"`
	InstallFailures            int64  `json:"installFailures"`
	UpgradeFailures            int64  `json:"upgradeFailures"`
	LastHandledResetAt         string `json:"lastHandledResetAt"`
	LastHandledForceAt         string `json:"lastHandledForceAt"`

	Artifact *struct {
		URL            string    `json:"url"`
		Digest         string    `json:"digest"`
		Revision       string    `json:"revision"`
		LastUpdateTime time.Time `json:"lastUpdateTime"`
	} `json:"artifact"`
}

// attempt is an entry of status.history, the newest first. A Kustomization's
// history and a HelmRelease's have no field in common.
type attempt struct {
	LastReconciledStatus string `json:"lastReconciledStatus"`
	HelmSnapshot
}

// add turns one decoded object into a Tier or a Source of the snapshot.
func (s *Snapshot) add(r Resource, it *item) {
	switch r.Kind {
	case KustomizationKind:
		s.Tiers = append(s.Tiers, it.kustomization(r))
	case HelmReleaseKind:
		s.Tiers = append(s.Tiers, it.helmRelease(r))
	default:
		s.Sources = append(s.Sources, it.source(r))
	}
}

func (it *item) ref(r Resource) Ref {
	return Ref{
		APIVersion: r.APIVersion(), Kind: r.Kind,
		Namespace: it.Metadata.Namespace, Name: it.Metadata.Name,
	}
}

func (it *item) tier(r Resource) Tier {
	m, sp, st := &it.Metadata, &it.Spec, &it.Status
	t := Tier{
		Ref:                    it.ref(r),
		UID:                    m.UID,
		ResourceVersion:        m.ResourceVersion,
		Generation:             m.Generation,
		Created:                m.CreationTimestamp,
		Deleted:                m.DeletionTimestamp,
		Finalizers:             m.Finalizers,
		Suspended:              sp.Suspend,
		Remote:                 len(sp.KubeConfig) > 0,
		Interval:               time.Duration(sp.Interval),
		HealthCheckExprs:       len(sp.HealthCheckExprs) > 0,
		ObservedGeneration:     st.ObservedGeneration,
		Conditions:             st.Conditions,
		LastAppliedRevision:    st.LastAppliedRevision,
		LastAttemptedRevision:  st.LastAttemptedRevision,
		RequestedAt:            m.Annotations.RequestedAt,
		LastHandledReconcileAt: st.LastHandledReconcileAt,
		Unwedge:                m.Annotations.Unwedge,
		Hold:                   m.Annotations.Hold,
	}
	if sp.Suspend {
		for _, f := range m.ManagedFields {
			if !bool(f.FieldsV1) || t.SuspendedBy == kustomizeController {
				continue
			}
			// What git says outlasts what anybody else has said since: they can
			// only own the same value.
			if f.Manager == kustomizeController || !f.Time.Before(t.SuspendedSince) {
				t.SuspendedBy, t.SuspendedSince = f.Manager, f.Time
			}
		}
	}
	if owner := m.Labels[KustomizeGroup+"/name"]; owner != "" {
		t.Owner = Ref{Kind: KustomizationKind, Namespace: m.Labels[KustomizeGroup+"/namespace"], Name: owner}
	}
	if len(st.History) > 0 {
		t.LastOutcome = st.History[0].LastReconciledStatus
	}
	for _, d := range sp.DependsOn {
		t.DependsOn = append(t.DependsOn, Dependency{
			Ref:       d.in(m.Namespace, r.APIVersion(), r.Kind),
			ReadyExpr: d.ReadyExpr,
		})
	}
	return t
}

func (it *item) kustomization(r Resource) Tier {
	t := it.tier(r)
	sp := &it.Spec
	t.Source = sp.SourceRef.in(it.Metadata.Namespace, "", "")
	t.Path = sp.Path
	t.Wait, t.Prune = sp.Wait, sp.Prune
	for _, h := range sp.HealthChecks {
		t.HealthChecks = append(t.HealthChecks, h.in(it.Metadata.Namespace, h.APIVersion, h.Kind))
	}
	t.RetryInterval = t.Interval
	if sp.RetryInterval != nil {
		t.RetryInterval = time.Duration(*sp.RetryInterval)
	}
	t.Timeout = t.Interval - timeoutMargin
	if sp.Timeout != nil {
		t.Timeout = time.Duration(*sp.Timeout)
	}
	t.Timeout = max(t.Timeout, timeoutFloor)
	return t
}

func (it *item) helmRelease(r Resource) Tier {
	t := it.tier(r)
	sp := &it.Spec
	switch {
	case sp.ChartRef != nil:
		t.Source = sp.ChartRef.in(it.Metadata.Namespace, "", "")
	case it.Status.HelmChart != "":
		ns, name, _ := strings.Cut(it.Status.HelmChart, "/")
		t.Source = Ref{Kind: "HelmChart", Namespace: ns, Name: name}
	}
	t.Helm = it.helm()
	t.Wait = true
	t.Timeout = helmTimeout
	if sp.Timeout != nil {
		t.Timeout = time.Duration(*sp.Timeout)
	}
	for _, a := range []*action{sp.Install, sp.Upgrade} {
		if a != nil && a.Strategy != nil && a.Strategy.RetryInterval != nil {
			t.RetryInterval = time.Duration(*a.Strategy.RetryInterval)
		}
	}
	return t
}

func (it *item) source(r Resource) Source {
	st := &it.Status
	s := Source{
		Ref:                    it.ref(r),
		Generation:             it.Metadata.Generation,
		ObservedGeneration:     st.ObservedGeneration,
		Suspended:              it.Spec.Suspend,
		URL:                    it.Spec.URL,
		Interval:               time.Duration(it.Spec.Interval),
		Conditions:             st.Conditions,
		RequestedAt:            it.Metadata.Annotations.RequestedAt,
		LastHandledReconcileAt: st.LastHandledReconcileAt,
	}
	if s.URL == "" {
		s.URL = it.Spec.Endpoint
	}
	if a := st.Artifact; a != nil {
		s.Artifact = &Artifact{URL: a.URL, Digest: a.Digest, Revision: a.Revision, LastUpdateTime: a.LastUpdateTime}
	}
	return s
}

// in resolves a reference as Flux does: its namespace falls back to the one of
// the object that holds it.
func (c crossRef) in(namespace, apiVersion, kind string) Ref {
	r := Ref{APIVersion: apiVersion, Kind: kind, Namespace: c.Namespace, Name: c.Name}
	if r.Namespace == "" {
		r.Namespace = namespace
	}
	if r.Kind == "" {
		r.Kind = c.Kind
	}
	return r
}

// sort puts tiers and sources in one order, whatever order they came in.
func (s *Snapshot) sort() {
	slices.SortFunc(s.Tiers, func(a, b Tier) int { return a.Ref.Compare(b.Ref) })
	slices.SortFunc(s.Sources, func(a, b Source) int { return a.Ref.Compare(b.Ref) })
}
