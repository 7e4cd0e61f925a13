// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/printers"
	"github.com/kubestandup/kubestandup/pkg/standup"
)

// reportFile is where --report goes. The zero value is nowhere.
type reportFile struct{ path string }

// newReportFile says what is wrong with a name before anything has run.
func newReportFile(path string) (reportFile, error) {
	if path == "" {
		return reportFile{}, nil
	}
	switch filepath.Ext(path) {
	case ".json", ".xml":
	default:
		return reportFile{}, fmt.Errorf("--report %s: the name says in which form, and has to end in .json, or in .xml for JUnit", path)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return reportFile{}, fmt.Errorf("--report %s: there is no directory %s", path, filepath.Dir(path))
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return reportFile{}, fmt.Errorf("--report %s is a directory", path)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // what a link leads to is replaced, not the link
	}
	probe, err := os.CreateTemp(filepath.Dir(path), ".standup-*")
	if err != nil {
		return reportFile{}, fmt.Errorf("--report %s cannot be written: %w", path, err)
	}
	return reportFile{path}, errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// write replaces the file as a whole: a reader never finds half of a report.
func (r reportFile) write(report *standup.Report) error {
	if r.path == "" {
		return nil
	}
	var b bytes.Buffer
	var err error
	if strings.HasSuffix(r.path, ".xml") {
		err = report.WriteJUnit(&b)
	} else {
		err = printers.PrintObject(&b, "json", report)
	}
	if err != nil {
		return fmt.Errorf("--report %s: %w", r.path, err)
	}
	temporary, err := os.CreateTemp(filepath.Dir(r.path), "."+filepath.Base(r.path)+"-*")
	if err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	defer os.Remove(temporary.Name()) // it is gone when all went well
	_, err = temporary.Write(b.Bytes())
	if closed := temporary.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temporary.Name(), r.path)
	}
	if err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	return nil
}
