// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/chartutil"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	helmutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const (
	crdKind  = "CustomResourceDefinition"
	crdGroup = "apiextensions.k8s.io"
	notes    = "NOTES.txt"
)

// Server is what a chart may ask about the server that it is rendered for.
type Server struct {
	// Version is the API server's, as v1.37.2.
	Version string
	// Kinds are those that it serves.
	Kinds []schema.GroupVersionKind
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

// Definitions renders the chart as helm-controller would install it, with
// override laid over the values, and returns the CustomResourceDefinitions:
// those of crds/ folders, those of templates and those that are hooks, each
// once, by name. They have no mark of the release on them but what the
// templates write.
//
// The chart is used up: it is rendered once. An error names the file and holds
// no value of a Secret; it is a *SlowError where ctx has a deadline and a
// template runs beyond it, which nothing can stop.
func (c *Chart) Definitions(ctx context.Context, server Server, override map[string]any) ([]*unstructured.Unstructured, error) {
	start := time.Now()
	type outcome struct {
		all []*unstructured.Unstructured
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		all, err := c.definitions(server, override)
		done <- outcome{all, err}
	}()
	var o outcome
	select {
	case o = <-done:
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, &SlowError{c, time.Since(start).Round(time.Second)}
		}
		return nil, ctx.Err()
	}
	if o.err != nil {
		return nil, c.hidden.redact(fmt.Errorf("chart %s %s of %s cannot be rendered: %w", c.Name, c.Version, c.Release, oneLine(o.err)))
	}
	return o.all, nil
}

// SlowError says that a chart was not rendered in time.
type SlowError struct {
	chart *Chart
	after time.Duration
}

func (e *SlowError) Error() string {
	return fmt.Sprintf("chart %s %s of %s is not rendered after %s: a loop of a template may have no end", e.chart.Name, e.chart.Version, e.chart.Release, e.after)
}

// ExitCode is 4, past a deadline.
func (*SlowError) ExitCode() int { return 4 }

func (c *Chart) definitions(server Server, override map[string]any) ([]*unstructured.Unstructured, error) {
	caps, err := server.capabilities()
	if err != nil {
		return nil, err
	}
	if wants := c.chart.Metadata.KubeVersion; wants != "" && !helmutil.IsCompatibleRange(wants, caps.KubeVersion.String()) {
		return nil, fmt.Errorf("it requires Kubernetes %s and the server is %s", wants, server.Version)
	}
	over, err := plain(override)
	if err != nil {
		return nil, fmt.Errorf("the override's values: %w", err)
	}
	c.values = chartutil.MergeMaps(c.values, over)
	if err := helmutil.ProcessDependencies(c.chart, c.values); err != nil {
		return nil, err
	}
	skipSchema := c.object.Spec.Install != nil && c.object.Spec.Install.DisableSchemaValidation
	options := common.ReleaseOptions{
		Name: c.releaseName(), Namespace: c.object.GetReleaseNamespace(), Revision: 1, IsInstall: true,
	}
	values, err := util.ToRenderValuesWithSchemaValidation(c.chart, c.values, options, caps, skipSchema)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c.chart, values)
	if err != nil {
		return nil, err
	}
	found := map[string]*unstructured.Unstructured{}
	for _, crd := range c.chart.CRDObjects() {
		if err := collect(crd.Filename, string(crd.File.Data), found); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Base(name) == notes {
			continue
		}
		if err := collect(name, files[name], found); err != nil {
			return nil, err
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b *unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) }), nil
}

// plain gives values the types that Helm reads from YAML.
func plain(values map[string]any) (common.Values, error) {
	text, err := yaml.Marshal(values)
	if err != nil {
		return nil, err
	}
	return common.ReadValues(text)
}

// collect adds the CustomResourceDefinitions among the documents of a file.
func collect(file, text string, into map[string]*unstructured.Unstructured) error {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		// Most of a chart is something else, and is not worth parsing.
		if !strings.Contains(string(document), crdKind) {
			continue
		}
		var object map[string]any
		if err := yaml.Unmarshal(document, &object); err != nil {
			return fmt.Errorf("%s: a document with a %s is no YAML object: %w", file, crdKind, err)
		}
		if err := keep(file, object, into); err != nil {
			return err
		}
	}
}

func keep(file string, object map[string]any, into map[string]*unstructured.Unstructured) error {
	u := &unstructured.Unstructured{Object: object}
	if items, ok := object["items"].([]any); ok && strings.HasSuffix(u.GetKind(), "List") {
		for _, item := range items {
			if each, ok := item.(map[string]any); ok {
				if err := keep(file, each, into); err != nil {
					return err
				}
			}
		}
		return nil
	}
	gvk := u.GroupVersionKind()
	if gvk.Kind != crdKind || gvk.Group != crdGroup {
		return nil
	}
	if gvk.Version != "v1" {
		return fmt.Errorf("%s: %s %s is of %s, which no server since Kubernetes 1.22 accepts: take a newer version of the chart",
			file, crdKind, u.GetName(), u.GetAPIVersion())
	}
	if u.GetName() == "" {
		return fmt.Errorf("%s: a %s has no name", file, crdKind)
	}
	// The server writes it, and what generators leave of it is no status.
	unstructured.RemoveNestedField(object, "status")
	unstructured.RemoveNestedField(object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(object, "metadata", "namespace")
	into[u.GetName()] = u
	return nil
}

func oneLine(err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}

// maxSwitches is how many switches are worth being read.
const maxSwitches = 5

// Switches are the values of the chart that look as if they switched its CRDs
// on, as path: value, for an override that does not. Only true and false are
// shown.
func (c *Chart) Switches() []string {
	values, err := util.CoalesceValues(c.chart, c.values)
	if err != nil {
		values = c.values
	}
	var all []string
	walk("", values, false, &all)
	slices.Sort(all)
	return all[:min(len(all), maxSwitches)]
}

func walk(at string, values map[string]any, named bool, into *[]string) {
	for key, value := range values {
		name := strings.TrimPrefix(at+"."+key, ".")
		hit := named || strings.Contains(strings.ToLower(key), "crd") || strings.Contains(strings.ToLower(key), "customresource")
		switch value := value.(type) {
		case bool:
			if hit {
				*into = append(*into, fmt.Sprintf("%s: %t", name, value))
			}
		case map[string]any:
			walk(name, value, hit, into)
		case common.Values:
			walk(name, value, hit, into)
		}
	}
}
