// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
)

// ociServer is a registry of this process. With an account it challenges whoever
// does not give it.
func ociServer(t *testing.T, wantsAccount bool) (host string) {
	t.Helper()
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); wantsAccount && (user != "user" || password != marker) {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED"}]}`, http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// pushChart is what helm push does, with a layer before the chart's that is
// none. It returns the digest of the manifest.
func pushChart(t *testing.T, name, tag string, raw []byte, mediaType string) string {
	t.Helper()
	r, err := remote.NewRepository(name)
	if err != nil {
		t.Fatal(err)
	}
	r.PlainHTTP = true
	r.Client = &auth.Client{Credential: auth.StaticCredential(r.Reference.Host(), auth.Credential{Username: "user", Password: marker})}
	push := func(mediaType string, raw []byte) ocispec.Descriptor {
		d := content.NewDescriptorFromBytes(mediaType, raw)
		if err := r.Push(t.Context(), d, strings.NewReader(string(raw))); err != nil {
			t.Fatal(err)
		}
		return d
	}
	layers := []ocispec.Descriptor{push(mediaType, raw)}
	if mediaType == chartLayers()[0] {
		layers = slices.Insert(layers, 0, push("application/vnd.cncf.helm.chart.provenance.v1.prov", []byte("no chart")))
	}
	config := push("application/vnd.cncf.helm.config.v1+json", []byte(`{"name":"demo"}`))
	manifest := fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":%q,"digest":%q,"size":%d},"layers":[`, ocispec.MediaTypeImageManifest, config.MediaType, config.Digest, config.Size)
	for i, l := range layers {
		manifest += strings.Repeat(",", min(i, 1)) + fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":%d}`, l.MediaType, l.Digest, l.Size)
	}
	d, err := oras.TagBytes(t.Context(), r, ocispec.MediaTypeImageManifest, []byte(manifest+"]}"), tag)
	if err != nil {
		t.Fatal(err)
	}
	return d.Digest.String()
}

func dockerConfig(host string) string {
	config := fmt.Sprintf(`{"auths":{"other.example.com":{"username":"x","password":"y"},"https://%s/v2/":{"auth":%q}}}`,
		host, base64.StdEncoding.EncodeToString([]byte("user:"+marker)))
	return "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/dockerconfigjson\nmetadata: {name: docker, namespace: sources}\ndata: {.dockerconfigjson: " +
		base64.StdEncoding.EncodeToString([]byte(config)) + "}"
}

// TestOCIHelmRepository: a whole version is the tag, anything else a range.
func TestOCIHelmRepository(t *testing.T) {
	t.Parallel()
	open, closed := ociServer(t, false), ociServer(t, true)
	for _, host := range []string{open, closed} {
		for _, v := range []string{"1.0.0", "1.10.0", "1.9.0+build", "2.0.0-rc.1"} {
			pushChart(t, host+"/charts/demo", strings.ReplaceAll(v, "+", "_"), archive(t, chartFiles(v)), chartLayers()[0])
		}
	}
	for _, tt := range []struct{ name, wanted, host, spec, version string }{
		{"a range", ">=1.0.0", open, "", "1.10.0"},
		{"a range below", "<1.10.0", open, "", "1.9.0+build"},
		{"a version", "1.0.0", open, "", "1.0.0"},
		{"a version with metadata", "1.9.0+build", open, "", "1.9.0+build"},
		{"an account", ">=1.0.0", closed, ", secretRef: {name: account}", "1.10.0"},
		{"docker's account", ">=1.0.0", closed, ", secretRef: {name: docker}", "1.10.0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			release := strings.Replace(helmRelease(helmRepository), ">=1.0.0", tt.wanted, 1)
			repository := repositoryOf("oci://"+tt.host+"/charts", ", type: oci, insecure: true"+tt.spec, "{}")
			c := mustLoad(t, charts(t, objects(release, repository, credentials(), dockerConfig(tt.host)), ""))
			if got := names(t, c, on()); c.Version != tt.version || len(got) != 1 || c.Origin != "oci://"+tt.host+"/charts/demo:"+tt.version {
				t.Errorf("got %v of %s from %s, want %s", got, c.Version, c.Origin, tt.version)
			}
		})
	}
	for _, tt := range []struct{ name, wanted, host, chart, secret, says string }{
		{"no account", ">=1.0.0", closed, "demo", "", "list of tags of oci://" + closed + "/charts/demo: the registry wants an account"},
		{"no such version", "7.0.0", open, "demo", "", "charts/demo:7.0.0: the registry has no such thing"},
		{"no such chart", ">=1.0.0", open, "none", "", "the registry answered 404"},
		{"none in the range", ">=7.0.0", open, "demo", "", `none of its 4 versions is in the range ">=7.0.0"`},
		{"docker's account of another", ">=1.0.0", closed, "demo", dockerConfig("elsewhere.example.com"), "it has no entry for " + closed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			release := strings.NewReplacer(">=1.0.0", tt.wanted, "chart: demo", "chart: "+tt.chart).Replace(helmRelease(helmRepository))
			spec := ", type: oci, insecure: true"
			if tt.secret != "" {
				spec += ", secretRef: {name: docker}"
			}
			_, err := charts(t, objects(release, repositoryOf("oci://"+tt.host+"/charts", spec, "{}"), tt.secret), "").Load(t.Context(), "apps", "demo")
			fails(t, err, tt.says)
		})
	}
}

