// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubestandup/kubestandup/pkg/crds"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// locked is the lock with this owner.
func locked(uid string, edit ...func(*Lock)) func(*World) {
	return func(w *World) {
		w.Lock = &Lock{
			Observed: Observed{Ref: flux.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "cdi", Name: "cdi-config"}, UID: "uid-lock"},
			Exists:   uid != "",
		}
		if uid != "" {
			w.Lock.Owner = Owner{Controller: flux.Ref{Kind: "CDI", Name: "cdi"}, ControllerUID: "uid-" + "cdi"}
			if uid != "cdi" {
				w.Lock.Owner.ControllerUID = "uid-of-another"
			}
		}
		for _, e := range edit {
			e(w.Lock)
		}
	}
}

func going(l *Lock) { l.Deleted = ago(30 * time.Minute) }

func erred(t *testing.T, edit ...func(*TriggerState)) func(*World) {
	s := cdi(t, phaseError, edit...)
	s.Conditions = append(s.Conditions, isSo("Degraded", "ConfigError", "Reconciling to error state, unwanted CDI object"))
	return hasTrigger(s)
}

func restarted(d *Workload) *Workload {
	d.RestartedAt = ago(time.Minute)
	return d
}

// TestCRD07 is a CDI resource in phase Error though its operator runs: restart
// first, recreate last, and only where no data can be lost.
func TestCRD07(t *testing.T) {
	restart := []string{"restart Deployment/cdi/cdi-operator"}
	recreate := []string{"delete CDI/cdi!", "wait CDI/cdi"}
	runs := has(cdiOperator(1, 1))
	for what, c := range map[string]struct {
		world    []func(*World)
		resolves Resolves
		refused  string
		actions  []string
		says     []string
	}{
		"the lock is going":             {[]func(*World){erred(t), runs, locked("cdi", going)}, Never, "", restart, []string{"is being deleted", "(1) upgrade the operator", "v1.57.0"}},
		"the lock is of one that was":   {[]func(*World){erred(t), runs, locked("old")}, Never, "", restart, []string{"uid-of-another, which is gone"}},
		"the lock is its own":           {[]func(*World){erred(t), runs, locked("cdi")}, Never, "", restart, []string{"is its own"}},
		"restarted, and still in error": {[]func(*World){erred(t), has(restarted(cdiOperator(1, 1))), locked("cdi")}, Never, "", recreate, nil},
		"no lock":                       {[]func(*World){erred(t), runs, locked("")}, Never, "", recreate, []string{"does not exist", "a restart does not help"}},
		"no lock, and an import runs": {
			[]func(*World){erred(t), runs, locked(""), holds(dataVolume("golden", "ImportInProgress"), dataVolume("done", "Succeeded")), allowing("datavolume/vms/golden", "datavolume/vms/done")},
			Never, "break off the imports into DataVolume/vms/golden", nil,
			[]string{"ImportInProgress: data is being written"},
		},
		"no lock, and a volume is there": {
			[]func(*World){erred(t), runs, locked(""), holds(dataVolume("golden", "Succeeded"))}, Never, "--allow datavolume/vms/golden", nil, nil,
		},
		"no lock, and the volume is named": {
			[]func(*World){erred(t), runs, locked(""), holds(dataVolume("golden", "Succeeded")), allowing("datavolume/vms/golden")}, Never, "", recreate, nil,
		},
		"no lock, and volumes are unreadable": {
			[]func(*World){erred(t), runs, locked(""), func(w *World) { w.Data.Unknown = "forbidden" }}, Never, "could not be read: forbidden", nil, nil,
		},
		"the lock is unreadable": {
			[]func(*World){erred(t), runs, locked("", func(l *Lock) { l.Unknown = "configmaps is forbidden" })}, Never, "", nil, []string{"configmaps is forbidden"},
		},
		"the lock is of another CDI": {
			[]func(*World){erred(t), runs, locked("other"), hasTrigger(cdi(t, phaseDeployed, func(s *TriggerState) { s.Ref.Name, s.UID = "second", "uid-of-another" }))},
			Never, "", nil,
			[]string{"belongs to CDI/second", "only one CDI resource may exist"},
		},
		"the operator does not run": {[]func(*World){erred(t), has(cdiOperator(1, 0)), locked("old")}, When, "", nil, []string{"none of 1 replicas"}},
	} {
		t.Run(what, func(t *testing.T) {
			v := one(t, cdiErrors(apiWorld(c.world...)))
			does(t, v, c.resolves, c.actions...)
			mentions(t, v, c.says...)
			if (c.refused == "") != (v.Refused == "") || !strings.Contains(v.Refused, c.refused) {
				t.Errorf("refused: %q", v.Refused)
			}
			if v.ResolvesItself == Never && !strings.Contains(v.Repair, "datavolumes.cdi.kubevirt.io is never deleted") {
				t.Errorf("it does not warn: %s", v.Repair)
			}
			for _, a := range v.Actions {
				if a.Object.Kind == "CustomResourceDefinition" || a.Object.Kind == "ConfigMap" {
					t.Errorf("it acts on %s", a.Object)
				}
			}
		})
	}
}

