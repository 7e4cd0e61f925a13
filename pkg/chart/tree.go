// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/transform"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// fromTree loads the chart that lies in a source's artifact, as a folder or
// packaged (source-controller internal/helm/chart builder_local.go).
func (c *Charts) fromTree(ctx context.Context, at flux.Ref, a *meta.Artifact, want *sourcev1.HelmChart) (*found, error) {
	if a == nil {
		return nil, fmt.Errorf("source %s: %w", at, build.ErrNoArtifact)
	}
	tree, err := c.artifacts.Fetch(ctx, sourceOf(at, a))
	if err != nil {
		return nil, err
	}
	return c.fromFolder(ctx, at, tree, a.Revision, want)
}

// fromFolder loads the chart that lies in a tree. revision is empty where there
// is none yet.
func (c *Charts) fromFolder(ctx context.Context, at flux.Ref, tree *build.Tree, revision string, want *sourcev1.HelmChart) (*found, error) {
	f := folders{charts: c, tree: tree, missing: map[string]*RemoteError{}}
	lies := &lies{source: at, path: build.InTree(filepath.ToSlash(want.Spec.Chart)), tree: tree}
	loaded, err := f.load(ctx, want.Spec.Chart)
	if err != nil {
		return nil, c.broken(ctx, lies, fmt.Errorf("path %s of %s: %w", want.Spec.Chart, at, err))
	}
	if err := mergeFiles(loaded, want, func(name string) ([]byte, error) { return readFile(tree, name) }); err != nil {
		return nil, c.broken(ctx, lies, fmt.Errorf("chart %s of %s: %w", want.Spec.Chart, at, err))
	}
	if err := revise(loaded, want, revision); err != nil {
		return nil, c.broken(ctx, lies, err)
	}
	origin := fmt.Sprintf("path %s of %s", want.Spec.Chart, at)
	if revision != "" {
		origin += " at " + revision
	}
	return &found{chart: loaded, origin: origin, missing: f.missing, lies: lies}, nil
}

// fromRoot loads the chart that is all of a tree, in a folder of its own as Helm
// packs it or without one.
func (c *Charts) fromRoot(ctx context.Context, at flux.Ref, tree *build.Tree, err error) (*found, error) {
	if err != nil {
		return nil, err
	}
	root, err := tree.Path(".")
	if err != nil {
		return nil, err
	}
	name := "."
	if inside, err := filepath.Glob(filepath.Join(root, "*", chartFile)); err == nil && len(inside) == 1 {
		if _, err := os.Stat(filepath.Join(root, chartFile)); err != nil {
			name = filepath.Base(filepath.Dir(inside[0]))
		}
	}
	f := folders{charts: c, tree: tree, missing: map[string]*RemoteError{}}
	loaded, err := f.load(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	return &found{chart: loaded, origin: "the files of " + at.String(), missing: f.missing}, nil
}

// chartFile is what makes a folder a chart.
const (
	chartFile  = "Chart.yaml"
	valuesFile = "values.yaml"
)

// maxNested bounds how deep dependencies lie in each other: one may name itself.
const maxNested = 16

// folders loads charts out of a tree, with the dependencies that lie beside
// them.
type folders struct {
	charts *Charts
	tree   *build.Tree
	depth  int
	// locked is true where a Chart.lock says where dependencies are.
	locked bool
	// missing gets the dependencies that could not be had.
	missing map[string]*RemoteError
}

func (f *folders) load(ctx context.Context, name string) (*helmchart.Chart, error) {
	if f.depth++; f.depth > maxNested {
		return nil, fmt.Errorf("its dependencies lie more than %d deep in each other", maxNested)
	}
	defer func() { f.depth-- }()
	path, err := f.tree.Path(name)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, errNotThere
	}
	loaded, err := loader.Load(path)
	if err != nil {
		return nil, relative(err, path)
	}
	vendored := map[string]bool{}
	for _, d := range loaded.Dependencies() {
		vendored[d.Name()] = true
	}
	if loaded.Metadata == nil { // Validate says so
		return loaded, loaded.Validate()
	}
	f.locked = loaded.Lock != nil
	for _, d := range loaded.Metadata.Dependencies {
		if d == nil || vendored[d.Name] {
			continue
		}
		dependency, err := f.dependency(ctx, name, d)
		if err != nil {
			return nil, err
		}
		if dependency != nil {
			vendored[d.Name] = true // an alias is of the same chart
			loaded.AddDependency(dependency)
		}
	}
	return loaded, loaded.Validate()
}

