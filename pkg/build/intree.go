// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"cmp"
	"path"
	"strings"
)

// InTree is a path, as Flux writes it, as the name of what it leads to in a tree,
// with slashes: "." for the root, out of which none leads.
func InTree(written string) string {
	return cmp.Or(strings.TrimPrefix(path.Clean("/"+written), "/"), ".")
}
