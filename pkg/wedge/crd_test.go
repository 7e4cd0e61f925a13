// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func goingCRD(group, kind, plural string) *Definition {
	d := crd(group, kind, plural)
	d.Deleted, d.Finalizers = ago(time.Hour), []string{"customresourcecleanup.apiextensions.k8s.io"}
	d.Conditions = []metav1.Condition{isSo("Terminating", "InstanceDeletionInProgress", "CustomResource deletion is in progress")}
	return d
}

func widget(name string, setBy ...string) *Held {
	h := heldObject("example.com/v1", "Widget", "apps", name, "example.com/keep")
	h.SetBy = setBy
	return h
}

// TestBIG06 is a CRD that is being deleted: what holds it, and that its own
// finalizer is never touched.
func TestBIG06(t *testing.T) {
	going := defines(goingCRD("example.com", "Widget", "widgets"))
	for what, c := range map[string]struct {
		world    []func(*World)
		resolves Resolves
		actions  []string
		says     []string
	}{
		"its controller is gone": {
			[]func(*World){going, holding(widget("x", "widget-operator")), allowing("widget/apps/x")},
			Never,
			[]string{"remove-finalizer Widget/apps/x!", "wait Widget/apps/x"},
			[]string{"first choice: run the controller", "no workload of that name was seen", "InstanceDeletionInProgress"},
		},
		"its controller is gone, as far as its name tells": {
			[]func(*World){going, holding(widget("x", "widget-operator"))},
			Never, nil,
			[]string{"is only guessed", "--allow widget/apps/x, or --allow crd/widgets.example.com for all of its kind"},
		},
		"its controller is a StatefulSet": {
			[]func(*World){going, holding(widget("x", "widget-operator")), has(statefulSet(deployment("ops", "widget-operator", 1, 1, nil)))},
			When, nil,
			[]string{"StatefulSet/ops/widget-operator runs"},
		},
		"its controller runs": {
			[]func(*World){going, holding(widget("x", "widget-operator")), has(deployment("ops", "widget-operator", 1, 1, nil))},
			When, nil,
			[]string{"Deployment/ops/widget-operator runs"},
		},
		"its controller is coming up": {
			[]func(*World){going, holding(widget("x", "widget-operator")), has(deployment("ops", "widget-operator", 1, 0, nil))}, When, nil, nil,
		},
		"its controller is scaled to zero": {
			[]func(*World){going, holding(widget("x", "widget-operator")), has(deployment("ops", "widget-operator", 0, 0, nil))},
			Never, nil,
			[]string{"scaled to zero"},
		},
		"nobody knows its controller": {
			[]func(*World){going, holding(widget("x", "kubectl-create")), allowing("crd/widgets.example.com")},
			Never,
			[]string{"remove-finalizer Widget/apps/x!", "wait Widget/apps/x"},
			[]string{"is not known"},
		},
		"no object is left": {[]func(*World){going}, When, nil, []string{"come back with the next CRD"}},
		"two, and one is looked after": {
			[]func(*World){
				going, holding(widget("x", "widget-operator"), widget("y", "other")), has(deployment("ops", "widget-operator", 1, 1, nil)),
				allowing("widget/apps/y"),
			}, Never, []string{"remove-finalizer Widget/apps/y!", "wait Widget/apps/y"}, []string{"the finalizers of 2 objects"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			v := one(t, terminatingDefinitions(apiWorld(c.world...)))
			does(t, v, c.resolves, c.actions...)
			mentions(t, v, append(c.says, "customresourcecleanup.apiextensions.k8s.io is never taken off")...)
			for _, a := range v.Actions {
				if a.Object.Kind == "CustomResourceDefinition" {
					t.Errorf("it acts on the CRD: %+v", a)
				}
			}
		})
	}
}

func statefulSet(w *Workload) *Workload {
	w.Ref.Kind = "StatefulSet"
	return w
}

