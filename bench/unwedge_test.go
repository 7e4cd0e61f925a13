// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package bench

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/kubestandup/kubestandup/test/cluster"
)

// BenchmarkUnwedge looks at 200 releases with ten revisions each, no
// HelmRelease vouching for any of them, so that each newest record is decoded.
// A record holds a chart of a megabyte, as the large ones do. Beside it runs
// what people use to see the state of releases: helm list --all-namespaces.
func BenchmarkUnwedge(b *testing.B) {
	const releases, revisions = 200, 10
	c := cluster.New(b, cluster.Options{Components: []cluster.Component{}, FluxCRDs: true})
	fill(b, c, releases, revisions)
	unwedge := buildPlugin(b, "kubectl-unwedge")
	var ours, theirs []measured
	for b.Loop() {
		ours = append(ours, run(b, c, unwedge))
		theirs = append(theirs, run(b, c, c.Program("helm4"), "list", "--all-namespaces", "--max", "0"))
	}
	us, them := median(ours), median(theirs)
	b.ReportMetric(us.took.Seconds(), "s/pass")
	b.ReportMetric(us.mib, "MiB")
	b.ReportMetric(them.took.Seconds(), "s/helm-list")
	b.ReportMetric(them.mib, "MiB-helm-list")
	b.ReportMetric(them.took.Seconds()/us.took.Seconds(), "times-faster")
	b.ReportMetric(0, "ns/op")
}

func median(all []measured) measured {
	slices.SortFunc(all, func(a, b measured) int { return int(a.took - b.took) })
	m := all[len(all)/2]
	slices.SortFunc(all, func(a, b measured) int { return int(a.mib - b.mib) })
	m.mib = all[len(all)/2].mib
	return m
}

// fill writes the releases: copies of a record that the real Helm wrote, made
// as large as those of large charts.
func fill(b *testing.B, c *cluster.Cluster, releases, revisions int) {
	b.Helper()
	raw, err := os.ReadFile("../pkg/release/testdata/records/helm4/web.v2.deployed.json")
	if err != nil {
		b.Fatal(err)
	}
	var record corev1.Secret
	if err := yaml.Unmarshal(raw, &record); err != nil {
		b.Fatal(err)
	}
	data := larger(b, record.Data["release"])
	cfg := c.Config()
	cfg.QPS = -1
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		b.Fatal(err)
	}
	const atOnce = 8
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(atOnce)
	for i := range releases {
		group.Go(func() error {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("app-%d", i)}}
			if _, err := client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
				return err
			}
			for n := 1; n <= revisions; n++ {
				s := &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("sh.helm.release.v1.web.v%d", n), Labels: record.Labels},
					Type:       record.Type, Data: map[string][]byte{"release": data},
				}
				if _, err := client.CoreV1().Secrets(ns.Name).Create(ctx, s, metav1.CreateOptions{}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}

// larger adds a megabyte of templates to the chart of a record, which
// compresses as templates do.
func larger(b *testing.B, data []byte) []byte {
	b.Helper()
	fail := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	packed, err := base64.StdEncoding.DecodeString(string(data))
	fail(err)
	unzip, err := gzip.NewReader(bytes.NewReader(packed))
	fail(err)
	raw, err := io.ReadAll(unzip)
	fail(err)
	var record map[string]any
	fail(json.Unmarshal(raw, &record))
	chart, ok := record["chart"].(map[string]any)
	if !ok {
		b.Fatal("the record has no chart")
	}
	random := rand.New(rand.NewPCG(1, 2))
	var text bytes.Buffer
	for text.Len() < 1<<20 {
		fmt.Fprintf(&text, "  {{- with .Values.component%d }}\n    key-%x: value\n  {{- end }}\n", random.IntN(50), random.IntN(1<<16))
	}
	chart["templates"] = []any{map[string]any{"name": "templates/large.yaml", "data": text.Bytes()}}
	raw, err = json.Marshal(record)
	fail(err)
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	_, err = zip.Write(raw)
	fail(err)
	fail(zip.Close())
	return []byte(base64.StdEncoding.EncodeToString(out.Bytes()))
}
