// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package coldstart

import (
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
)

// id names an object by group, kind, namespace and name.
type id struct{ group, kind, namespace, name string }

func idOf(o *unstructured.Unstructured) id {
	gk := o.GroupVersionKind().GroupKind()
	return id{gk.Group, gk.Kind, o.GetNamespace(), o.GetName()}
}

func idOfRef(r flux.Ref) id {
	return id{schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).Group, r.Kind, r.Namespace, r.Name}
}

// idOfSource is that of a source of Flux, which references name without a group.
func idOfSource(r flux.Ref) id { return id{flux.SourceGroup, r.Kind, r.Namespace, r.Name} }

// tier is a Kustomization in the model.
type tier struct {
	*build.Followed
	index int
	spec  kustomizev1.KustomizationSpec
	// known is false where nothing is known of what it applies.
	known bool
	// broken is true where it does not build, or may not be applied.
	broken bool
	// remote is true where it applies to another cluster.
	remote bool

	exists, attempt, built fact
	// stages are indexed by stage; 0 is built.
	stages [build.StageRest + 1]fact
	ready  fact
	needs  []*need
	needed map[needed]*need
	// items are what it applies itself.
	items []*item
}

// release is a HelmRelease in the model.
type release struct {
	ref   flux.Ref
	spec  helmv2.HelmReleaseSpec
	chart Chart
	// tier applies the HelmRelease, the first that does.
	tier *tier
	// by says who installs the chart before Flux does; empty for nobody.
	by string
	// items are the objects of its chart.
	items []*item

	// start is the first attempt, mapped when every kind of the templates is
	// served, created when their objects are on the cluster.
	start, crds, mapped, created, installed, healthy fact
}

// item is an object that something creates.
type item struct {
	*unstructured.Unstructured
	tier *tier
	// release is set for an object of a chart.
	release *release
	stage   int
	// created is true once it is on the cluster.
	created fact
}

func (i *item) ref() flux.Ref { return build.Object{Unstructured: i.Unstructured}.Ref() }

// model is a cluster turned into facts.
type model struct {
	facts
	book     *knowledge.Base
	charts   map[flux.Ref]Chart
	tiers    []*tier
	byKey    map[string]*tier
	releases []*release
	byObject map[id]*release
	items    []*item
	objects  map[id][]*item
	// exists are the facts that an object is on the cluster.
	exists map[id]fact
	// kinds are what is needed, or registered, of a kind.
	kinds map[schema.GroupVersionKind]*kind
	// byKind are the sources of each kind, whatever its version.
	sources map[schema.GroupKind][]*source
	// definitions are the CRDs by name.
	definitions map[string]schema.GroupKind
	bootstrap   []Installed
	// there are the objects that are there before Flux is.
	there      map[id]bool
	scopes     map[schema.GroupKind]bool
	operators  map[string][]*operator
	reconciles map[reconcileKey]fact
	// starts are when workloads begin their work, of those that others wait for.
	starts map[*item]fact
	hooks  []*webhook
	// spaces are the facts that namespaces exist.
	spaces map[string]fact
	// waits are what the Ready of each tier waits for.
	waits map[*tier][]waited
	// claims are what it waits for that only a pod brings about.
	claims map[*tier][]claim
	// groups are the sources of every kind of an API group.
	groups  map[string][]*source
	unknown []candidate
	// known are the doubts of former models of the same cluster, doubts what
	// they are in this one.
	known  doubts
	doubts map[doubtful][]candidate
}

// kind is a kind that something needs.
type kind struct {
	gvk    schema.GroupVersionKind
	served fact
	// sources serve it, others register it in another version.
	sources []*source
	others  []string
	// before says who serves it from the beginning.
	before string
}

// source is one way in which a kind, or an object, comes to be.
type source struct {
	Provider
	tier *tier
	// done is when it has, applied when its object is on the cluster.
	done, applied fact
	versions      []string
	// by says who did it before Flux was there; empty for nobody.
	by string
}

// candidate may register any kind.
type candidate struct {
	ref  flux.Ref
	done fact
	tier *tier
}

func decode(o *unstructured.Unstructured, into any) {
	// What does not decode stays empty: the API server refuses it, which is not
	// a matter of cold or warm.
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into)
}

