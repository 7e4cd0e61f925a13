// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// Server is what a chart may ask about the server that it is rendered for.
type Server struct {
	// Version is the API server's, as v1.37.2.
	Version string
	// Kinds are those that it serves.
	Kinds []schema.GroupVersionKind
	// Namespaced says of kinds that are not built in whether their objects are
	// in namespaces. It need not know any.
	Namespaced map[schema.GroupKind]bool
}

// kubernetesVersion is that of the k8s.io modules.
const kubernetesVersion = "v1.37.2"

// DefaultServer is an API server of the Kubernetes version that this program was
// built with: the kinds that it serves without being told to, and Flux's own.
func DefaultServer() Server {
	s := Server{Version: kubernetesVersion, Kinds: []schema.GroupVersionKind{
		{Group: crdGroup, Version: "v1", Kind: crdKind},
		{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
		{Group: flux.KustomizeGroup, Version: "v1", Kind: flux.KustomizationKind},
		{Group: flux.HelmGroup, Version: "v2", Kind: flux.HelmReleaseKind},
	}}
	for _, kind := range []string{gitRepository, ociRepository, bucket, helmRepository, helmChart, externalArtifact} {
		s.Kinds = append(s.Kinds, schema.GroupVersionKind{Group: flux.SourceGroup, Version: "v1", Kind: kind})
	}
	for _, kind := range []string{"Alert", "Provider"} {
		s.Kinds = append(s.Kinds, schema.GroupVersionKind{Group: "notification.toolkit.fluxcd.io", Version: "v1beta3", Kind: kind})
	}
	s.Kinds = append(s.Kinds, schema.GroupVersionKind{Group: "notification.toolkit.fluxcd.io", Version: "v1", Kind: "Receiver"})
	// A version of its own: alpha and beta ones are off since Kubernetes 1.24.
	stable := regexp.MustCompile(`^v[0-9]+$`)
	for kind, model := range scheme.Scheme.AllKnownTypes() {
		if stable.MatchString(kind.Version) && served(kind, model) {
			s.Kinds = append(s.Kinds, kind)
		}
	}
	slices.SortFunc(s.Kinds, func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) })
	s.Kinds = slices.Compact(s.Kinds)
	return s
}

// served leaves out what is in the scheme and no resource of its own.
func served(kind schema.GroupVersionKind, model reflect.Type) bool {
	_, object := reflect.New(model).Interface().(metav1.Object)
	return object && kind.Version != runtime.APIVersionInternal && kind.Kind != "RangeAllocation" && kind.Kind != "PodStatusResult"
}

func (s Server) capabilities() (*common.Capabilities, error) {
	caps := common.DefaultCapabilities.Copy()
	parsed, err := common.ParseKubeVersion(s.Version)
	if err != nil {
		return nil, fmt.Errorf("server version %q: %w", s.Version, err)
	}
	caps.KubeVersion = *parsed
	// Group and version, and each with its kinds (helm pkg/action GetVersionSet).
	known := map[string]bool{}
	for _, kind := range s.Kinds {
		version := kind.GroupVersion().String()
		known[version], known[path.Join(version, kind.Kind)] = true, true
	}
	caps.APIVersions = slices.Sorted(maps.Keys(known))
	return caps, nil
}

// Asks are the API versions, some with a kind, that the templates ask the server
// for by name (.Capabilities.APIVersions.Has "v1/Pod"). Where the answer changes
// what is rendered, helm-controller does not notice that it has changed: chart
// and values are the same. It may miss some, that are composed, and name some
// of dependencies that are switched off.
func (c *Chart) Asks() []string {
	asked := map[string]bool{}
	has := regexp.MustCompile("APIVersions\\.Has\\s*\\(?\\s*[\"`]([^\"`]+)[\"`]")
	for _, match := range has.FindAllStringSubmatch(c.templates(), -1) {
		asked[strings.TrimSpace(match[1])] = true
	}
	return slices.Sorted(maps.Keys(asked))
}

// AskedKinds are the kinds of what Asks answers: of v1/Pod, or of v1 alone, which
// has none.
func AskedKinds(asks []string) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, version := range asks {
		kind := ""
		if at := strings.LastIndex(version, "/"); at >= 0 && at+1 < len(version) && 'A' <= version[at+1] && version[at+1] <= 'Z' {
			version, kind = version[:at], version[at+1:]
		}
		if gv, err := schema.ParseGroupVersion(version); err == nil {
			kinds = append(kinds, gv.WithKind(kind))
		}
	}
	return kinds
}
