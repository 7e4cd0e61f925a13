// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// maxNodes is how many values a file may stand for once its aliases are
// replaced. The largest CRD bundles hold some hundred thousand.
const maxNodes = 5_000_000

// checkAliases refuses a file whose YAML aliases stand for more than any
// manifest holds. kustomize copies what an alias stands for each time that it
// is named, so a file of one kilobyte can take all memory. What does not parse
// is left for kustomize to report.
func checkAliases(name string, content []byte) error {
	if bytes.IndexByte(content, '&') < 0 || bytes.IndexByte(content, '*') < 0 {
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var document yaml.Node
		if err := decoder.Decode(&document); err != nil {
			return nil // the end of the file, or as above
		}
		if nodes(&document, map[*yaml.Node]int{}) > maxNodes {
			return fmt.Errorf("%s: its YAML aliases stand for more than %d values, which no manifest holds", name, maxNodes)
		}
	}
}

// nodes is the number of nodes below n, and n itself, with aliases replaced.
// It stops counting beyond the limit. A node that contains itself counts as
// more than the limit.
func nodes(n *yaml.Node, known map[*yaml.Node]int) int {
	if n.Kind == yaml.AliasNode {
		return nodes(n.Alias, known)
	}
	if count, ok := known[n]; ok {
		return count
	}
	known[n] = maxNodes + 1 // as long as it is being counted
	count := 1
	for _, child := range n.Content {
		if count += nodes(child, known); count > maxNodes {
			count = maxNodes + 1
			break
		}
	}
	known[n] = count
	return count
}

// checkManifests looks at the manifests that Flux would generate a
// kustomization file from. It does nothing where there is one.
func (t *Tree) checkManifests(dir string) error {
	if hasKustomization(dir) {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if path != dir && hasKustomization(path) {
				return filepath.SkipDir
			}
			return nil
		}
		if extension := filepath.Ext(path); extension != ".yaml" && extension != ".yml" {
			return nil
		}
		content, err := os.ReadFile(path) // below the tree's own root, which holds no links
		if err != nil {
			return err
		}
		return checkAliases(t.relative(path), content)
	})
}