func newModel(c *Cluster, known doubts) *model {
	m := &model{
		known: known, doubts: map[doubtful][]candidate{},
		book: c.Book, charts: c.Charts, bootstrap: c.Bootstrap,
		byKey: map[string]*tier{}, byObject: map[id]*release{}, objects: map[id][]*item{}, exists: map[id]fact{},
		kinds: map[schema.GroupVersionKind]*kind{}, sources: map[schema.GroupKind][]*source{},
		definitions: map[string]schema.GroupKind{}, scopes: map[schema.GroupKind]bool{}, operators: map[string][]*operator{},
		reconciles: map[reconcileKey]fact{}, groups: map[string][]*source{},
		starts: map[*item]fact{}, spaces: map[string]fact{}, waits: map[*tier][]waited{}, claims: map[*tier][]claim{}, there: map[id]bool{},
	}
	for _, ref := range c.Standing {
		ref.APIVersion = "v1"
		m.there[idOfRef(ref)] = true
	}
	for i := range c.Tiers {
		m.enter(i, &c.Tiers[i])
	}
	for _, t := range m.tiers {
		m.enterObjects(t)
	}
	m.findOperators()
	for _, i := range m.items {
		m.register(i)
	}
	m.registerStarts()
	m.registerCharts()
	m.findWebhooks()
	for _, t := range m.tiers {
		m.wire(t)
	}
	for _, r := range m.releases {
		m.wireRelease(r)
	}
	m.solve()
	if m.wireWebhooks() {
		m.facts = facts{nodes: m.nodes}
		m.solve()
	}
	return m
}

// enter makes the facts of one tier.
func (m *model) enter(index int, f *build.Followed) {
	t := &tier{Followed: f, index: index}
	if f.Kustomization != nil {
		var k kustomizev1.Kustomization
		decode(f.Kustomization, &k)
		t.spec = k.Spec
	}
	t.remote = f.Remote || t.spec.KubeConfig != nil
	t.known = f.Result != nil && !t.remote
	t.broken = f.Err != nil && !isRemoteBase(f.Err) || f.Result != nil && f.Result.Rejected != nil
	t.exists, t.attempt = m.add(), m.add()
	t.built = m.add(t.attempt)
	t.stages[0] = t.built
	for s := build.StageDefinitions; s <= build.StageRest; s++ {
		t.stages[s] = m.add(t.stages[s-1])
	}
	t.ready = m.add(t.stages[build.StageRest])
	m.tiers = append(m.tiers, t)
	m.byKey[t.Tier.Key()] = t
}

// enterObjects enters what the tier applies, and what its releases install.
func (m *model) enterObjects(t *tier) {
	if !t.remote && !t.Whole() {
		m.unknown = append(m.unknown, candidate{t.Tier, m.after(t), t})
	}
	if !t.known {
		return
	}
	for _, o := range t.Result.Objects {
		if o.Ignored {
			continue
		}
		i := &item{Unstructured: o.Unstructured, tier: t, stage: o.Stage, created: t.stages[o.Stage]}
		t.items = append(t.items, i)
		m.enterItem(i)
	}
}

// after is when an unknown tier may have registered a kind. One that does not
// build is given the benefit of the doubt: its error is reported by itself.
func (m *model) after(t *tier) fact {
	if t.broken {
		return m.add()
	}
	return t.built
}

func (m *model) enterItem(i *item) {
	key := idOf(i.Unstructured)
	m.items = append(m.items, i)
	m.objects[key] = append(m.objects[key], i)
	fact, known := m.exists[key]
	if !known {
		fact = m.add()
		m.exists[key] = fact
	}
	m.way(fact, i.created)
	if key.group == flux.HelmGroup && key.kind == flux.HelmReleaseKind && m.byObject[key] == nil {
		m.enterRelease(key, i)
	}
}

func (m *model) enterRelease(key id, i *item) {
	var hr helmv2.HelmRelease
	decode(i.Unstructured, &hr)
	r := &release{ref: i.ref(), spec: hr.Spec, tier: i.tier}
	r.start = m.add(m.exists[key])
	r.crds = m.add(r.start)
	r.mapped = m.add(r.crds)
	r.created = m.add(r.mapped)
	r.installed = m.add(r.created)
	r.healthy = m.add(r.installed)
	m.releases = append(m.releases, r)
	m.byObject[key] = r
	chart, known := m.charts[Key(r.ref)]
	if !known {
		chart = Chart{Basis: Opaque, Why: "nothing is known of its chart"}
	}
	r.chart = chart
	if r.spec.KubeConfig != nil {
		return // it installs on another cluster
	}
	r.by = m.installedBy(r)
	if chart.Basis == Opaque {
		m.unknown = append(m.unknown, candidate{r.ref, r.done(m, r.installed), r.tier})
	}
	if !r.skipsDefinitions() {
		for _, o := range chart.Definitions {
			m.enterItem(&item{Unstructured: o, tier: r.tier, release: r, stage: i.stage, created: r.done(m, r.crds)})
		}
	}
	for _, group := range []struct {
		objects []*unstructured.Unstructured
		created fact
	}{{chart.PreInstall, r.mapped}, {chart.Objects, r.created}, {chart.PostInstall, r.installed}} {
		for _, o := range group.objects {
			one := &item{Unstructured: o, tier: r.tier, release: r, stage: i.stage, created: r.done(m, group.created)}
			r.items = append(r.items, one)
			m.enterItem(one)
		}
	}
}

// skipsDefinitions is true where the release leaves the crds/ folders of its
// chart alone. The deprecated install.skipCRDs is read by nothing
// (helm-controller internal/action/install.go, v1.6.4).
func (r *release) skipsDefinitions() bool {
	return r.spec.Install != nil && r.spec.Install.CRDs == helmv2.Skip
}