func TestBIG06HelmReleases(t *testing.T) {
	h := heldObject("helm.toolkit.fluxcd.io/v2", "HelmRelease", "apps", "db", "finalizers.fluxcd.io")
	going := defines(goingCRD("helm.toolkit.fluxcd.io", "HelmRelease", "helmreleases"))
	v := one(t, terminatingDefinitions(apiWorld(going, holding(h))))
	does(t, v, Never, "remove-finalizer HelmRelease/apps/db!", "wait HelmRelease/apps/db")
	mentions(t, v, "skips the uninstall: its workloads and records stay", "the release is not uninstalled: its workloads and its records stay", "no Deployment of helm-controller was seen")

	v = one(t, terminatingDefinitions(apiWorld(going, holding(h), func(w *World) {
		w.Controllers = map[string]*Controller{"helm-controller": {Wanted: 1, Ready: 1}}
	})))
	does(t, v, When)
}

func TestBIG06Data(t *testing.T) {
	h := heldObject("cdi.kubevirt.io/v1beta1", "DataVolume", "vms", "golden", "cdi.kubevirt.io/dataVolumeFinalizer")
	h.Relation = relation(t, "cdi")
	going := defines(goingCRD("cdi.kubevirt.io", "DataVolume", "datavolumes"))
	v := one(t, terminatingDefinitions(apiWorld(going, holding(h), holds(dataVolume("golden", "Succeeded")))))
	does(t, v, Never)
	if !strings.Contains(v.Refused, "--allow datavolume/vms/golden") {
		t.Errorf("refused: %q", v.Refused)
	}
	v = one(t, terminatingDefinitions(apiWorld(going, holding(h), holds(dataVolume("golden", "Succeeded")), allowing("datavolume/vms/golden"))))
	does(t, v, Never, "remove-finalizer DataVolume/vms/golden!", "wait DataVolume/vms/golden")
}

func TestBIG06ManyObjects(t *testing.T) {
	var all []*Held
	for i := range 3 * mostEvidence {
		all = append(all, widget(strings.Repeat("x", i+1), "gone"))
	}
	v := one(t, terminatingDefinitions(apiWorld(defines(goingCRD("example.com", "Widget", "widgets")), holding(all...), allowing("crd/widgets.example.com"))))
	if len(v.Actions) != 2*len(all) || len(v.Evidence) > mostEvidence+5 {
		t.Errorf("%d actions and %d lines of evidence for %d objects", len(v.Actions), len(v.Evidence), len(all))
	}
	mentions(t, v, "40 more have finalizers")
}

func TestBIG06Unreadable(t *testing.T) {
	d := goingCRD("example.com", "Widget", "widgets")
	d.Unread = `conversion webhook for example.com/v1, Kind=Widget failed`
	v := one(t, terminatingDefinitions(apiWorld(defines(d))))
	does(t, v, When)
	mentions(t, v, "what holds it could not be listed", "conversion-fails")
}

// TestBIG07 is a CRD whose names another one has: it is never served.
func TestBIG07(t *testing.T) {
	first, second := crd("example.com", "Widget", "widgets"), crd("example.com", "Widget", "widgetz")
	first.Conditions = []metav1.Condition{isSo("NamesAccepted", "NoConflicts", ""), isSo("Established", "InitialNamesAccepted", "")}
	second.Conditions = []metav1.Condition{isNot("NamesAccepted", "KindConflict", `"Widget" is already in use`), isNot("Established", "NotAccepted", "")}
	w := apiWorld(defines(first, second, crd("other.example.com", "Widget", "widgets")))
	v := one(t, refusedNames(w))
	does(t, v, Never)
	mentions(t, v, "KindConflict", "CustomResourceDefinition/widgets.example.com has one of its names")
	if v.Object != second.Ref {
		t.Errorf("it is about %s", v.Object)
	}
	none(t, terminatingDefinitions(w))
	none(t, refusedNames(apiWorld(defines(first, crd("example.com", "New", "news"))))) // not yet is not never
}
