// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubestandup/kubestandup/pkg/standup/config"
)

// Write is the standup.yaml that fits what was seen, as text; tree is nil where
// there is no working tree. It is always one that the decoder takes, also when
// what is commented out in it is switched on.
func Write(live *Live, tree *Tree) string {
	w := &writer{page: &page{}, live: live, tree: tree}
	for _, section := range []func(){
		w.head, w.cluster, w.flux, w.variables, w.nodes, w.crds, w.resume, w.verify,
	} {
		section()
	}
	return w.String()
}

type writer struct {
	*page
	live *Live
	tree *Tree
}

func (w *writer) head() {
	w.say(0, "The cluster that this folder is for. Every step of kubectl standup compares it with the live server, and does nothing on any other.")
	w.say(0, "")
	w.say(0, "This is a draft of kubectl standup init. Read it before you keep it: each guess says why it was made. What is commented out without a space behind the # is for you to decide.")
	if root, _ := guessRoot(w.live); root != nil && root.Path != "." {
		w.say(0, fmt.Sprintf("Its place is %s, beside the entry point of %s.", path.Join(root.Path, config.FileName), tierName(root.Ref)))
	}
	switch {
	case w.tree == nil:
		w.say(0, "No working tree was read, so nothing could be compared between environments: run it in a checkout of the GitOps repository, or with --path.")
	case w.tree.Stopped:
		w.say(0, fmt.Sprintf("Of the working tree %s the first %d manifests were read, and no more.", w.tree.Dir, maxFiles))
	}
	if len(w.live.Unread) == 0 {
		return
	}
	w.say(0, "")
	w.say(0, "The server did not let these be read, so nothing below rests on them:")
	for _, u := range w.live.Unread {
		w.say(0, "- "+u.What+": "+u.Why)
	}
}

func (w *writer) cluster() {
	i := w.live.Identity
	w.gap()
	w.tell(0, "CA of the server when this was written: "+i.CA())
	if i.Unprovable != "" {
		w.say(0, "This connection can prove nothing: "+i.Unprovable)
	}
	w.tell(0, fmt.Sprintf("As flags: --expect-server %s --expect-uid %s", i.URL, i.UID))
	w.set(0, true, "cluster:")
	w.set(2, true, "server: "+scalar(i.URL))
	w.set(2, true, "uid: "+scalar(i.UID))
	switch domain := guessDomain(w.live.Hosts); {
	case domain != "":
		w.say(2, fmt.Sprintf("What the host names of Ingresses, Gateways and Certificates have in common (%d were seen). preflight reports names outside of it: switch it on if it is this cluster's alone.", len(w.live.Hosts)))
		w.set(2, false, "domain: "+scalar(domain))
	case len(w.live.Hosts) > 0:
		w.say(2, fmt.Sprintf("The DNS domain under which the cluster publishes. The host names of Ingresses, Gateways and Certificates have none in common: %s.", list(w.live.Hosts)))
		w.set(2, false, "domain: prod.example.org")
	default:
		w.say(2, "The DNS domain under which the cluster publishes. Nothing that publishes a name was seen.")
		w.set(2, false, "domain: prod.example.org")
	}
}

func (w *writer) flux() {
	root, others := guessRoot(w.live)
	namespace := w.live.Controllers
	if namespace == "" && root != nil {
		namespace = root.Ref.Namespace
	}
	w.gap()
	if w.live.NoFlux {
		w.say(0, "This cluster serves no kind of Flux: it is not installed there yet.")
	}
	w.set(0, namespace != "" || root != nil, "flux:")
	switch {
	case w.live.Controllers != "":
		w.say(2, "Where the Deployments of Flux's controllers are.")
		w.set(2, true, "namespace: "+scalar(namespace))
	case namespace != "":
		w.say(2, "The namespace of the root: no Deployment of Flux was seen.")
		w.set(2, true, "namespace: "+scalar(namespace))
	default:
		w.set(2, false, "namespace: flux-system")
	}
	if root == nil {
		w.set(2, false, "root: flux-system")
		return
	}
	why := "The Kustomization that no other one contains."
	if len(others) > 0 {
		why = fmt.Sprintf("Of the %d Kustomizations that no other one contains, the one that most hang from. The rest: %s.", len(others)+1, list(others))
	}
	w.say(2, why)
	w.set(2, true, "root: "+scalar(root.Ref.Name))
}

func (w *writer) variables() {
	vars, plain := guessVariables(w.live, w.tree)
	on := slices.ContainsFunc(vars, (*variable).on)
	w.gap()
	w.say(0, "Variables that tell this cluster from another one, and placeholders. preflight resolves them as Flux would.")
	w.set(0, on, "variables:")
	for _, v := range vars {
		w.variable(v)
	}
	if len(vars) == 0 {
		w.set(0, false, "- name: CLUSTER_NAME")
		w.set(2, false, "required: true")
		w.set(2, false, `forbid: ["dev-*"]`)
	}
	if len(plain) > 0 {
		w.say(0, "Nothing was guessed about "+list(plain)+".")
	}
	w.unseen()
}

// unseen names the Sets about which nothing could be said.
func (w *writer) unseen() {
	users := map[Set][]string{}
	for _, t := range w.live.Tiers {
		for _, s := range t.From {
			users[s] = append(users[s], tierName(t.Ref))
		}
	}
	sets := slices.SortedFunc(maps.Keys(users), func(a, b Set) int { return a.ref().Compare(b.ref()) })
	for _, s := range sets {
		switch known := w.live.Known[s]; {
		case known.Missing:
			w.say(0, fmt.Sprintf("%s does not exist, and %s is substituted from it.", s, list(users[s])))
		case known.Hidden:
			w.say(0, fmt.Sprintf("Which names %s holds could not be read; %s is substituted from it.", s, list(users[s])))
		}
	}
}

