// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cluster

// Component is a part of a cluster that can be started, stopped and killed.
type Component string

// The components. Etcd, APIServer and Git run in every cluster.
const (
	Etcd                Component = "etcd"
	APIServer           Component = "kube-apiserver"
	Git                 Component = "git"
	ControllerManager   Component = "kube-controller-manager"
	SourceController    Component = "source-controller"
	KustomizeController Component = "kustomize-controller"
	HelmController      Component = "helm-controller"
	// CDIOperator runs once on a machine, since its ports are fixed: starting it
	// waits until no other cluster of this machine runs it. It expects the CRD
	// cdis.cdi.kubevirt.io and acts once the namespace cdi is there.
	CDIOperator Component = "cdi-operator"
	// CDIAPIServer serves the webhooks that cdi-operator registers, without which
	// no DataVolume can be created. Starting it waits for the certificate that
	// cdi-operator makes for it.
	CDIAPIServer Component = "cdi-apiserver"
)

// DefaultComponents run when Options.Components is nil.
func DefaultComponents() []Component {
	return []Component{ControllerManager, SourceController, KustomizeController}
}

// Options describe a cluster. The zero value is the usual one.
type Options struct {
	// Name is the context of the kubeconfigs; "" is "test".
	Name string
	// Components run beside etcd, the API server and the git server. Nil is
	// DefaultComponents, an empty slice none.
	Components []Component
	// FluxCRDs installs Flux's CRDs and the namespace flux-system though no
	// controller of Flux is among the components. With one, they always are.
	FluxCRDs bool
	// FluxDeployments adds the objects that a Flux install has for its
	// controllers (Deployments and Services, from their own modules, labelled as
	// flux install does), with pods whose status says that they run.
	FluxDeployments bool
	// Kubelet stands in for a kubelet for which every image starts at once: it
	// writes the status of every Pod (see Cluster.MarkAvailable for one), and
	// runs the real cdi-operator and cdi-apiserver while their Pods exist.
	// It needs ControllerManager, which makes the Pods of a Deployment.
	Kubelet bool
	// Args are appended to a component's own arguments.
	Args map[Component][]string
	// Users can log in beside the administrator, with what RBAC gives them.
	Users []User
	// Port of the API server; 0 takes a free one. A given port is waited for.
	Port int
	// Credentials of another cluster (Cluster.Credentials): what trusts and may
	// log in to that one then does so here. Nil makes new ones.
	Credentials *Credentials
}

// User may log in to the API server.
type User struct {
	Name   string
	Groups []string
}

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = "test"
	}
	if o.Components == nil {
		o.Components = DefaultComponents()
	}
	return o
}

func (o Options) needsFlux() bool {
	if o.FluxCRDs || o.FluxDeployments {
		return true
	}
	for _, c := range o.Components {
		switch c {
		case SourceController, KustomizeController, HelmController:
			return true
		}
	}
	return false
}
