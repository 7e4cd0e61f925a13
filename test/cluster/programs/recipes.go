// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package programs

import "time"

// recipe says how one module below tools/ becomes programs and manifests.
// Its printed form is part of the cache key, so a changed recipe is built anew.
type recipe struct {
	// name is the folder below tools/ and the first half of the cache folder's name.
	name string
	// builds maps a program's file name to the package that is built.
	builds map[string]string
	// links are further names for one built program, which looks at its own name.
	links map[string]string
	// stamp is the module whose version the program reports, "" when it needs
	// none: unstamped Kubernetes calls itself v0.0.0, which charts refuse.
	stamp string
	// manifests maps a folder inside a module to the folder it is copied to.
	manifests []manifests
	// run names a built program that writes further manifests into the folder
	// given as its only argument. It is not kept.
	run string
	// takes is about how long the first build lasts on two cores.
	takes time.Duration
}

type manifests struct{ module, from, to string }

func fluxRecipe(name string, takes time.Duration) recipe {
	controller := name + "-controller"
	module := "github.com/fluxcd/" + controller
	return recipe{
		name:   name,
		builds: map[string]string{controller: module},
		manifests: []manifests{
			{module, "config/crd/bases", "crds"},
			{module, "config/manager", "manager"},
		},
		takes: takes,
	}
}

// helmRecipe is Helm's own program, in the version of a module of its own.
func helmRecipe(name, module string, takes time.Duration) recipe {
	return recipe{name: name, builds: map[string]string{name: module + "/cmd/helm"}, takes: takes}
}

func recipes() []recipe {
	return []recipe{
		{
			name:   "etcd",
			builds: map[string]string{"etcd": "go.etcd.io/etcd/server/v3"},
			takes:  time.Minute,
		},
		fluxRecipe("kustomize", 2*time.Minute),
		fluxRecipe("source", 2*time.Minute),
		fluxRecipe("helm", 2*time.Minute),
		helmRecipe("helm3", "helm.sh/helm/v3", 2*time.Minute),
		helmRecipe("helm4", "helm.sh/helm/v4", 2*time.Minute),
		{
			name: "cluster",
			builds: map[string]string{
				"cluster": ".",
				// On its own, since it is started hundreds of times: all that the
				// servers set up before main would take it as long as its work.
				"kubectl": "k8s.io/kubernetes/cmd/kubectl",
			},
			links: map[string]string{
				"kube-apiserver":          "cluster",
				"kube-controller-manager": "cluster",
			},
			stamp: "k8s.io/kubernetes",
			takes: 4*time.Minute + 30*time.Second,
		},
		{
			name: "cdi",
			builds: map[string]string{
				"cdi-operator":  "kubevirt.io/containerized-data-importer/cmd/cdi-operator",
				"cdi-apiserver": "./apiserver",
				"manifests":     "./manifests",
			},
			run:   "manifests",
			takes: 90 * time.Second,
		},
	}
}
