// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"slices"
	"strings"
	"testing"
)

const instance = "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata:\n  name: flux\n  namespace: flux-system\nspec:\n  distribution: {version: 2.x, registry: ghcr.io/fluxcd}\n  sync:\n    kind: GitRepository\n    url: https://github.com/example/fleet.git\n    ref: refs/heads/main\n    path: clusters/prod\n"

// generator makes the artifacts infra and apps of a git repository.
func generator(of string) string {
	return "apiVersion: source.extensions.fluxcd.io/v1beta1\nkind: ArtifactGenerator\nmetadata: {name: all, namespace: flux-system}\nspec:\n  sources: [{alias: repo, kind: GitRepository, name: " + of + "}]\n" +
		"  artifacts:\n  - name: infra\n    copy: [{from: '@repo/infra/**', to: '@artifact/'}]\n" +
		"  - name: apps\n    copy:\n    - {from: '@repo/apps/base/**', to: '@artifact/base/'}\n    - {from: '@repo/apps/prod/**', to: '@artifact/prod/'}\n" +
		"    - {from: '@repo/apps/whole', to: '@artifact/'}\n    - {from: '@repo/more.yaml', to: '@artifact/extra.yaml'}\n"
}

func TestLayouts(t *testing.T) {
	tests := []struct {
		name    string
		files   map[string]string
		below   string
		options Options
		want    []string
		outside []string
	}{{
		name: "one cluster, as bootstrap writes it",
		files: bootstrapped("clusters/prod", map[string]string{
			"clusters/prod/apps.yaml": ks("apps", "./apps", ""),
			"apps/a.yaml":             cm("a"),
		}),
		want: []string{"clusters/prod: flux-system=3 apps<flux-system=1"},
	}, {
		name: "several clusters that share a folder",
		files: bootstrapped("clusters/prod", bootstrapped("clusters/dev", map[string]string{
			"clusters/prod/apps.yaml": ks("apps", "./apps", ""),
			"clusters/dev/apps.yaml":  ks("apps", "./apps", ""),
			"apps/a.yaml":             cm("a"),
		})),
		want: []string{"clusters/dev: flux-system=3 apps<flux-system=1", "clusters/prod: flux-system=3 apps<flux-system=1"},
	}, {
		name: "one of several clusters, by its folder",
		files: bootstrapped("clusters/prod", bootstrapped("clusters/dev", map[string]string{
			"clusters/prod/apps.yaml": ks("apps", "./apps", ""),
		})),
		below: "clusters/dev",
		want:  []string{"clusters/dev: flux-system=2"},
	}, {
		name: "one of several clusters, by --entry",
		files: bootstrapped("clusters/prod", bootstrapped("clusters/dev", map[string]string{
			"clusters/prod/apps.yaml": ks("apps", "./apps", ""),
			"apps/a.yaml":             cm("a"),
		})),
		options: Options{Entries: []string{"clusters/prod/"}},
		want:    []string{"clusters/prod: flux-system=3 apps<flux-system=1"},
	}, {
		name: "the clusters that have a tier in a folder",
		files: bootstrapped("clusters/prod", bootstrapped("clusters/dev", map[string]string{
			"clusters/prod/apps.yaml": ks("apps", "./apps/prod", ""),
			"apps/prod/deep/a.yaml":   cm("a"),
			"other/a.yaml":            cm("a"),
		})),
		below: "apps/prod/deep",
		want:  []string{"clusters/prod: flux-system=3 apps<flux-system=1"},
	}, {
		name:  "bootstrapped at the root",
		files: map[string]string{"flux-system/gotk-sync.yaml": gotkSync("."), "a.yaml": cm("a")},
		want:  []string{".: flux-system=3"},
	}, {
		name: "children of children",
		files: bootstrapped("c", map[string]string{
			"c/infra.yaml":   ks("infra", "infra", ""),
			"infra/ks.yaml":  ks("configs", "configs", "") + ks("controllers", "controllers", ""),
			"configs/a.yaml": cm("a"), "controllers/a.yaml": cm("b"),
		}),
		want: []string{"c: flux-system=3 infra<flux-system=2 configs<infra=1 controllers<infra=1"},
	}, {
		name: "bootstrap's Kustomization patched in its own folder",
		files: map[string]string{
			"c/flux-system/gotk-sync.yaml":     gotkSync("c"),
			"c/flux-system/kustomization.yaml": "resources: [gotk-sync.yaml]\npatches:\n- target: {kind: Kustomization}\n  patch: |\n    - {op: add, path: /spec/postBuild, value: {substitute: {WHERE: here}}}\n",
			"c/a.yaml":                         "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'a-${WHERE}', namespace: flux-system}\n",
		},
		want: []string{"c: flux-system=3"},
	}, {
		name:  "FluxInstance",
		files: map[string]string{"bootstrap/flux.yaml": instance, "clusters/prod/apps.yaml": ks("apps", "apps", ""), "apps/a.yaml": cm("a")},
		want:  []string{"clusters/prod: flux-system=1 apps<flux-system=1"},
	}, {
		name: "FluxInstance by its chart",
		files: map[string]string{
			"kubernetes/apps/flux/release.yaml": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: flux-instance}\nspec:\n  chartRef: {kind: OCIRepository, name: flux-instance}\n  values: {instance: {sync: {kind: GitRepository, url: 'https://github.com/example/fleet', ref: main, path: kubernetes/cluster}}}\n",
			"kubernetes/apps/flux/oci.yaml":     "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: flux-instance}\nspec: {url: 'oci://example.com/charts/flux-instance'}\n",
			"kubernetes/cluster/ks.yaml":        ks("apps", "./kubernetes/apps", ""),
		},
		want: []string{"kubernetes/cluster: flux-system=1 apps<flux-system=2"},
	}, {
		name: "FluxInstance by its chart, values in a file of their own",
		files: map[string]string{
			"apps/flux/release.yaml":     "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: flux-instance}\nspec:\n  chart: {spec: {chart: flux-instance}}\n  valuesFrom: [{kind: ConfigMap, name: values}]\n",
			"apps/flux/helm/values.yaml": "instance:\n  sync:\n    kind: GitRepository\n    url: https://github.com/example/fleet\n    ref: main\n    path: cluster\n",
			"cluster/a.yaml":             cm("a"),
		},
		want: []string{"cluster: flux-system=1"},
	}, {
		name: "FluxInstance with patches of what it makes",
		files: map[string]string{
			"flux.yaml":              instance + "  kustomize:\n    patches:\n    - target: {kind: Deployment}\n      patch: |\n        - {op: remove, path: /spec/absent}\n    - target: {kind: Kustomization}\n      patch: |\n        - {op: add, path: /spec/postBuild, value: {substitute: {WHERE: here}}}\n    - target: {kind: GitRepository}\n      patch: |\n        - {op: add, path: /spec/ignore, value: left-out.yaml}\n",
			"clusters/prod/a.yaml":   ks("'${WHERE}'", "apps", ""),
			"apps/a.yaml":            cm("a"),
			"apps/left-out.yaml":     cm("b"),
			"apps/sub/left-out.yaml": cm("c"),
		},
		want: []string{"clusters/prod: flux-system=1 here<flux-system=1"},
	}, {
		name: "FluxInstances of several clusters at one path",
		files: map[string]string{
			"one.yaml": instance, "two.yaml": strings.ReplaceAll(instance, "fleet.git", "fleet"),
			"clusters/prod/a.yaml": cm("a"),
		},
		want: []string{"one.yaml: flux-system=1", "two.yaml: flux-system=1"},
	}, {
		name: "FluxInstance of another repository",
		files: map[string]string{
			"other.yaml": strings.ReplaceAll(instance, "clusters/prod", "elsewhere"), "flux/ks.yaml": ks("apps", "apps", ""), "apps/a.yaml": cm("a"),
		},
		want: []string{"flux: apps=1"},
	}, {
		name:  "an entry point whose path is not there, and nothing else",
		files: map[string]string{"flux.yaml": strings.ReplaceAll(instance, "clusters/prod", "elsewhere")},
		want:  []string{"elsewhere: flux-system=error"},
	}, {
		name: "a sync file whose path is mistyped",
		files: map[string]string{
			"clusters/prod/flux-system/gotk-sync.yaml": gotkSync("./clusters/production"),
			"clusters/prod/apps.yaml":                  ks("apps", "apps", ""),
			"apps/a.yaml":                              cm("a"),
		},
		want: []string{"clusters/prod: flux-system=error"},
	}, {
		name: "OCI artifact pushed from a folder",
		files: map[string]string{
			"flux.yaml":                      "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux, namespace: flux-system}\nspec: {sync: {kind: OCIRepository, url: 'oci://example.com/fleet', ref: latest, path: clusters/prod, name: fleet}}\n",
			"deploy/clusters/prod/apps.yaml": ks("apps", "apps", "OCIRepository/fleet"),
			"deploy/apps/a.yaml":             cm("a"),
		},
		want: []string{"deploy/clusters/prod base=deploy: fleet=1 apps<fleet=1"},
	}, {
		name: "OCI artifact pushed from the cluster's own folder",
		files: map[string]string{
			"clusters/prod/flux-system/flux.yaml": "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux, namespace: flux-system}\nspec: {sync: {kind: OCIRepository, url: 'oci://example.com/prod', ref: latest, path: ./, name: fleet}}\n",
			"clusters/prod/apps.yaml":             ks("apps", "apps", "OCIRepository/apps"),
			"docs/template.yaml":                  "variables: {}\n",
		},
		want:    []string{"clusters/prod base=clusters/prod: fleet=2 apps<fleet=outside"},
		outside: []string{"OCIRepository/flux-system/apps"},
	}, {
		name: "OCI artifact pushed from the top",
		files: map[string]string{
			"kustomization.yaml":                  "resources: [clusters/prod/apps.yaml]\n",
			"clusters/prod/flux-system/flux.yaml": "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux, namespace: flux-system}\nspec: {sync: {kind: OCIRepository, url: 'oci://example.com/prod', ref: latest, path: ./, name: fleet}}\n",
			"clusters/prod/apps.yaml":             ks("apps", "apps", "OCIRepository/fleet"),
			"apps/a.yaml":                         cm("a"),
		},
		want: []string{".: fleet=1 apps<fleet=1"},
	}, {
		name: "a Kustomization that nothing contains",
		files: map[string]string{
			"flux/ks.yaml":   ks("apps", "apps", ""),
			"apps/a.yaml":    cm("a"),
			"apps/more.yaml": ks("more", "more", ""),
			"more/a.yaml":    cm("b"),
		},
		want: []string{"flux: apps=2 more<apps=1"},
	}, {
		name: "before bootstrap, with a tenant of another repository and a patch",
		files: map[string]string{
			"clusters/prod/infra.yaml": ks("infra", "infra", ""),
			"infra/sync.yaml":          repo("other", "https://example.com/other") + ks("other", "./", "GitRepository/other"),
			"infra/a.yaml":             cm("a"),
			"tenants/patch.yaml":       "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: other, namespace: flux-system}\nspec: {path: ./prod}\n",
		},
		want:    []string{"clusters/prod: infra=3 other<infra=outside"},
		outside: []string{"GitRepository/flux-system/other"},
	}, {
		name: "artifacts that are made of the repository, before bootstrap",
		files: map[string]string{
			"clusters/prod/artifacts.yaml":   generator("flux-system"),
			"clusters/prod/infra.yaml":       ks("infra", "./controllers", "ExternalArtifact/infra"),
			"clusters/prod/apps.yaml":        ks("apps", "./prod", "ExternalArtifact/apps"),
			"infra/controllers/a.yaml":       cm("a"),
			"apps/base/a/kustomization.yaml": "resources: [a.yaml]\n",
			"apps/base/a/a.yaml":             cm("a"),
			"apps/prod/kustomization.yaml":   "resources: [../base/a, ../extra.yaml, ../whole/b.yaml]\n",
			"apps/whole/b.yaml":              cm("b"),
			"apps/other/kustomization.yaml":  "resources: [nothing.yaml]\n",
			"more.yaml":                      cm("c"),
			"clusters/test/artifacts.yaml":   strings.ReplaceAll(generator("flux-system"), "prod", "test"),
			"clusters/test/apps.yaml":        ks("apps", "./test", "ExternalArtifact/apps"),
			"apps/test/a.yaml":               cm("a"),
		},
		want: []string{"clusters/prod: apps=3 infra=1", "clusters/test: apps=1"},
	}, {
		name: "artifacts that are made of the repository, bootstrapped",
		files: bootstrapped("c", map[string]string{
			"c/artifacts.yaml":         generator("flux-system"),
			"c/infra.yaml":             ks("infra", "./controllers", "ExternalArtifact/infra"),
			"c/other.yaml":             ks("other", "./", "ExternalArtifact/other"),
			"infra/controllers/a.yaml": cm("a"),
		}),
		want:    []string{"c: flux-system=5 infra<flux-system=1 other<flux-system=outside"},
		outside: []string{"ExternalArtifact/flux-system/other"},
	}, {
		name: "artifacts of another repository",
		files: bootstrapped("c", map[string]string{
			"c/artifacts.yaml":         generator("other"),
			"c/infra.yaml":             ks("infra", "./controllers", "ExternalArtifact/infra"),
			"infra/controllers/a.yaml": cm("a"),
		}),
		want:    []string{"c: flux-system=4 infra<flux-system=outside"},
		outside: []string{"ExternalArtifact/flux-system/infra"},
	}, {
		name: "a Kustomization that contains itself",
		files: map[string]string{
			"kubernetes/flux/config/cluster.yaml": repo("home", "https://github.com/me/home") + ks("cluster", "./kubernetes/flux", "GitRepository/home"),
			"kubernetes/flux/apps.yaml":           ks("apps", "./kubernetes/apps", "GitRepository/home"),
			"kubernetes/apps/a.yaml":              cm("a"),
		},
		want: []string{"kubernetes/flux/config: cluster=3 apps<cluster=1"},
	}, {
		name: "several roots in one cluster",
		files: map[string]string{
			"flux/infra/ks.yaml": ks("infra", "infra", ""),
			"flux/apps/ks.yaml":  ks("apps", "apps", "", "dependsOn: [{name: infra}]"),
			"infra/a.yaml":       cm("a"),
			"apps/a.yaml":        cm("b"),
		},
		want: []string{"flux: apps=1 infra=1"},
	}, {
		name: "roots of several clusters",
		files: map[string]string{
			"clusters/one/ks.yaml":     ks("apps", "apps", ""),
			"clusters/two/ks.yaml":     ks("apps", "apps", ""),
			"clusters/two/sub/ks.yaml": ks("more", "apps", ""),
			"apps/a.yaml":              cm("a"),
		},
		want: []string{"clusters/one: apps=1", "clusters/two: apps=1 more=1"},
	}, {
		name: "clusters made by kustomize of a common base",
		files: map[string]string{
			"base/kustomization.yaml": "resources: [ks.yaml]\n",
			"base/ks.yaml":            ks("apps", "apps/base", ""),
			"dev/kustomization.yaml":  "resources: [../base]\n",
			"prod/kustomization.yaml": "resources: [../base]\npatches:\n- target: {kind: Kustomization, name: apps}\n  patch: |\n    - {op: replace, path: /spec/path, value: apps/prod}\n",
			"apps/base/a.yaml":        cm("a"),
			"apps/prod/a.yaml":        cm("a") + cm("b"),
		},
		want: []string{"dev: apps=1", "prod: apps=2"},
	}, {
		name: "paths that only the overlays of the clusters know, an application of another repository, and an archive",
		files: map[string]string{
			"clusters/base/kustomization.yaml": "resources: [apps.yaml]\n",
			"clusters/base/apps.yaml":          ks("apps", "providers/__PROVIDER__/apps", "OCIRepository/fleet"),
			"clusters/one/kustomization.yaml":  "resources: [../base]\npatches:\n- target: {kind: Kustomization}\n  patch: |\n    - {op: replace, path: /spec/path, value: providers/one/apps}\n",
			"providers/one/apps/sync.yaml":     repo("app", "https://example.com/app") + ks("app", "./", "GitRepository/app"),
			".archive/old/ks.yaml":             ks("old", "providers/one/apps", "OCIRepository/fleet"),
		},
		want:    []string{"clusters/one: apps=2 app<apps=outside"},
		outside: []string{"GitRepository/flux-system/app"},
	}, {
		name: "overlays and components",
		files: bootstrapped("c", map[string]string{
			"c/apps.yaml":                   ks("apps", "apps/prod", "", "components: [../extra]"),
			"apps/prod/kustomization.yaml":  "resources: [../base]\nnamePrefix: p-\n",
			"apps/base/kustomization.yaml":  "resources: [a.yaml]\n",
			"apps/base/a.yaml":              cm("a"),
			"apps/extra/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [b.yaml]\nconfigMapGenerator: [{name: made, namespace: flux-system, literals: [a=b]}]\n",
			"apps/extra/b.yaml":             cm("b"),
		}),
		want: []string{"c: flux-system=3 apps<flux-system=3"},
	}, {
		name: "a second source of the same repository, and two of others",
		files: bootstrapped("c", map[string]string{
			"c/again.yaml":   repo("again", "https://github.com/example/fleet.git") + ks("again", "apps", "GitRepository/again"),
			"c/sources.yaml": ks("sources", "sources", ""),
			"sources/s.yaml": repo("late", "git@github.com:example/fleet"),
			"c/late.yaml":    ks("late", "apps", "GitRepository/late"),
			"c/other.yaml":   repo("other", "https://github.com/example/other") + ks("other", "apps", "GitRepository/other"),
			"c/bucket.yaml":  ks("bucket", "apps", "Bucket/unknown"),
			"apps/a.yaml":    cm("a"),
		}),
		want:    []string{"c: flux-system=9 again<flux-system=1 bucket<flux-system=outside late<flux-system=1 other<flux-system=outside sources<flux-system=1"},
		outside: []string{"GitRepository/flux-system/other", "Bucket/flux-system/unknown"},
	}, {
		name: "a source that leaves something out",
		files: map[string]string{
			"c/flux-system/gotk-sync.yaml": repo("flux-system", theURL, "ignore: |", "  /apps/left-out.yaml") + ks("flux-system", "c", ""),
			"c/all.yaml":                   repo("all", theURL) + ks("all", "apps", "GitRepository/all"),
			"c/some.yaml":                  ks("some", "apps", ""),
			"apps/a.yaml":                  cm("a"),
			"apps/left-out.yaml":           cm("b"),
		},
		want: []string{"c: flux-system=5 all<flux-system=2 some<flux-system=1"},
	}, {
		name: "variables: generated, encrypted and absent",
		files: bootstrapped("c", map[string]string{
			"c/vars.yaml":             ks("vars", "vars", "", "decryption: {provider: sops}"),
			"vars/kustomization.yaml": "resources: [secret.yaml]\nconfigMapGenerator: [{name: made, namespace: flux-system, literals: [NAME=found]}]\ngeneratorOptions: {disableNameSuffixHash: true}\n",
			"vars/secret.yaml":        "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: flux-system}\nstringData: {TOKEN: 'ENC[AES256_GCM,data:AAAA,iv:B,tag:C,type:str]'}\nsops: {mac: 'ENC[x]', version: 3.9.0}\n",
			"c/apps.yaml":             ks("apps", "apps", "", "postBuild: {substituteFrom: [{kind: ConfigMap, name: made}, {kind: Secret, name: s}, {kind: ConfigMap, name: by-hand}]}"),
			"apps/a.yaml":             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '${NAME}', namespace: '${WHERE}'}\ndata: {a: '${TOKEN}', b: '${X:=default}'}\n",
			"apps/ks.yaml":            ks("'${NAME}-child'", "more/${WHERE}", ""),
		}),
		want: []string{"c: flux-system=4 apps<flux-system=2 vars<flux-system=2 found-child<apps=error"},
	}, {
		name: "another cluster's tiers",
		files: bootstrapped("c", map[string]string{
			"c/remote.yaml": ks("remote", "remote", "", "kubeConfig: {secretRef: {name: other}}"),
			"remote/a.yaml": cm("a") + ks("child", "child", ""),
			"child/a.yaml":  cm("b"),
		}),
		want: []string{"c: flux-system=3 remote<flux-system(remote)=2 child<remote(remote)=1"},
	}, {
		name: "a remote base",
		files: bootstrapped("c", map[string]string{
			"c/apps.yaml":             ks("apps", "apps", ""),
			"apps/kustomization.yaml": "resources: ['https://github.com/example/other//apps?ref=v1']\n",
		}),
		want: []string{"c: flux-system=3 apps<flux-system=error"},
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.files[".git/HEAD"] = "ref: refs/heads/main\n"
			r := open(t, write(t, tt.files)+"/"+tt.below, tt.options)
			if got := said(r); !slices.Equal(got, tt.want) {
				for _, c := range r.Clusters {
					for _, f := range c.Tiers {
						if f.Err != nil {
							t.Log(f.Err)
						}
					}
				}
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			var outside []string
			for _, c := range r.Clusters {
				for _, ref := range c.Outside {
					outside = append(outside, ref.String())
				}
			}
			if !slices.Equal(outside, tt.outside) {
				t.Errorf("outside %q, want %q", outside, tt.outside)
			}
		})
	}
}
