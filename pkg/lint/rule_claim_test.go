// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/coldstart"
)

func TestUnboundClaim(t *testing.T) {
	claim := func(spec string) string {
		return "-- storage/namespace.yaml --\n{apiVersion: v1, kind: Namespace, metadata: {name: x-a}}\n-- storage/claim.yaml --\n{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: x-a}, spec: {" + spec + "}}\n"
	}
	workload := func(tier, kind, more string) string {
		pod := "{volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]}"
		spec := "template: {spec: " + pod + "}"
		if kind == "CronJob" {
			spec = "jobTemplate: {spec: {" + spec + "}}"
		}
		group := "apps/v1"
		if strings.HasSuffix(kind, "Job") {
			group = "batch/v1"
		}
		return "-- " + tier + "/workload.yaml --\n{apiVersion: " + group + ", kind: " + kind + ", metadata: {name: db, namespace: x-a}, spec: {" + spec + more + "}}\n"
	}
	class := func(mode string) string {
		return "-- storage/class.yaml --\n{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}, provisioner: x, volumeBindingMode: " + mode + "}\n"
	}
	release := "-- storage/hr.yaml --\n{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: db, namespace: x-a}, spec: {interval: 1h, chart: {spec: {chart: db, sourceRef: {kind: HelmRepository, name: r}}}}}\n"
	waits, below := tierFile("storage", "wait: true"), files("db: dependsOn: [{name: storage}]")
	for name, tc := range map[string]struct {
		files string
		found bool
	}{
		"mounted below":               {waits + below + claim("") + workload("db", "Deployment", ""), true},
		"first consumer":              {waits + below + claim("storageClassName: fast") + class("WaitForFirstConsumer"), true},
		"immediate":                   {waits + below + claim("storageClassName: fast") + class("Immediate"), false},
		"the mode that is default":    {waits + below + claim("storageClassName: fast") + class(`""`), false},
		"a class of nobody":           {waits + below + claim("storageClassName: other") + class("Immediate"), true},
		"its volume is named":         {waits + below + claim("volumeName: v"), false},
		"no class at all":             {waits + below + claim(`storageClassName: ""`), false},
		"nobody depends on it":        {waits + claim(""), false},
		"a volume is kept for it":     {waits + below + claim("storageClassName: fast") + class("WaitForFirstConsumer") + "-- storage/pv.yaml --\n{apiVersion: v1, kind: PersistentVolume, metadata: {name: v}, spec: {claimRef: {namespace: x-a, name: data}}}\n", false},
		"the tier does not wait":      {tierFile("storage", "") + below + claim(""), false},
		"mounted below, sure":         {waits + below + claim("storageClassName: fast") + class("WaitForFirstConsumer") + workload("db", "Deployment", ""), true},
		"a Deployment of the tier":    {waits + below + claim("") + workload("storage", "Deployment", ""), false},
		"a Deployment with no pods":   {waits + below + claim("") + workload("storage", "Deployment", ", replicas: 0"), true},
		"a Job of the tier":           {waits + below + claim("") + workload("storage", "Job", ""), false},
		"a CronJob of the tier":       {waits + below + claim("") + workload("storage", "CronJob", ""), false},
		"a suspended CronJob":         {waits + below + claim("") + workload("storage", "CronJob", ", suspend: true"), true},
		"a tier that does not wait":   {waits + below + files("other") + claim("") + workload("other", "Deployment", ""), false},
		"a resource of an operator":   {waits + below + claim("") + "-- storage/vm.yaml --\n{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: vm, namespace: x-a}, spec: {template: {spec: {volumes: [{name: d, dataVolume: {name: data}}]}}}}\n", false},
		"a release that nobody knows": {waits + below + claim("") + release, false},
		"another namespace":           {waits + below + claim("") + strings.Replace(workload("storage", "Deployment", ""), "x-a", "x-b", 1), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := subject(t, tc.files)
			s.World.Charts[coldstart.Key(hr("x-a", "db"))] = coldstart.Chart{Basis: coldstart.Opaque}
			s.Prediction = coldstart.Predict(s.World)
			if !tc.found {
				none(t, s, "HG004")
				return
			}
			f := one(t, s, "HG004")
			contains(t, "message", f.Message, "storage waits for PersistentVolumeClaim/x-a/data", "db never starts")
			if f.File != "storage/claim.yaml" {
				t.Errorf("it is at %s", f.File)
			}
		})
	}
	t.Run("a release that mounts something else", func(t *testing.T) {
		s := subject(t, waits+below+claim("")+release)
		s.World.Charts[coldstart.Key(hr("x-a", "db"))] = coldstart.Chart{Basis: coldstart.Rendered, Objects: []*unstructured.Unstructured{
			manifestOf(t, "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: x-a}, spec: {template: {spec: {volumes: [{name: d, persistentVolumeClaim: {claimName: other}}]}}}}"),
		}}
		s.Prediction = coldstart.Predict(s.World)
		one(t, s, "HG004")
	})
}

