// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// virtual is true for what belongs to a system whose objects hold the disks of
// virtual machines, or run them.
func virtual(group string) bool {
	return group == "kubevirt.io" || strings.HasSuffix(group, ".kubevirt.io")
}

// refusal is why data may be lost, empty when none can be, or every object
// that holds some was named.
func (w *World) refusal(act string) string {
	if w.Data.Unknown != "" {
		return fmt.Sprintf("%s may lose data, and which VirtualMachineInstances and DataVolumes there are could not be read: %s", act, w.Data.Unknown)
	}
	var open []string
	for _, d := range w.Data.Objects {
		if !w.allows(d.Ref) {
			open = append(open, "--allow "+Arg(d.Ref))
		}
	}
	if len(open) == 0 {
		return ""
	}
	return fmt.Sprintf("%s would endanger %s. Save what they hold and delete them, or name each that may be lost: %s",
		act, counted(len(open), "object that holds data", "objects that hold data"), strings.Join(shortened(open, 20), " "))
}

// imports are the objects that data is being written into.
func (d Data) imports() []Datum {
	return slices.DeleteFunc(slices.Clone(d.Objects), func(o Datum) bool { return !o.InFlight })
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// shortened cuts a list that nobody would read to its end, and says so.
func shortened(words []string, most int) []string {
	if len(words) <= most {
		return words
	}
	return append(slices.Clone(words[:most]), fmt.Sprintf("… and %d more", len(words)-most))
}

// named joins the names of objects for a sentence.
func named(refs []flux.Ref, most int) string {
	words := make([]string, 0, len(refs))
	for _, r := range refs {
		words = append(words, r.String())
	}
	return strings.Join(shortened(words, most), ", ")
}
