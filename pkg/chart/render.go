// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/chartutil"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	helmutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	crdKind  = "CustomResourceDefinition"
	crdGroup = "apiextensions.k8s.io"
	notes    = "NOTES.txt"
)

// Definitions renders the chart as helm-controller would install it, with
// override laid over the values, and returns the CustomResourceDefinitions:
// those of crds/ folders, those of templates and those that are hooks, each
// once, by name. They have no mark of the release on them but what the
// templates write.
//
// The chart is used up: it is rendered once. An error names the file and holds
// no value of a Secret; it is a *SlowError where ctx has a deadline and a
// template runs beyond it, and a *MemoryError, of which Render says more.
func (c *Chart) Definitions(ctx context.Context, server Server, override map[string]any) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	err := c.inTime(ctx, func(r *rendering) (err error) {
		all, err = c.definitions(r, server, override)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

func (c *Chart) definitions(r *rendering, server Server, override map[string]any) ([]*unstructured.Unstructured, error) {
	over, err := plain(override)
	if err != nil {
		return nil, fmt.Errorf("the override's values: %w", err)
	}
	c.values = chartutil.MergeMaps(c.values, over)
	if err := c.enable(server); err != nil {
		return nil, err
	}
	files, err := c.files(r, server)
	if err != nil {
		return nil, err
	}
	found := map[string]*unstructured.Unstructured{}
	if err := c.folders(found); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := collect(name, files[name], found); err != nil {
			return nil, err
		}
	}
	return byName(found), nil
}

// enable takes out the dependencies that the values switch off.
func (c *Chart) enable(server Server) error {
	caps, err := server.capabilities()
	if err != nil {
		return err
	}
	if wants := c.chart.Metadata.KubeVersion; wants != "" && !helmutil.IsCompatibleRange(wants, caps.KubeVersion.String()) {
		return fmt.Errorf("it requires Kubernetes %s and the server is %s", wants, server.Version)
	}
	if err := helmutil.ProcessDependencies(c.chart, c.values); err != nil {
		return &refusedError{err}
	}
	for left := []*helmchart.Chart{c.chart}; len(left) > 0; left = left[1:] {
		for _, d := range left[0].Metadata.Dependencies {
			name := cmp.Or(d.Alias, d.Name)
			has := slices.ContainsFunc(left[0].Dependencies(), func(each *helmchart.Chart) bool { return each.Name() == name })
			if remote := c.missing[name]; remote != nil && !has {
				remote.Release = c.Release
				return remote
			}
		}
		left = append(left, left[0].Dependencies()...)
	}
	return nil
}

// folders are the CustomResourceDefinitions of crds/ folders, by name.
func (c *Chart) folders(into map[string]*unstructured.Unstructured) error {
	for _, crd := range c.chart.CRDObjects() {
		if err := collect(crd.Filename, string(crd.File.Data), into); err != nil {
			return err
		}
	}
	return nil
}

// maxRendered is in bytes. A release that is larger does not fit into the Secret
// that Helm keeps it in, by far.
const maxRendered = 64 << 20

// files are what the templates make, by the template's name.
func (c *Chart) files(r *rendering, server Server) (map[string]string, error) {
	caps, err := server.capabilities()
	if err != nil {
		return nil, err
	}
	skipSchema := c.object.Spec.Install != nil && c.object.Spec.Install.DisableSchemaValidation
	options := common.ReleaseOptions{
		Name: c.releaseName(), Namespace: c.object.GetReleaseNamespace(), Revision: 1, IsInstall: true,
	}
	values, err := util.ToRenderValuesWithSchemaValidation(c.chart, c.values, options, caps, skipSchema)
	if err != nil {
		return nil, &refusedError{err}
	}
	mark(c.chart)
	files, err := engine.Engine{CustomTemplateFuncs: r.functions()}.Render(c.chart, values)
	if err != nil {
		return nil, &refusedError{err}
	}
	size := 0
	for name, text := range files {
		if size += len(text); size > maxRendered {
			return nil, fmt.Errorf("its templates make more than %d MiB", maxRendered>>20)
		}
		// Helm's own test, and what partials leave (pkg/action action.go
		// renderResources, pkg/release/v1/util manifest_sorter.go).
		if strings.HasSuffix(name, notes) || strings.HasPrefix(path.Base(name), "_") || strings.HasSuffix(name, marks) {
			delete(files, name)
		}
	}
	return files, nil
}

func byName(all map[string]*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.SortedFunc(maps.Values(all), func(a, b *unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) })
}

// plain gives values the types that Helm reads from YAML.
func plain(values map[string]any) (common.Values, error) {
	text, err := yaml.Marshal(values)
	if err != nil {
		return nil, err
	}
	return common.ReadValues(text)
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