func TestCRD07Restart(t *testing.T) {
	v := one(t, cdiErrors(apiWorld(erred(t), has(cdiOperator(1, 1)), locked("cdi", going))))
	want := map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{"kubectl.kubernetes.io/restartedAt": "2026-03-01T12:00:00Z"},
	}}}}
	if got := v.Actions[0].step.(mergeStep).patch; !reflect.DeepEqual(got, want) {
		t.Errorf("patch %v", got)
	}
	if v.Actions[0].Destructive || v.Actions[0].pin.generation != 3 {
		t.Errorf("%+v", v.Actions[0])
	}
}

func TestCRD07Recreate(t *testing.T) {
	tier := kustomization("virt")
	v := one(t, cdiErrors(apiWorld(
		erred(t, func(s *TriggerState) { s.Owner.Tier = tier.Ref }), has(cdiOperator(1, 1)), locked(""), fluxHas(tier),
		defines(crd("cdi.kubevirt.io", "CDI", "cdis"), ownedByCDI("DataVolume", "datavolumes")),
	)))
	does(t, v, Never, "delete CDI/cdi!", "wait CDI/cdi", "nudge Kustomization/flux-system/virt")
	if got := v.Actions[1].step.(goneStep).objects; len(got) != 2 || got[1].Name != "datavolumes.cdi.kubevirt.io" {
		t.Errorf("it waits for %v", got)
	}
	mentions(t, v, "with it goes what it owns, a CRD with every object of its kind: CustomResourceDefinition/datavolumes.cdi.kubevirt.io", "Kustomization/flux-system/virt applies it again")
}

// TestCRD08 decides by objects what the operator's line about
// cdi-apiserver-signer-bundle means. The ConfigMap is never made by hand.
func TestCRD08(t *testing.T) {
	deploying := hasTrigger(cdi(t, phaseDeploying))
	api := func(available int32) *Workload {
		return deployment("cdi", "cdi-apiserver", 1, available, map[string]string{"cdi.kubevirt.io": "cdi-apiserver"})
	}
	controller := func(available int32) *Workload {
		return deployment("cdi", "cdi-deployment", 1, available, map[string]string{"app": "containerized-data-importer"})
	}
	pending := func(w *World) {
		w.Pods = []Pod{{
			flux.Ref{Kind: "Pod", Namespace: "cdi", Name: "cdi-apiserver-0"},
			map[string]string{"cdi.kubevirt.io": "cdi-apiserver"},
			"Unschedulable: 0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector",
		}}
	}
	runs := has(cdiOperator(1, 1))
	for what, c := range map[string]struct {
		world    []func(*World)
		resolves Resolves
		says     []string
	}{
		"A: not made":    {[]func(*World){deploying, runs}, When, []string{"has not made cdi-apiserver and cdi-deployment", "conditions"}},
		"B: not started": {[]func(*World){deploying, has(cdiOperator(1, 1), api(0), controller(1)), pending}, When, []string{"Unschedulable: 0/3 nodes", "nodeSelector"}},
		"C: no resource": {[]func(*World){runs, defines(crd("cdi.kubevirt.io", "CDI", "cdis"))}, When, []string{"no CDI resource", "apply the CDI resource"}},
		"almost there":   {[]func(*World){deploying, has(cdiOperator(1, 1), api(1), controller(1))}, Itself, nil},
	} {
		t.Run(what, func(t *testing.T) {
			v := one(t, cdiErrors(apiWorld(c.world...)))
			if v.ResolvesItself != c.resolves || len(v.Actions) > 0 || v.Open() {
				t.Errorf("resolves %s, actions %+v", v.ResolvesItself, v.Actions)
			}
			mentions(t, v, append(c.says, "not to be made by hand")...)
		})
	}
}

func TestCRD08WhoHoldsTheResource(t *testing.T) {
	tier := kustomization("virt").Ref
	v := one(t, cdiErrors(apiWorld(has(cdiOperator(1, 1)), defines(crd("cdi.kubevirt.io", "CDI", "cdis")), func(w *World) {
		w.Diagnoses = []*crds.Diagnosis{{Tier: tier, Why: "deadlock: both are in virt", Triggers: []crds.Trigger{{Kind: cdiKind()}}}}
	})))
	if slices.ContainsFunc(v.Evidence, func(e Evidence) bool { return e.Object == tier }) {
		t.Error("a tier that does not build the resource is named for it")
	}
}

func TestCDIThatIsFine(t *testing.T) {
	for what, c := range map[string][]func(*World){
		"deployed":                  {hasTrigger(cdi(t, phaseDeployed)), has(cdiOperator(1, 1))},
		"no operator":               {hasTrigger(cdi(t, phaseError))},
		"going away":                {hasTrigger(cdi(t, phaseError, goingAway)), has(cdiOperator(1, 1))},
		"no operator, no resource":  {defines(crd("cdi.kubevirt.io", "CDI", "cdis"))},
		"operator without its CRD":  {has(cdiOperator(1, 1))},
		"KubeVirt in another phase": {hasTrigger(kubevirt(t, func(s *TriggerState) { s.Phase = phaseError }))},
	} {
		t.Run(what, func(t *testing.T) { none(t, cdiErrors(apiWorld(c...))) })
	}
}
