// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"fmt"
	"strings"

	"github.com/kubestandup/kubestandup/test/cluster"
)

// tierManifest is a Kustomization of the tree; spec are further lines.
func tierManifest(name string, spec string) string {
	return fmt.Sprintf(`apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: %[1]s
  namespace: flux-system
spec:
  interval: 1h
  path: ./%[1]s
  prune: true
  sourceRef:
    kind: GitRepository
    name: flux-system
%[2]s`, name, spec)
}

const buildVariables = `apiVersion: v1
kind: ConfigMap
metadata: {name: cluster-vars, namespace: flux-system}
data:
  REGION: north
  REPLICAS: "3"
---
apiVersion: v1
kind: Secret
metadata: {name: cluster-secrets, namespace: flux-system}
stringData:
  TOKEN: s3cr3t
`

// buildTree is one folder per tier.
func buildTree() cluster.Files {
	files := cluster.Files{
		"root/tiers.yaml": strings.Join([]string{
			tierManifest("objects", ""),
			tierManifest("overlay", overlaySpec),
			tierManifest("variables", "  postBuild:\n    substitute: {INLINE: inline}\n    substituteFrom:\n    - {kind: ConfigMap, name: cluster-vars}\n    - {kind: Secret, name: cluster-secrets}\n    - {kind: ConfigMap, name: absent, optional: true}\n"),
			tierManifest("encrypted-strings", ""),
			tierManifest("encrypted-data", ""),
			tierManifest("unset", "  postBuild: {substitute: {A: \"1\"}}\n"),
			tierManifest("absent-variables", "  postBuild: {substituteFrom: [{kind: ConfigMap, name: absent}]}\n"),
			tierManifest("absent-path", ""),
			tierManifest("unparsable", ""),
			tierManifest("outside-component", "  components: [/etc]\n"),
		}, "---\n"),
		"objects/workloads.yaml":            workloads,
		"objects/cluster.yaml":              clusterObjects,
		"objects/nested/kustomization.yaml": "namePrefix: nested-\nresources: [a.yaml]\nconfigMapGenerator:\n- {name: generated, namespace: build, literals: [A=b]}\n",
		"objects/nested/a.yaml":             "apiVersion: v1\nkind: Secret\nmetadata: {name: strings, namespace: build}\nstringData: {a: b}\ndata: {c: ZA==}\n",
		"objects/nested/unused.yaml":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: unused}\n",
		"objects/README.md":                 "no manifest",
		"overlay/kustomization.yaml":        "namespace: overwritten\nresources: [../base]\nimages: [{name: registry.example.com/web, newName: mirror.example.com/web}]\n",
		"base/kustomization.yaml":           "resources: [web.yaml]\ncommonAnnotations: {base: \"yes\"}\n",
		"base/web.yaml":                     webDeployment,
		"component/kustomization.yaml":      "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n- target: {kind: Deployment}\n  patch: |\n    - {op: add, path: /spec/template/spec/containers/0/args, value: [--debug]}\n",
		"variables/a.yaml":                  variableObjects,
		"encrypted-strings/a.yaml":          "apiVersion: v1\nkind: Secret\nmetadata: {name: shipped, namespace: default}\nstringData: {password: \"ENC[AES256_GCM,data:AAAA,iv:BBBB,tag:CCCC,type:str]\"}\nsops: {mac: \"ENC[x]\", version: 3.9.0}\n",
		"encrypted-data/a.yaml":             "apiVersion: v1\nkind: Secret\nmetadata: {name: sealed, namespace: default}\ndata: {password: \"ENC[AES256_GCM,data:AAAA,iv:BBBB,tag:CCCC,type:str]\"}\nsops: {mac: \"ENC[x]\", version: 3.9.0}\n",
		"unset/a.yaml":                      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\ndata: {k: \"${NOT_SET}\"}\n",
		"absent-variables/a.yaml":           "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\ndata: {k: \"${A}\"}\n",
		"unparsable/a.yaml":                 "apiVersion: v1\nkind: ConfigMap\n metadata: {\n",
		"outside-component/a.yaml":          "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: default}\n",
	}
	return files
}

const overlaySpec = `  targetNamespace: default
  namePrefix: p-
  nameSuffix: -s
  components: [../component, ../absent]
  ignoreMissingComponents: true
  images: [{name: registry.example.com/web, newTag: "2.0"}]
  commonMetadata:
    labels: {team: web}
    annotations: {owner: "yes"}
  patches:
  - target: {kind: Deployment}
    patch: |
      - {op: replace, path: /spec/replicas, value: 5}
`

const webDeployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: registry.example.com/web:1.0
        ports: [{containerPort: 8080}]
`

const clusterObjects = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.build.example.com
spec:
  group: build.example.com
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: v1
kind: Namespace
metadata: {name: build}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: build-fast}
provisioner: csi.example.com
parameters: {a: b}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "build:reader"}
rules:
- {apiGroups: [""], resources: [pods], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "build:readers"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "build:reader"}
subjects: [{kind: ServiceAccount, name: web-account, namespace: build}]
`

const workloads = `apiVersion: build.example.com/v1
kind: Widget
metadata: {name: widget, namespace: build}
spec: {size: 3, ratio: 1.5, list: [{a: 1}, {a: 2}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web-account, namespace: build}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store, namespace: build, annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}}
spec:
  serviceName: store
  selector: {matchLabels: {app: store}}
  template:
    metadata: {labels: {app: store}}
    spec:
      containers: [{name: store, image: "registry.example.com/store:1", ports: [{containerPort: 80, name: http}], env: [{name: A, value: "1"}]}]
---
apiVersion: v1
kind: Service
metadata: {name: store-svc, namespace: build}
spec:
  selector: {app: store}
  ports: [{port: 80, targetPort: http, name: http}]
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: build}
spec:
  schedule: "0 3 * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: job, image: "registry.example.com/job:1"}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: store-pdb, namespace: build}
spec: {minAvailable: 1, selector: {matchLabels: {app: store}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: store-hpa, namespace: build}
spec:
  minReplicas: 1
  maxReplicas: 3
  scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: store}
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: role, namespace: build}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny, namespace: build}
spec: {podSelector: {}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: build-webhook}
webhooks: []
---
apiVersion: v1
kind: ConfigMap
metadata: {name: ignored, namespace: build, annotations: {kustomize.toolkit.fluxcd.io/ssa: ignore}}
data: {a: b}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: in-a-list, namespace: build}, data: {a: b}}
`

const variableObjects = `apiVersion: v1
kind: ConfigMap
metadata: {name: substituted, namespace: default}
data:
  region: ${REGION}
  inline: "${INLINE}"
  token: ${TOKEN}
  defaulted: ${NOT_SET:=fallback}
  escaped: $${REGION}
  script: for i in $LIST; do echo "$(date)"; done
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: scaled, namespace: default}
spec:
  replicas: ${REPLICAS}
  selector: {matchLabels: {app: scaled}}
  template:
    metadata: {labels: {app: scaled}}
    spec:
      containers: [{name: c, image: "registry.example.com/${REGION}:1"}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: literal, namespace: default, labels: {kustomize.toolkit.fluxcd.io/substitute: disabled}}
data: {script: "echo ${SHELL}"}
`
