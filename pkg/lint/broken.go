// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubestandup/kubestandup/pkg/chart"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// certain is true of what the controllers fail at too.
func (s *shelf) certain(b *chart.BrokenError) bool {
	return b.Guess == "" && s.checkedOut(b.Source)
}

// checkedOut is true of a source whose artifact is the working tree, and all of
// it: not another branch, and nothing that git or other sources add.
func (s *shelf) checkedOut(source flux.Ref) bool {
	root, o := s.source(s.cluster.Source), s.source(source)
	if coldstart.Key(source) != coldstart.Key(s.cluster.Source) && (root == nil || o == nil || !reflect.DeepEqual(nested(root, "ref"), nested(o, "ref"))) {
		return false
	}
	return o == nil || nested(o, "include") == nil && nested(o, "sparseCheckout") == nil && nested(o, "recurseSubmodules") != true
}

func (s *shelf) source(r flux.Ref) *unstructured.Unstructured {
	r.APIVersion = flux.SourceGroup
	return s.objects[r]
}

// nested is a field of the spec, nil where it is not there.
func nested(o *unstructured.Unstructured, field string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", field)
	return value
}

// uninstallable reports the HelmReleases of the cluster whose charts the
// controllers can do nothing with. dir is the root of the repository.
func (s *shelf) uninstallable(subject *Subject, dir string, all []*released) []finding.Finding {
	l := newLook(subject)
	var found []finding.Finding
	for _, r := range all {
		if s.certain(r.broken) && nested(r.Unstructured, "suspend") != true && !l.spec(r.tier).Suspend {
			found = append(found, s.reportBroken(l, dir, r))
		}
	}
	return found
}

func (s *shelf) reportBroken(l *look, dir string, r *released) finding.Finding {
	b, severity := r.broken, finding.Error
	at := l.place(r.tier, r.Ref())
	message := fmt.Sprintf("%s is never installed: source-controller cannot pack its chart: %v", r.Ref(), b.Err)
	fix := fmt.Sprintf("Mend the chart, or spec.chart of %s.", at)
	folder := path.Join(s.base(b.Source), b.Path)
	switch {
	case b.Rendered:
		message = fmt.Sprintf("%s is never installed: its chart, path %s of %s, does not render: %v", r.Ref(), b.Path, b.Source, b.Err)
		fix = fmt.Sprintf("Mend what the message names, or give the values that it asks for in spec.values of %s; Helm stops at the first mistake, as this does.", at)
	case b.Absent:
		fix = fmt.Sprintf("Commit the chart to %s, or mend spec.chart.spec.chart of %s: it is relative to the root of the source.", folder, at)
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(folder))); err == nil {
			// git may hold it all the same.
			severity = finding.Warning
			fix = fmt.Sprintf("%s is in the working tree, but .gitignore, .sourceignore or spec.ignore leaves it out of the source, and so does a symbolic link: take it out of what is ignored.", folder)
		}
	}
	f := l.report(chartFailed, severity, r.tier, r.Ref(), message)
	f.Fix = fix
	f.Causes = []string{at + " names the chart"}
	if l.spec(r.tier).Wait || l.checks(r.tier, r.Ref()) {
		cause := fmt.Sprintf("%s waits for it, and never becomes Ready", l.name(r.tier))
		if n := l.below(r.tier); n > 0 {
			cause += fmt.Sprintf("; the %s below %s down", finding.Count(n, "tier"), finding.Verb(n, "stays", "stay"))
		}
		f.Causes = append(f.Causes, cause)
	}
	if b.File != "" && coldstart.Key(b.Source) == coldstart.Key(s.cluster.Source) {
		f.File, f.Line = path.Join(s.base(b.Source), b.File), b.Line
	}
	return f
}

// base is the folder of the repository that a source is made from.
func (s *shelf) base(source flux.Ref) string {
	if coldstart.Key(source) == coldstart.Key(s.cluster.Source) {
		return s.cluster.Base
	}
	return ""
}