// TestOCIRepository without an artifact: the reference and the layer are those
// that source-controller takes.
func TestOCIRepository(t *testing.T) {
	t.Parallel()
	host := ociServer(t, false)
	name := host + "/charts/demo"
	digests := map[string]string{}
	for _, tag := range []string{"1.0.0", "1.1.0", "v1.2.0-rc.1", "latest"} {
		version := strings.TrimPrefix(strings.ReplaceAll(tag, "latest", "3.0.0"), "v")
		digests[tag] = pushChart(t, name, tag, archive(t, chartFiles(version)), chartLayers()[0])
	}
	plain := pushChart(t, name, "plain", archive(t, chartFiles("4.0.0")), "application/octet-stream")
	const release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: demo, namespace: apps}\n" +
		"spec: {interval: 1h, chartRef: {kind: OCIRepository, name: charts, namespace: sources}}\n"
	selected := fmt.Sprintf(", layerSelector: {mediaType: %q, operation: copy}", chartLayers()[0])
	short := func(digest string) string { return strings.TrimPrefix(digest, "sha256:")[:shortRevision] }
	for _, tt := range []struct{ name, spec, version string }{
		{"latest", selected, "3.0.0+" + short(digests["latest"])},
		{"a tag", ", ref: {tag: 1.0.0}" + selected, "1.0.0+" + short(digests["1.0.0"])},
		{"a range before the tag", ", ref: {tag: 1.0.0, semver: 1.x}" + selected, "1.1.0+" + short(digests["1.1.0"])},
		{"a filtered range", ", ref: {semver: '>=1.0.0-0', semverFilter: '.*-rc.*'}" + selected, "1.2.0-rc.1+" + short(digests["v1.2.0-rc.1"])},
		{"a digest before all", fmt.Sprintf(", ref: {tag: 1.0.0, digest: %q}", digests["1.1.0"]) + selected, "1.1.0+" + short(digests["1.1.0"])},
		{"the first layer", ", ref: {tag: plain}", "4.0.0+" + short(plain)},
		{"unpacked", ", ref: {tag: plain}, layerSelector: {operation: extract}", "4.0.0+" + short(plain)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := mustLoad(t, charts(t, objects(release, source(ociRepository, fmt.Sprintf(", url: %q, insecure: true", "oci://"+name)+tt.spec, "{}")), ""))
			if got := names(t, c, on()); c.Version != tt.version || len(got) != 1 {
				t.Errorf("got %v of %s, want %s", got, c.Version, tt.version)
			}
		})
	}
	for _, tt := range []struct{ name, spec, says string }{
		{"no such layer", ", ref: {tag: plain}" + selected, "has no layer of type " + chartLayers()[0]},
		{"the first layer is no chart", ", ref: {tag: 1.0.0}", "is no chart"},
		{"a filter that is none", ", ref: {semver: '*', semverFilter: '['}", `its semverFilter "[" is no regular expression`},
		{"a cloud's account", ", provider: gcp", "logs in as source-controller's pod (provider gcp)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := charts(t, objects(release, source(ociRepository, fmt.Sprintf(", url: %q, insecure: true", "oci://"+name)+tt.spec, "{}")), "").Load(t.Context(), "apps", "demo")
			fails(t, err, tt.says)
			fails(t, err, "OCIRepository/sources/charts")
		})
	}
}
