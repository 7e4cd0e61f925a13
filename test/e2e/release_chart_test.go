// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/kubestandup/kubestandup/test/cluster"
)

// chartsNamespace has the repository that all charts come from.
const chartsNamespace = "charts"

// releaseCharts are two charts: one with a little of everything, and one whose
// record is too big for a Secret.
func releaseCharts() cluster.Files {
	return cluster.Files{
		"chart/Chart.yaml":  "apiVersion: v2\nname: demo\nversion: 0.1.0\n",
		"chart/values.yaml": "message: hello\nhook: \"\"\nextra: \"\"\n",
		"chart/templates/objects.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {message: {{ .Values.message | quote }}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-kept
  annotations: {helm.sh/resource-policy: keep}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: {{ .Release.Name }}}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}}
spec: {ports: [{port: 80}], selector: {app: {{ .Release.Name }}}}
---
{{ .Values.extra }}
`,
		"chart/templates/hook.yaml": `{{- with .Values.hook }}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ $.Release.Name }}-hook
  annotations:
    helm.sh/hook: {{ . | quote }}
    helm.sh/hook-delete-policy: before-hook-creation
spec:
  template: {spec: {restartPolicy: Never, containers: [{name: a, image: example.org/a:1}]}}
{{- end }}
`,
		"fat/Chart.yaml":        "apiVersion: v2\nname: demo\nversion: 0.2.0\n",
		"fat/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n",
		"fat/stray.txt":         incompressible(1 << 20),
	}
}

// incompressible is a text that gzip can only halve.
func incompressible(bytes int) string {
	var b strings.Builder
	for i := 0; b.Len() < 2*bytes; i++ {
		sum := sha256.Sum256(fmt.Append(nil, i))
		b.WriteString(hex.EncodeToString(sum[:]))
	}
	return b.String()
}

// helmRelease is the manifest of one, with further lines of its spec. It looks
// again in an hour, so that all that happens before is somebody's doing.
func helmRelease(ns, name string, spec ...string) string {
	return fmt.Sprintf(`apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: %s, namespace: %s}
spec:
  interval: 1h
  timeout: 1m
  chart: {spec: {chart: ./chart, interval: 1h, sourceRef: {kind: GitRepository, name: source, namespace: %s}}}
  %s
`, name, ns, chartsNamespace, strings.Join(spec, "\n  "))
}

// values are those of the chart, as a line of a spec.
func values(pairs ...string) string {
	var all []string
	for i := 0; i+1 < len(pairs); i += 2 {
		all = append(all, fmt.Sprintf("%s: %q", pairs[i], pairs[i+1]))
	}
	return "values: {" + strings.Join(all, ", ") + "}"
}

// Where a failure is what is wanted, it comes soon.
const (
	failsToInstall   = "install: {timeout: 3s}"
	failsToUninstall = "uninstall: {timeout: 3s}"
)

// slowDeployment has Pods that nothing runs, so that it never becomes ready.
const slowDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: slow}
spec:
  selector: {matchLabels: {app: slow}}
  template:
    metadata: {labels: {app: slow}}
    spec: {containers: [{name: a, image: example.org/a:1}]}
`

const dataClaim = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`

// widgetGroup is a group of the scene's own.
func widgetGroup(ns string) string { return ns + ".example.com" }

func widgetDefinition(ns string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, widgetGroup(ns))
}

func widget(ns string) string {
	return fmt.Sprintf("apiVersion: %s/v1\nkind: Widget\nmetadata: {name: one, namespace: %s}\n", widgetGroup(ns), ns)
}