// on is true where something is asserted, and not only suggested.
func (v *variable) on() bool {
	return v.required && v.not == "" || len(v.forbid) > 0 || v.placeholder != ""
}

func (w *writer) variable(v *variable) {
	on := v.on()
	for _, why := range v.why {
		w.say(0, why)
	}
	w.set(0, on, "- name: "+scalar(v.name))
	if v.required {
		if v.not != "" {
			w.say(2, "Not required, since every substituted tier would have to know it, and these do not or may not: "+v.not+".")
		}
		w.set(2, on && v.not == "", "required: true")
	}
	if len(v.forbid) > 0 {
		var values []string
		for _, f := range v.forbid {
			if !slices.Contains(values, f.value) {
				values = append(values, f.value)
			}
		}
		w.set(2, on, "forbid: "+flow(values))
	}
	if v.placeholder == "" {
		return
	}
	w.set(2, on, "placeholder: "+strconv.Quote(v.placeholder))
	if len(v.usedBy) > 0 {
		w.say(2, "These tiers use it. Which of them cannot come up without it (blocks), and which come up and fail at what they are for (degrades)?")
	} else {
		w.say(2, "Which tiers cannot come up without it (blocks), and which come up and fail at what they are for (degrades)?")
	}
	w.set(2, false, "blocks: "+flow(v.usedBy))
	w.set(2, false, "degrades: []")
}

func (w *writer) nodes() {
	f := guessNodes(w.live.Nodes)
	w.gap()
	w.say(0, "The least that the cluster must have before it is worth while to go on.")
	if f.count == 0 {
		w.say(0, "No node was seen.")
		w.set(0, false, "nodes:")
		for _, text := range []string{"count: 3", `minKernel: "5.15"`, `minKubelet: "1.30"`, "minMemory: 16Gi"} {
			w.set(2, false, text)
		}
		return
	}
	w.set(0, true, "nodes:")
	now := fmt.Sprintf("As it is now: %d of %d Ready", f.ready, f.count)
	if f.said != "" {
		now += "; " + f.said
	}
	w.say(2, now+".")
	w.set(2, true, fmt.Sprintf("count: %d", f.count))
	for _, field := range []struct{ name, value string }{{"minKernel", f.kernel}, {"minKubelet", f.kubelet}, {"minMemory", f.memory}} {
		if field.value != "" {
			w.set(2, true, field.name+": "+scalar(field.value))
		}
	}
}

func (w *writer) crds() {
	charts, unread := guessCharts(w.live, w.tree)
	on := slices.ContainsFunc(charts, func(c chart) bool { return c.file == "" })
	w.gap()
	w.say(0, "CRDs that must be there before Flux gets to the tiers that use them.")
	w.set(0, on, "crds:")
	w.say(2, "Names of CRDs to insist on. Those that tiers use are found without it.")
	w.set(2, false, "expect: []")
	w.say(2, "Charts that run without their CRDs, so that nothing else installs these: the values switch them on.")
	w.set(2, on, "fromCharts:")
	for _, c := range charts {
		w.chart(c)
	}
	if len(charts) == 0 {
		w.say(2, "No HelmRelease was seen to switch them off.")
		w.set(2, false, "- helmRelease: kyverno/kyverno")
		w.set(4, false, "values:")
		w.set(6, false, "crds:")
		w.set(8, false, "install: true")
	}
	if len(unread) > 0 {
		w.say(2, "Also these take values from ConfigMaps or Secrets, which were not read: "+list(unread)+".")
	}
}

func (w *writer) chart(c chart) {
	on := c.file == ""
	why := list(c.why) + "."
	if !on {
		why += " It stands in " + c.file + " and is not in the cluster: switch it on if it belongs to this one."
	}
	w.say(2, c.release+": "+why)
	w.set(2, on, "- helmRelease: "+scalar(c.release))
	if len(c.values) == 0 {
		return
	}
	w.set(4, on, "values:")
	for _, line := range lines(c.values) {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		w.set(6+indent, on, line[indent:])
	}
}

func (w *writer) resume() {
	w.gap()
	w.say(0, "resume un-suspends every tier but these, those annotated kubestandup.dev/hold, and those that are suspended in git.")
	w.set(0, false, "resume:")
	w.set(2, false, "skip:")
	found := false
	for _, t := range w.live.Tiers {
		if !t.Suspended {
			continue
		}
		found = true
		why := "Suspended now"
		if t.SuspendedBy != "" {
			why += " by " + t.SuspendedBy + " since " + t.SuspendedSince.Format(time.RFC3339)
		}
		if t.Hold != "" {
			why += ", and held: " + t.Hold
		}
		w.say(2, why+".")
		w.set(2, false, "- "+scalar(tierName(t.Ref)))
	}
	if !found {
		w.say(2, "No tier is suspended now.")
		w.set(2, false, "- ks/flux-system/windows")
	}
	w.say(2, "How long one tier may take, instead of what Flux gives it.")
	w.set(2, false, "timeout: 10m")
}

func (w *writer) verify() {
	w.gap()
	w.say(0, "What proves objects whose status says nothing in the usual form.")
	w.set(0, false, "verify:")
	w.set(2, false, "checks:")
	w.set(2, false, "- apiVersion: cdi.kubevirt.io/v1beta1")
	w.set(4, false, "kind: CDI")
	w.set(4, false, "current: status.phase == 'Deployed'")
}
