// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"cmp"
	"regexp"
	"strconv"

	"github.com/Masterminds/semver/v3"
)

var numbers = regexp.MustCompile(`([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?`)

// most stands for a number that no version reaches.
const most = 9999

// newest is about where the newest version in a range is, nil for what is no
// range. Which versions there are only a repository knows; here it is enough to
// fall on the right side of the bounds of a row.
func newest(version string) *semver.Version {
	if v, err := semver.StrictNewVersion(version); err == nil {
		return v
	}
	in, err := semver.NewConstraint(cmp.Or(version, "*"))
	if err != nil {
		return nil
	}
	candidates := [][3]int64{{most, most, most}}
	for _, n := range numbers.FindAllStringSubmatch(version, -1) {
		major, minor, patch := number(n[1]), number(n[2]), number(n[3])
		// The last of its minor, of its major, and the last before it.
		candidates = append(candidates,
			[3]int64{major, most, most}, [3]int64{major, minor, most}, [3]int64{major, minor, patch},
			[3]int64{major, minor, patch - 1}, [3]int64{major, minor - 1, most}, [3]int64{major - 1, most, most})
	}
	var best *semver.Version
	for _, c := range candidates {
		if min(c[0], c[1], c[2]) < 0 {
			continue
		}
		v := semver.New(uint64(c[0]), uint64(c[1]), uint64(c[2]), "", "")
		if in.Check(v) && (best == nil || v.GreaterThan(best)) {
			best = v
		}
	}
	return best
}

// number is 0 for what is absent; what does not fit is more than most.
func number(s string) int64 {
	n, err := strconv.ParseInt(cmp.Or(s, "0"), 10, 32)
	if err != nil {
		return most + 1
	}
	return n
}