func TestHealthChecks(t *testing.T) {
	checks := "healthChecks: [{apiVersion: v1, kind: ConfigMap, name: NAME, namespace: x-a}]"
	own, foreign := strings.Replace(checks, "NAME", "a", 1), strings.Replace(checks, "NAME", "other", 1)
	for name, tc := range map[string]struct {
		spec  string
		words []string
	}{
		"its own":     {"wait: true, " + own, []string{"it waits for everything that it applies", "wait covers it", "Take spec.healthChecks out"}},
		"another's":   {"wait: true, " + foreign, []string{"it is Ready without ConfigMap/x-a/other", "wait: false"}},
		"only checks": {foreign, nil},
		"only wait":   {"wait: true", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := subject(t, files("a: "+tc.spec))
			if tc.words == nil {
				none(t, s, "HG002")
				return
			}
			f := one(t, s, "HG002")
			contains(t, "finding", f.Message+"\n"+causes(f)+"\n"+f.Fix, tc.words...)
		})
	}
}

func TestJobRunsAgain(t *testing.T) {
	job := func(spec string) string {
		return "-- a/job.yaml --\n{apiVersion: batch/v1, kind: Job, metadata: {name: seed, namespace: x-a}, spec: {" + spec + "}}\n"
	}
	s := subject(t, tierFile("a", "")+job("ttlSecondsAfterFinished: 0"))
	contains(t, "message", one(t, s, "HG005").Message, "Job/x-a/seed runs again every 1h")
	s = subject(t, tierFile("a", "")+job("ttlSecondsAfterFinished: 86400"))
	contains(t, "message", one(t, s, "HG005").Message, "Job/x-a/seed runs again every 24h")
	for name, text := range map[string]string{
		"no ttl":  tierFile("a", "") + job("backoffLimit: 1"),
		"waited":  tierFile("a", "wait: true") + job("ttlSecondsAfterFinished: 0"),
		"ignored": tierFile("a", "") + strings.Replace(job("ttlSecondsAfterFinished: 0"), "x-a}", "x-a, labels: {kustomize.toolkit.fluxcd.io/reconcile: disabled}}", 1),
	} {
		t.Run(name, func(t *testing.T) { none(t, subject(t, text), "HG005") })
	}
}

func TestUnprovedEffect(t *testing.T) {
	effect := book(t).Effect(cdiProfile())
	if effect == nil {
		t.Fatal("the effect of StorageProfile is not known: add it to pkg/knowledge/data")
	}
	profile := "-- a/p.yaml --\n{apiVersion: cdi.kubevirt.io/v1beta1, kind: StorageProfile, metadata: {name: fast}}\n"
	below := files("b: dependsOn: [{name: a}]")
	proved := "healthCheckExprs: [{apiVersion: cdi.kubevirt.io/v1beta1, kind: StorageProfile, current: \"true\"}]"
	for name, tc := range map[string]struct {
		files string
		found bool
	}{
		"with dependants":       {tierFile("a", "wait: true") + profile + below, true},
		"nobody depends on it":  {tierFile("a", "wait: true") + profile, false},
		"proved":                {tierFile("a", "wait: true, "+proved) + profile + below, false},
		"an expression, unused": {tierFile("a", proved) + profile + below, true},
		"another kind":          {files("a") + below, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := subject(t, tc.files)
			if !tc.found {
				none(t, s, "HG003")
				return
			}
			f := one(t, s, "HG003")
			contains(t, "finding", f.Message+"\n"+f.Fix, "b depends on a", "StorageProfile/fast", effect.Why)
		})
	}
}