// dependency is nil for one that is elsewhere, and may not be needed.
func (f *folders) dependency(ctx context.Context, name string, d *helmchart.Dependency) (*helmchart.Chart, error) {
	if beside, local := strings.CutPrefix(d.Repository, "file://"); local {
		dependency, err := f.load(ctx, filepath.Join(name, beside))
		switch {
		case err != nil && f.depth > 1:
			// source-controller leaves out the dependencies of dependencies.
			return nil, &guessError{fmt.Errorf("its dependency %s: %w", d.Name, err)}
		case err != nil:
			return nil, fmt.Errorf("its dependency %s: %w", d.Name, err)
		}
		return dependency, nil
	}
	if d.Repository == "" && !f.locked {
		return nil, fmt.Errorf("its dependency %s has no repository, and does not lie in charts/", d.Name)
	}
	if f.charts.offline == nil {
		return nil, fmt.Errorf("it depends on chart %s of %s, which source-controller fetches when it packs it: "+
			"let Flux reconcile the HelmRelease first, or commit the dependency (helm dependency build)", d.Name, withoutUser(d.Repository))
	}
	dependency, err := f.charts.remoteDependency(ctx, d)
	var remote *RemoteError
	if errors.As(err, &remote) {
		remote.Key = cmp.Or(d.Alias, d.Name)
		f.missing[remote.Key] = remote
		return nil, nil
	}
	return dependency, err
}

var errNotThere = errors.New("it is not there")

// relative keeps the place of the tree on this machine out of the message.
func relative(err error, path string) error {
	text := strings.ReplaceAll(err.Error(), path+string(filepath.Separator), "")
	return errors.New(strings.ReplaceAll(text, path, "it"))
}

func readFile(tree *build.Tree, name string) ([]byte, error) {
	path, err := tree.Path(name)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, relative(err, path)
	}
	return content, nil
}

// fileOf reads a file of the chart itself.
func fileOf(chart *helmchart.Chart) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		name = filepath.ToSlash(filepath.Clean(name))
		for _, f := range chart.Raw {
			if f.Name == name {
				return f.Data, nil
			}
		}
		return nil, nil
	}
}

// mergeFiles replaces the chart's own values by those of spec.valuesFiles, in
// their order (source-controller mergeChartValues, mergeFileValues,
// OverwriteChartDefaultValues). read returns nil for a file that is not there.
func mergeFiles(chart *helmchart.Chart, want *sourcev1.HelmChart, read func(string) ([]byte, error)) error {
	if len(want.Spec.ValuesFiles) == 0 {
		return nil
	}
	merged := map[string]any{}
	for _, name := range want.Spec.ValuesFiles {
		content, err := read(name)
		if err != nil {
			return err
		}
		if content == nil {
			if want.Spec.IgnoreMissingValuesFiles {
				continue
			}
			return fmt.Errorf("its valuesFiles name %s, which is not there", name)
		}
		values := map[string]any{}
		if err := yaml.Unmarshal(content, &values); err != nil {
			return fmt.Errorf("its values file %s is no YAML object: %w", name, err)
		}
		merged = transform.MergeMaps(merged, values)
	}
	if content, err := fileOf(chart)(valuesFile); err != nil || content == nil {
		return errors.Join(err, errors.New("its valuesFiles take the place of values.yaml, and it has none"))
	}
	// source-controller packs them as text, which helm-controller reads.
	text, err := yaml.Marshal(merged)
	if err != nil {
		return err
	}
	chart.Values, err = loader.LoadValues(bytes.NewReader(text))
	return err
}

// revise sets the version with which source-controller packs the chart
// (helmchart_controller.go buildFromTarballArtifact, buildFromHelmRepository).
func revise(chart *helmchart.Chart, want *sourcev1.HelmChart, revision string) error {
	var metadata []string
	if revision != "" && want.Spec.ReconcileStrategy == sourcev1.ReconcileStrategyRevision {
		hex := revision[strings.LastIndexAny(revision, ":/")+1:]
		metadata = append(metadata, hex[:min(len(hex), shortRevision)])
	}
	if len(want.Spec.ValuesFiles) > 0 {
		metadata = append(metadata, strconv.FormatInt(want.Generation, 10))
	}
	if len(metadata) == 0 {
		return nil
	}
	var err error
	chart.Metadata.Version, err = withMetadata(chart.Metadata.Version, strings.Join(metadata, "."))
	return err
}
