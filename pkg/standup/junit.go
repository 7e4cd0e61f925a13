// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/finding"
)

// The parts of JUnit's format that CI systems read: a suite for each step, a
// case for each check.
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name      string       `xml:"name,attr"`
	ClassName string       `xml:"classname,attr"`
	Failure   *junitReason `xml:"failure,omitempty"`
	Error     *junitReason `xml:"error,omitempty"`
	Skipped   *struct{}    `xml:"skipped,omitempty"`
	Out       string       `xml:"system-out,omitempty"`
}

type junitReason struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes the report as CI systems read it. What is information alone
// is no failure.
func (r *Report) WriteJUnit(w io.Writer) error {
	all := junitSuites{Name: "kubectl standup " + r.Server.URL}
	for i := range r.Steps {
		suite := suiteOf(&r.Steps[i])
		all.Tests += suite.Tests
		all.Failures += suite.Failures
		all.Errors += suite.Errors
		all.Skipped += suite.Skipped
		all.Suites = append(all.Suites, suite)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func suiteOf(s *StepReport) junitSuite {
	suite := junitSuite{Name: s.Name, Time: fmt.Sprintf("%.3f", s.Seconds)}
	class := "standup." + s.Name
	for i := range s.Checks {
		suite.Cases = append(suite.Cases, caseOf(class, &s.Checks[i]))
	}
	switch s.Result {
	case Skipped:
		suite.Cases = append(suite.Cases, junitCase{Name: s.Name, ClassName: class, Skipped: &struct{}{}})
	case Failed:
		suite.Cases = append(suite.Cases, junitCase{Name: s.Name, ClassName: class, Error: &junitReason{Message: s.Error, Type: "failed"}})
	}
	for _, c := range suite.Cases {
		suite.Tests++
		switch {
		case c.Failure != nil:
			suite.Failures++
		case c.Error != nil:
			suite.Errors++
		case c.Skipped != nil:
			suite.Skipped++
		}
	}
	return suite
}

func caseOf(class string, c *Check) junitCase {
	out := junitCase{Name: c.Name, ClassName: class, Out: c.Message}
	var lines []string
	for _, f := range c.Findings {
		line := fmt.Sprintf("%s %s: %s", f.Severity, f.Rule, f.Message)
		for _, cause := range f.Causes {
			line += "\n  seen: " + cause
		}
		if f.Fix != "" {
			line += "\n  fix: " + f.Fix
		}
		lines = append(lines, line)
		if f.Severity != finding.Info && out.Failure == nil {
			out.Failure = &junitReason{Message: f.Message, Type: f.Rule}
		}
	}
	if out.Failure != nil {
		out.Failure.Text = strings.Join(lines, "\n")
		return out
	}
	out.Out = strings.TrimSpace(strings.Join(append([]string{out.Out}, lines...), "\n"))
	return out
}
