// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// lies is where a chart lies in the tree of a source.
type lies struct {
	source flux.Ref
	// path is relative to the root of the tree, with slashes.
	path string
	tree *build.Tree
}

// BrokenError says that a chart which lies in the repository is not installed:
// source-controller cannot pack it, or helm-controller cannot render it.
type BrokenError struct {
	Release flux.Ref
	// Source has the chart at Path, which is relative to the root of its tree,
	// with slashes.
	Source flux.Ref
	Path   string
	// File is the file of the chart that is wrong, as Path; empty where it is
	// the HelmRelease, or where that is not known. Line counts from 1.
	File string
	Line int
	// Absent is true where nothing lies at Path.
	Absent bool
	// Rendered is true where the chart can be packed, and does not render.
	Rendered bool
	// Guess says on what it rests that is not known here; empty where the
	// controllers fail for certain.
	Guess string
	// Definitions are the CRDs of crds/ folders, which helm-controller applies
	// before it renders the chart.
	Definitions []*unstructured.Unstructured
	Err         error
}

func (e *BrokenError) Error() string {
	guess := ""
	if e.Guess != "" {
		guess = " " + e.Guess
	}
	if e.Rendered {
		return fmt.Sprintf("chart %s of %s, of %s, cannot be rendered%s: %v", e.Path, e.Source, e.Release, guess, e.Err)
	}
	return fmt.Sprintf("chart of %s%s: %v", e.Release, guess, e.Err)
}

func (e *BrokenError) Unwrap() error { return e.Err }

// guessError marks what is an error here and may be none of source-controller's.
type guessError struct{ error }

func (e *guessError) Unwrap() error { return e.error }

// refusedError marks what Helm does not render, in words of its own.
type refusedError struct{ error }

func (e *refusedError) Unwrap() error { return e.error }

// broken is what keeps a chart of the working tree from being packed. What is
// wrong with a chart that is elsewhere, and what is wrong on a cluster, is as it
// was.
func (c *Charts) broken(ctx context.Context, l *lies, err error) error {
	if _, remote := errors.AsType[*RemoteError](err); remote || c.offline == nil || ctx.Err() != nil {
		return err
	}
	b := &BrokenError{Source: l.source, Path: l.path, Err: oneLine(err), Absent: !l.has(l.path)}
	if _, guess := errors.AsType[*guessError](err); guess {
		b.Guess = "as far as is known"
	}
	for _, name := range []string{chartFile, valuesFile} {
		if strings.Contains(err.Error(), name) && l.has(path.Join(l.path, name)) {
			b.File, b.Line = path.Join(l.path, name), 1
			break
		}
	}
	return b
}

func (l *lies) has(file string) bool {
	name, err := l.tree.Path(file)
	if err != nil {
		return false
	}
	_, err = os.Stat(name)
	return err == nil
}

// unrendered is what keeps a chart of the working tree from being rendered.
func (c *Chart) unrendered(r *rendering, refused *refusedError) error {
	b := &BrokenError{
		Release: c.Release, Source: c.lies.source, Path: c.lies.path, Rendered: true,
		Err: c.hidden.redact(oneLine(refused.error)), Guess: c.guess(),
	}
	switch {
	case b.Guess != "":
	case r.looked.Load():
		b.Guess = "where nothing of what it looks up is on the cluster"
	case r.refused.Load():
		b.Guess = "in the memory that it may take here"
	}
	b.File, b.Line = c.place(b.Err.Error())
	definitions := map[string]*unstructured.Unstructured{}
	if err := c.folders(definitions); err != nil {
		return b
	}
	b.Definitions = byName(definitions)
	return b
}

// guess says which values are not known.
func (c *Chart) guess() string {
	if len(c.Unknown) > 0 {
		return fmt.Sprintf("without the values of %s, which are not known", c.Unknown[0])
	}
	spec, err := json.Marshal(c.object.Spec)
	if text := string(spec) + fmt.Sprint(map[string]any(c.values)); err != nil || build.IsUnknown(text) || strings.Contains(text, cipherText) {
		return "with values that only the cluster has"
	}
	return ""
}

// place is the template that a message of Helm's names.
func (c *Chart) place(message string) (file string, line int) {
	named := regexp.MustCompile(regexp.QuoteMeta(c.chart.Name()) + `/([^\s:()"<>]+)(?::(\d+))?`)
	for _, match := range named.FindAllStringSubmatch(message, -1) {
		if file = path.Join(c.lies.path, match[1]); c.lies.has(file) {
			line, _ = strconv.Atoi(match[2])
			return file, max(line, 1)
		}
	}
	return "", 0
}

// Doubt says whether a chart that cannot be rendered may be on another server
// than this one: of another version, or with other kinds. It is empty where the
// chart is rendered on none that it is for. The chart is loaded again for each.
// The error is a *SlowError or a *MemoryError.
func (c *Charts) Doubt(ctx context.Context, broken *Chart, server Server) (string, error) {
	asks := broken.templates()
	if !strings.Contains(asks, "Capabilities") {
		return "", nil
	}
	// Each of these says what it asks for; what is handed on, it does not.
	plain := regexp.MustCompile("Capabilities\\.(KubeVersion|HelmVersion|APIVersions\\.Has\\s*\\(?\\s*[\"`][^\"`]+[\"`])")
	if strings.Count(asks, "Capabilities") != len(plain.FindAllString(asks, -1)) {
		return "on this server, which its templates ask what it serves", nil
	}
	more := server
	more.Kinds = slices.Concat(server.Kinds, AskedKinds(broken.Asks()))
	for _, version := range []string{server.Version, "v1.32.0", "v1.28.0", "v1.24.0"} {
		for _, other := range []Server{server, more} {
			other.Version = version
			again, err := c.Load(ctx, broken.Release.Namespace, broken.Release.Name)
			if err == nil {
				_, err = again.Render(ctx, other)
			}
			_, slow := errors.AsType[*SlowError](err)
			_, large := errors.AsType[*MemoryError](err)
			switch {
			case slow || large || ctx.Err() != nil:
				return "", err
			case err == nil:
				return "on this server, of which its templates ask the version and the kinds", nil
			}
		}
	}
	return "", nil
}

// templates are the texts of all that the chart may render.
func (c *Chart) templates() string {
	var all strings.Builder
	for left := []*helmchart.Chart{c.chart}; len(left) > 0; left = append(left[1:], left[0].Dependencies()...) {
		for _, t := range left[0].Templates {
			if t != nil {
				all.Write(t.Data)
				all.WriteByte('\n')
			}
		}
	}
	return all.String()
}
