// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"strings"
	"testing"
	"time"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

func TestCRD16ControllerWithoutDeployment(t *testing.T) {
	w := fluxWorld(fluxKS("flux-system"), fluxSilent(fluxHR("podinfo"), 3*time.Hour))
	delete(w.Controllers, helmController)
	v := fluxOne(t, controllerMissing(w))
	if v.Cause != ControllerMissing || v.Object.Name != helmController || v.Object.Namespace != "flux-system" || v.State != "absent" ||
		v.ResolvesItself != Never || len(v.Actions) > 0 || v.Since == nil || !v.Since.Equal(fluxNow().Add(-3*time.Hour)) {
		t.Errorf("%+v", v)
	}
	fluxHolds(t, v, "no helm-controller was seen", "none, since 2026-11-30T07:15:00Z", "HelmRelease")
}

func TestCRD16ScaledToZeroAndNotReady(t *testing.T) {
	w := fluxWorld(fluxKS("flux-system"), fluxHR("podinfo"))
	w.Controllers[helmController].Wanted, w.Controllers[helmController].Ready = 0, 0
	v := fluxOne(t, controllerMissing(w))
	if v.State != "scaled-to-zero" || v.ResolvesItself != Never || len(v.Actions) > 0 {
		t.Errorf("%+v", v)
	}
	fluxHolds(t, v, "spec.replicas")

	w.Controllers[helmController].Wanted, w.Controllers[helmController].LastTermination = 1, "Error"
	v = fluxOne(t, controllerMissing(w))
	if v.State != "not-ready" || v.ResolvesItself != When || v.Open() {
		t.Errorf("a Pod may become Ready at any time: %+v", v)
	}
	fluxHolds(t, v, "0 of 1", `"Error"`)
}

// A component that was left out at a new bootstrap: its objects never go.
func TestCRD16ObjectsHangTerminating(t *testing.T) {
	gone := fluxHR("podinfo")
	gone.Deleted, gone.Finalizers = fluxNow().Add(-time.Hour), []string{fluxFinalizer}
	w := fluxWorld(fluxKS("flux-system"), gone)
	delete(w.Controllers, helmController)
	v := fluxOne(t, controllerMissing(w))
	fluxHolds(t, v, "held by finalizers.fluxcd.io", "leave the finalizer of HelmRelease/flux-system/podinfo where it is")
	if len(v.Actions) > 0 {
		t.Errorf("the finalizer must not be removed: %+v", v.Actions)
	}
}

func TestCRD16NothingIsClaimed(t *testing.T) {
	tests := map[string]func() *World{
		"all run": func() *World { return fluxWorld(fluxKS("flux-system"), fluxSilent(fluxHR("new"), time.Hour)) },
		"no object of its kind": func() *World {
			w := fluxWorld(fluxKS("flux-system"))
			delete(w.Controllers, helmController)
			return w
		},
		"it runs under another label: its objects have a status": func() *World {
			w := fluxWorld(fluxKS("flux-system"), fluxHR("podinfo"))
			delete(w.Controllers, helmController)
			return w
		},
		"suspended ever since it was made": func() *World {
			w := fluxWorld(fluxKS("flux-system"), fluxSuspended(fluxSilent(fluxHR("podinfo"), time.Hour), "flux"))
			delete(w.Controllers, helmController)
			return w
		},
		"the list was forbidden, and objects have a status": func() *World {
			w := fluxWorld(fluxKS("flux-system"), fluxSilent(fluxKS("apps"), time.Hour))
			w.Controllers = nil
			return w
		},
		"nothing was seen, and the objects are new": func() *World {
			w := fluxWorld(fluxSilent(fluxKS("flux-system"), 5*time.Minute))
			w.Controllers = nil
			return w
		},
		"a shard of it runs": func() *World {
			w := fluxWorld(fluxKS("flux-system"), fluxHR("podinfo"))
			w.Controllers[helmController].Ready = 0
			w.Controllers["helm-controller-shard1"] = &Controller{Wanted: 1, Ready: 1}
			return w
		},
		"no Flux": func() *World { return &World{} },
		"an OCI HelmRepository has no status": func() *World {
			w := fluxWorld(fluxKS("flux-system"))
			w.Flux.Sources = append(w.Flux.Sources, flux.Source{Ref: flux.Ref{Kind: "HelmRepository", Name: "charts"}})
			delete(w.Controllers, sourceController)
			return w
		},
	}
	for name, world := range tests {
		t.Run(name, func(t *testing.T) { fluxNone(t, controllerMissing(world())) })
	}
}

func TestCRD16NothingWasSeenAndNobodyEverLooked(t *testing.T) {
	w := fluxWorld(fluxSilent(fluxKS("flux-system"), time.Hour), fluxSilent(fluxKS("apps"), time.Hour))
	w.Controllers = nil
	if v := fluxOne(t, controllerMissing(w)); v.Object.Name != kustomizeController {
		t.Errorf("%+v", v)
	}
}

func fluxDying(c *Controller) {
	c.Restarts, c.LastTermination, c.LastTerminatedAt = 7, "OOMKilled", fluxNow().Add(-10*time.Minute)
	c.MemoryLimit, c.Args = "256Mi", []string{"--events-addr=http://x", "--concurrent", "20"}
}

func TestHELM04TheControllerIsTheRootCause(t *testing.T) {
	w := fluxWorld(fluxHR("podinfo"))
	fluxDying(w.Controllers[helmController])
	v := fluxOne(t, controllerDies(w))
	if v.Cause != ControllerDies || v.Object.Name != helmController || v.ResolvesItself != Never || len(v.Actions) > 0 {
		t.Errorf("%+v", v)
	}
	fluxHolds(t, v, "OOMKilled at 2026-11-30T10:05:00Z", "256Mi", `"--concurrent","value":"20"`, "off, the default", "pointless")

	w.Controllers[helmController].Args = []string{"--feature-gates=OOMWatch=true"}
	w.Controllers[helmController].Ready = 0
	v = fluxOne(t, controllerDies(w))
	fluxHolds(t, v, "4, the default", `"feature gate OOMWatch","value":"on"`)
	fluxLacks(t, v, "--feature-gates")
	fluxNone(t, controllerMissing(w)) // the one cause is enough
}

func TestHELM04NotDying(t *testing.T) {
	for name, change := range map[string]func(*Controller){
		"once":               func(c *Controller) { c.Restarts = 1 },
		"long ago":           func(c *Controller) { c.LastTerminatedAt = fluxNow().Add(-26 * time.Hour) },
		"ended well":         func(c *Controller) { c.LastTermination = "Completed" },
		"lost its lease":     func(c *Controller) { c.LastTermination = "Error" },
		"never ended at all": func(c *Controller) { c.LastTermination, c.LastTerminatedAt = "", time.Time{} },
	} {
		t.Run(name, func(t *testing.T) {
			w := fluxWorld()
			fluxDying(w.Controllers[helmController])
			change(w.Controllers[helmController])
			fluxNone(t, controllerDies(w))
		})
	}
}

func TestHELM04OtherControllersHaveNoOOMWatch(t *testing.T) {
	w := fluxWorld()
	fluxDying(w.Controllers[kustomizeController])
	if v := fluxOne(t, controllerDies(w)); strings.Contains(fluxText(v), "OOMWatch") {
		t.Errorf("kustomize-controller has no such gate: %s", fluxText(v))
	}
}
