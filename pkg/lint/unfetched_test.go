// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/kubestandup/kubestandup/pkg/lint"
)

// TestAChartThatCannotBeFetchedIsSaid, although its name says what it registers.
func TestAChartThatCannotBeFetchedIsSaid(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	archive, err := txtar.ParseFile("testdata/repositories/dg009-release.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for i := range archive.Files {
		text := strings.ReplaceAll(string(archive.Files[i].Data), "https://charts.example.com/charts", server.URL)
		archive.Files[i].Data = []byte(strings.ReplaceAll(text, "chart: found", "chart: cert-manager"))
	}
	for _, fetch := range []bool{true, false} {
		report, err := lint.Run(t.Context(), lint.Options{Path: unpack(t, archive), FetchCharts: fetch, ChartCache: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		got := report.Entries[0].Unfetched
		if fetch && (len(got) != 1 || got[0].Chart != "cert-manager" || got[0].Object.Name != "found" || got[0].Why == "") || !fetch && len(got) > 0 {
			t.Errorf("--fetch-charts=%v: %+v", fetch, got)
		}
	}
}
