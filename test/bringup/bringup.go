// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package bringup is the GitOps repository that the demo and the tests bring up
// from cold: the incident of the second-order kinds, and around it what else a
// bring-up meets.
package bringup

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed all:base
var base embed.FS

//go:embed all:extension
var extension embed.FS

// AgeKey decrypts the one Secret of the extended repository. It was made for
// that and protects nothing.
const AgeKey = "AGE-SECRET-KEY-1ZUA82G7V6LCL9SCRGV954QE9PLVWDTEYCHL9Q0J6ZPARW0RWDZYQ5ZW97W"

// SecretValue is what is encrypted there: no output may ever hold it.
const SecretValue = "marker-of-a-secret-value"

// Suspended are the tiers of the extended repository that somebody has
// suspended on the cluster, as a person does who wants to come back later. One
// of them is held on purpose, and another is blocked by a placeholder.
func Suspended() []string {
	return []string{"observability", "dashboards", "alerts", "playground", "backup-store"}
}

// Base is the repository of the incident. cdi is CDI's own install, which comes
// out of its module.
func Base(cdi string) (map[string]string, error) {
	files := map[string]string{"platform/cdi-operator.yaml": cdi}
	return files, add(files, base, "base")
}

// Extended is the same repository with HelmReleases, a chart whose CRDs are
// switched off, a tree that is suspended, a placeholder and an encrypted Secret.
func Extended(cdi string) (map[string]string, error) {
	files, err := Base(cdi)
	if err != nil {
		return nil, err
	}
	for i := range definitionCount {
		files[fmt.Sprintf("charts/policy-engine/templates/crd-%d.yaml", i)] = definition(i)
	}
	return files, add(files, extension, "extension")
}

func add(files map[string]string, from fs.FS, root string) error {
	return fs.WalkDir(from, root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(from, path)
		files[strings.TrimPrefix(path, root+"/")] = string(text)
		return err
	})
}

// The bundle is 5.6 MiB in eight definitions. One of them is more than any
// annotation holds, and none more than etcd takes.
const (
	definitionCount = 8
	definitionBytes = 5_600 << 10 / definitionCount
)

// definition is the template of one CRD, behind the switch. Helm takes no file
// of more than 5 MiB.
func definition(i int) string {
	kind, plural := "ClusterRule", "clusterrules"
	if i > 0 {
		kind, plural = fmt.Sprintf("ClusterRule%d", i), fmt.Sprintf("clusterrule%ds", i)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `{{- if .Values.crds.install }}
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %s.policy.example.org
spec:
  group: policy.example.org
  names:
    kind: %s
    plural: %s
  scope: Cluster
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                rules:
                  type: object
                  properties:
`, plural, kind, plural)
	sentence := strings.Repeat("What this field asks for is explained at length, as such bundles do. ", 32)
	for field := 0; b.Len() < definitionBytes; field++ {
		fmt.Fprintf(&b, "                    field%03d:\n                      type: string\n                      description: %q\n", field, sentence)
	}
	b.WriteString("{{- end }}\n")
	return b.String()
}
