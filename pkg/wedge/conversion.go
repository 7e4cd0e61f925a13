// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubestandup/kubestandup/pkg/flux"
)

// conversions are the kinds whose objects cannot be converted between their
// versions: because nothing answers, or because what answers is wrong. Neither
// is mended by deleting the CRD, which would delete every object with it.
func conversions(w *World) []Verdict {
	var out []Verdict
	for _, d := range w.Definitions {
		if v, ok := w.deadConversion(d); ok {
			out = append(out, v)
		}
	}
	return append(out, w.wrongConversions()...)
}

func (w *World) deadConversion(d *Definition) (Verdict, bool) {
	if d.Conversion == nil || d.Conversion.Service == (types.NamespacedName{}) || !d.converts() {
		return Verdict{}, false
	}
	state, sentence := w.backend(d.Conversion.Service)
	if state == backendUnknown || state == backendAlive && d.Conversion.CABundle {
		return Verdict{}, false
	}
	svc := serviceRef(d.Conversion.Service)
	v := Verdict{
		Cause: ConversionFails, Object: d.Ref, ResolvesItself: When, State: "waiting",
		Summary: fmt.Sprintf("%s cannot be read in any version but %s: %s", d.Defines, d.storage(), sentence),
		Why: "the API server calls the conversion webhook at every read in another version; while that fails, lists of the kind fail, " +
			"and the garbage collector and the deletion of Namespaces stall",
		ResolvesWhen: fmt.Sprintf("as soon as an endpoint of %s is ready", svc),
		Repair:       "mend what keeps its Pods from being Ready. The CRD is left alone: deleting it deletes every object of the kind",
	}
	v.evidence(d.Ref, "spec.conversion.webhook.clientConfig.service", d.Conversion.Service.String())
	if !d.Conversion.CABundle {
		v.evidence(d.Ref, "spec.conversion.webhook.clientConfig.caBundle", "empty")
	}
	w.evidenceBackend(&v, d.Conversion.Service)
	for _, n := range w.Terminating {
		for _, c := range n.Conditions {
			if strings.Contains(c.Message, "conversion webhook") && strings.Contains(c.Message, d.Defines.Group) {
				v.evidence(n.Ref, c.Type, c.Message)
			}
		}
	}
	switch state {
	case backendAlive:
		v.State = "no-ca-bundle"
		v.Summary = fmt.Sprintf("%s can hardly be read in any version but %s: its conversion webhook has no caBundle, so the API server trusts only "+
			"the CAs of its own system", d.Defines, d.storage())
		v.ResolvesWhen = "as soon as the operator, or cert-manager's cainjector, writes the caBundle"
		v.Repair = "look why the caBundle was not written: cert-manager's cainjector runs and the Certificate is Ready, or the operator that writes it runs; " +
			"a manifest in git that sets it empty takes it away at each apply. The CRD is left alone: deleting it deletes every object of the kind"
	case backendGone, backendEmpty:
		v.State, v.ResolvesItself, v.ResolvesWhen = "no-service", Never, ""
		if state == backendEmpty {
			v.State = "no-workload"
		}
		v.Repair = "install again the operator that converts"
		if s := d.Owner.sentence(); s != "" {
			v.Repair += " (" + s + ")"
		}
		v.Repair += ". The CRD is left alone: deleting it deletes every object of the kind"
	}
	return v, true
}

// wrongConversion is how the API server says that a conversion webhook has
// changed what it must not (apiextensions-apiserver conversion/webhook_converter.go).
func wrongConversion() *regexp.Regexp {
	return regexp.MustCompile(`conversion webhook for ([^,\s]+), Kind=(\S+) returned invalid `)
}

// wrongConversions are the kinds of which a tier reports such an answer.
func (w *World) wrongConversions() []Verdict {
	var out []Verdict
	at := map[flux.Ref]int{}
	for _, m := range w.messages() {
		found := wrongConversion().FindStringSubmatch(m.text)
		if found == nil {
			continue
		}
		gv, _ := schema.ParseGroupVersion(found[1])
		gk := schema.GroupKind{Group: gv.Group, Kind: found[2]}
		object := m.tier
		if d := w.definition(gk); d != nil {
			object = d.Ref
		}
		i, seen := at[object]
		if !seen {
			i = len(out)
			at[object] = i
			out = append(out, Verdict{
				Cause: ConversionFails, Object: object, ResolvesItself: Never, State: "wrong-answer",
				Summary: fmt.Sprintf("the conversion webhook of %s answers, and its answer is not allowed", gk),
				Why: "this is a bug of the webhook: it drops metadata, often together with managedFields of an older version. " +
					"A restart does not help, and neither does waiting",
				Repair: "upgrade the operator that converts to a release that keeps metadata; until then apply the kind in its storage version. " +
					"The CRD is left alone: deleting it deletes every object of the kind",
			})
		}
		out[i].evidence(m.tier, m.field, m.text)
	}
	return out
}

// message is what a tier says is wrong.
type message struct {
	tier  flux.Ref
	field string
	text  string
}

// messages are what the tiers say that are not Ready.
func (w *World) messages() []message {
	if w.Flux == nil {
		return nil
	}
	var out []message
	for i := range w.Flux.Tiers {
		t := &w.Flux.Tiers[i]
		for _, c := range t.Conditions {
			if c.Type == "Ready" && c.Status != "True" || c.Type == "Released" && c.Status == "False" {
				out = append(out, message{t.Ref, c.Type, c.Message})
			}
		}
	}
	return out
}
