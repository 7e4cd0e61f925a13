// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"

	"github.com/fluxcd/pkg/apis/meta"
	"go.yaml.in/yaml/v3"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

type checkRef = meta.NamespacedObjectKindReference

// specYAML is what a fix adds to the spec of a Kustomization or a HelmRelease,
// in the order in which people write it.
type specYAML struct {
	Interval         string           `yaml:"interval,omitempty"`
	RetryInterval    string           `yaml:"retryInterval,omitempty"`
	DependsOn        []dependencyYAML `yaml:"dependsOn,omitempty"`
	SourceRef        *sourceYAML      `yaml:"sourceRef,omitempty"`
	Path             string           `yaml:"path,omitempty"`
	Prune            *bool            `yaml:"prune,omitempty"`
	Wait             *bool            `yaml:"wait,omitempty"`
	HealthChecks     []checkYAML      `yaml:"healthChecks,omitempty"`
	HealthCheckExprs []exprYAML       `yaml:"healthCheckExprs,omitempty"`
	Decryption       *decryptionYAML  `yaml:"decryption,omitempty"`
	Values           map[string]any   `yaml:"values,omitempty"`
}

type dependencyYAML struct {
	Name      string `yaml:"name"`
	Namespace string `yaml:"namespace,omitempty"`
}

type sourceYAML struct {
	Kind      string `yaml:"kind"`
	Name      string `yaml:"name"`
	Namespace string `yaml:"namespace,omitempty"`
}

type checkYAML struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Name       string `yaml:"name"`
	Namespace  string `yaml:"namespace,omitempty"`
}

type exprYAML struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	InProgress string `yaml:"inProgress,omitempty"`
	Failed     string `yaml:"failed,omitempty"`
	Current    string `yaml:"current"`
}

type decryptionYAML struct {
	Provider  string    `yaml:"provider"`
	SecretRef *nameYAML `yaml:"secretRef,omitempty"`
}

type nameYAML struct {
	Name string `yaml:"name"`
}

// check adds objects to the health checks.
func (s *specYAML) check(objects []flux.Ref) {
	for _, o := range objects {
		s.HealthChecks = append(s.HealthChecks, checkYAML{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, Namespace: o.Namespace})
	}
}

// dependsOn is a dependency as the dependant writes it: without a namespace
// that is its own.
func dependsOn(dependant, on flux.Ref) dependencyYAML {
	d := dependencyYAML{Name: on.Name}
	if on.Namespace != dependant.Namespace {
		d.Namespace = on.Namespace
	}
	return d
}

// text is the spec as YAML, under its key.
func (s specYAML) text() string { return encode(map[string]any{"spec": s}) }

// manifest is a whole object.
type manifest struct {
	APIVersion string       `yaml:"apiVersion"`
	Kind       string       `yaml:"kind"`
	Metadata   manifestName `yaml:"metadata"`
	Spec       specYAML     `yaml:"spec"`
}

type manifestName struct {
	Name      string `yaml:"name"`
	Namespace string `yaml:"namespace,omitempty"`
}

func encode(v any) string {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(v); err != nil {
		return "" // of strings, numbers and maps of them: it cannot fail
	}
	return b.String()
}
