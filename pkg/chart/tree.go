// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
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
	loaded, err := loadFolder(tree, want.Spec.Chart)
	if err != nil {
		return nil, fmt.Errorf("path %s of %s: %w", want.Spec.Chart, at, err)
	}
	if err := mergeFiles(loaded, want, func(name string) ([]byte, error) { return readFile(tree, name) }); err != nil {
		return nil, fmt.Errorf("chart %s of %s: %w", want.Spec.Chart, at, err)
	}
	if err := revise(loaded, want, a.Revision); err != nil {
		return nil, err
	}
	return &found{loaded, fmt.Sprintf("path %s of %s at %s", want.Spec.Chart, at, a.Revision)}, nil
}

// loadFolder loads a chart with the dependencies that lie beside it.
func loadFolder(tree *build.Tree, name string) (*helmchart.Chart, error) {
	path, err := tree.Path(name)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, errors.New("it is not there")
	}
	loaded, err := loader.Load(path)
	if err != nil {
		return nil, relative(err, path)
	}
	vendored := map[string]bool{}
	for _, d := range loaded.Dependencies() {
		vendored[d.Name()] = true
	}
	for _, d := range loaded.Metadata.Dependencies {
		if vendored[d.Name] {
			continue
		}
		beside, local := strings.CutPrefix(d.Repository, "file://")
		if !local {
			return nil, fmt.Errorf("it depends on chart %s of %s, which source-controller fetches when it packs it: "+
				"let Flux reconcile the HelmRelease first, or commit the dependency (helm dependency build)", d.Name, withoutUser(d.Repository))
		}
		dependency, err := loadFolder(tree, filepath.Join(name, beside))
		if err != nil {
			return nil, fmt.Errorf("its dependency %s: %w", d.Name, err)
		}
		loaded.AddDependency(dependency)
	}
	return loaded, loaded.Validate()
}

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
