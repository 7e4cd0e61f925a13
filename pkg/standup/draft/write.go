// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"fmt"
	"path"
	"slices"
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
	if len(w.live.Unread) > 0 {
		w.say(0, "")
		w.say(0, "The server did not let these be read, so nothing below rests on them:")
		for _, u := range w.live.Unread {
			w.say(0, "- "+u.What+": "+u.Why)
		}
	}
	w.gap()
	w.say(0, "These lines keep the file out of what Flux applies, also where the folder has no kustomization.yaml.")
	for line := range strings.Lines(config.Header) {
		w.line(strings.TrimSuffix(line, "\n"))
	}
}

func (w *writer) cluster() {
	i := w.live.Identity
	w.gap()
	w.tell("CA of the server when this was written: " + i.CA())
	if i.Unprovable != "" {
		w.say(0, "This connection can prove nothing: "+i.Unprovable)
	}
	w.tell(fmt.Sprintf("As flags: --expect-server %s --expect-uid %s", i.URL, i.UID))
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
	if root.Ref.Namespace != namespace {
		why += " It is in the namespace " + root.Ref.Namespace + "."
	}
	w.say(2, why)
	w.set(2, true, "root: "+scalar(root.Ref.Name))
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
