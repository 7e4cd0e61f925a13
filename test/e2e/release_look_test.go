// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubestandup/kubestandup/pkg/wedge"
)

// holdChart suspends the HelmChart and puts the test between helm-controller and
// the artifact, so that a look lasts for as long as is needed: held tells that
// one has begun, let ends it.
func (s *releaseScene) holdChart(t *testing.T) (held <-chan struct{}, let func()) {
	t.Helper()
	chart := &sourcev1.HelmChart{ObjectMeta: metav1.ObjectMeta{Namespace: chartsNamespace, Name: s.ns + "-web"}}
	s.merge(t, chart, `{"spec":{"suspend":true}}`)
	if err := s.c.Client().Get(t.Context(), client.ObjectKeyFromObject(chart), chart); err != nil {
		t.Fatal(err)
	}
	began, gate := make(chan struct{}, 1), make(chan struct{})
	artifact := chart.Status.Artifact.URL
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		select {
		case began <- struct{}{}:
		default:
		}
		select {
		case <-gate:
			http.Redirect(out, in, artifact, http.StatusTemporaryRedirect)
		case <-in.Context().Done():
		}
	}))
	let = sync.OnceFunc(func() { close(gate) })
	t.Cleanup(func() { let(); server.Close() })
	elsewhere := fmt.Appendf(nil, `{"status":{"observedGeneration":%d,"artifact":{"url":%q}}}`, chart.Generation, server.URL)
	if err := s.c.Client().Status().Patch(t.Context(), chart, client.RawPatch(types.MergePatchType, elsewhere)); err != nil {
		t.Fatal(err)
	}
	return began, let
}

// judgedWhileLookedAt: Stalled is not there while helm-controller looks at the
// release. That it is not wedged is never said then: not before the look ends,
// and after it, it is.
func (s *releaseScene) judgedWhileLookedAt(t *testing.T) {
	t.Helper()
	held, let := s.holdChart(t)
	s.nudge(t)
	select {
	case <-held:
	case <-time.After(patience):
		t.Fatal("helm-controller has not asked for the chart")
	}
	plan, o := s.unwedge(t, 1, s.tier(), "--timeout=1s")
	if len(plan.Verdicts) > 0 || strings.Contains(o.stderr, "not wedged") {
		t.Errorf("%s\nwant no word of how it is", o)
	}
	o.holds(t, o.stderr, "HelmRelease/"+s.ns+"/web: not looked at: after 1s, it is still being reconciled (Fulfilling prerequisites)")

	run := s.sh.start(t, slices.Concat([]string{"unwedge", s.tier()}, s.named)...)
	let()
	o = run.wait(t)
	if o.code != 0 {
		t.Errorf("%s\nwant exit code 0", o)
	}
	o.holds(t, o.stdout, "RetriesExceeded", string(wedge.ReleaseExhausted))
}
