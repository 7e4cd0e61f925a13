// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/release"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// Release is a Helm release: its records, and the HelmRelease that wants it.
type Release struct {
	release.Key
	// Revisions are its records, ascending; none where there is only the
	// HelmRelease.
	Revisions []release.Revision
	// Node is the HelmRelease, nil for a release of plain Helm, or one whose
	// HelmRelease is gone.
	Node *tiers.Node
	// Remote is true where its records are on another cluster (spec.kubeConfig).
	Remote bool
	// Unlooked is true for one that may be wedged, and was not looked at since
	// nobody has asked about it. Nothing is said of it then.
	Unlooked bool
	// Record is that of the highest revision, decoded; nil where nothing made
	// it worth a look.
	Record *release.Record
	// Status is the record's, or the label's where the record was not decoded.
	Status release.Status
	// Broken is why the highest record cannot be decoded.
	Broken *release.UnreadableError
	// Foreign is true for a record that speaks of another release than its place
	// says, or, with no HelmRelease to tell, of another namespace: Helm keeps its
	// records where it installs. Whoever may write it need not be one who may
	// touch what it names.
	Foreign bool
	// Good is the newest older record that is deployed or was, by its label.
	Good *release.Revision
	// Owned are the objects of the manifest, in the order in which Helm
	// uninstalls them; read only where something may be done with them.
	Owned []Owned
	// OwnedUnknown is why Owned, or what would be lost with it, could not be
	// read; nil where it was, or was not tried. Nothing may then be deleted.
	OwnedUnknown error
	// Others are further HelmReleases that want the same release.
	Others []flux.Ref
	// Namesake is another set of records by the same name, in the namespace
	// that the release is deployed to.
	Namesake *release.Key
}

// Owned is one object of a release's manifest.
type Owned struct {
	release.Document
	Ref flux.Ref
	// Served is false when the kind is not served in the version that was
	// written, so that Helm cannot map it. The object may be there all the same,
	// in another version, which Ref then has. Unknown is when discovery cannot
	// tell.
	Served, Unknown bool
	// Live is the object on the cluster, nil when there is none.
	Live *Observed
	// Owner is who has the object now, where that is not this release.
	Owner string
	// Lost are further objects that go with it: the resources of a CRD, what
	// others have put into a Namespace.
	Lost []flux.Ref
}

// Latest is the highest revision, nil when there is none.
func (r *Release) Latest() *release.Revision {
	if len(r.Revisions) == 0 {
		return nil
	}
	return &r.Revisions[len(r.Revisions)-1]
}

// Object is what a verdict about the release is about: the HelmRelease, or
// else the newest record.
func (r *Release) Object() flux.Ref {
	if r.Node != nil {
		return r.Node.Ref
	}
	return secretRef(*r.Latest())
}

func secretRef(r release.Revision) flux.Ref {
	return flux.Ref{APIVersion: "v1", Kind: "Secret", Namespace: r.Namespace, Name: r.Secret()}
}

// deleting is true while the HelmRelease is being deleted. Suspending it then
// would orphan all that the release owns.
func (r *Release) deleting() bool { return r.Node != nil && !r.Node.Deleted.IsZero() }

// ours is true where a former run has suspended the HelmRelease and was ended
// before it could resume it.
func (r *Release) ours() bool { return r.Node != nil && r.Node.Suspended && r.Node.Unwedge != "" }

// started is when the operation began that left the highest record as it is.
func (r *Release) started() time.Time {
	at := r.Latest().Modified
	if r.Record != nil {
		for _, t := range []time.Time{r.Record.LastDeployed, r.Record.DeletedAt} {
			if t.After(at) {
				at = t
			}
		}
	}
	if at.IsZero() {
		at = r.Latest().Created
	}
	return at
}

// grace is added to a timeout before an operation counts as abandoned: the
// clocks of two machines differ.
const grace = time.Minute

// operation judges whether somebody is at work on the release now.
type operation struct {
	live bool
	// why is how that is known, a clause.
	why string
}

// operation needs the highest record. helm-controller works on a release for
// at most spec.timeout, and loses what it was doing when its process ends.
// Plain Helm records no timeout, so a person has to say how old is too old.
func (w *World) operation(r *Release) operation {
	age := w.Now.Sub(r.started())
	if r.Node == nil {
		switch {
		case w.Choices.OlderThan == 0:
			return operation{true, fmt.Sprintf("it began %s ago, and nothing on the cluster tells. If you know that it is dead, say with --older-than how old is abandoned", span(age))}
		case age < w.Choices.OlderThan:
			return operation{true, fmt.Sprintf("it began %s ago, which is younger than --older-than %s", span(age), w.Choices.OlderThan)}
		}
		return operation{false, fmt.Sprintf("it began %s ago, longer than --older-than %s", span(age), w.Choices.OlderThan)}
	}
	c := w.Controllers[helmController]
	switch {
	case c != nil && c.Started.After(r.started()):
		return operation{false, fmt.Sprintf("%s has started anew since, %s ago", helmController, span(w.Now.Sub(c.Started)))}
	case c != nil && !c.Running() && age <= r.Node.Timeout+grace:
		return operation{true, fmt.Sprintf("%s does not run, but a helm of somebody's may be at work: it began %s ago, and has %s", helmController, span(age), span(r.Node.Timeout))}
	case age > r.Node.Timeout+grace:
		return operation{false, fmt.Sprintf("it began %s ago, longer than its timeout of %s", span(age), r.Node.Timeout)}
	}
	said := fmt.Sprintf("%s have passed of %s", span(age), span(r.Node.Timeout))
	if age > r.Node.Timeout {
		said += ", and " + span(grace) + " is given on top"
	}
	return operation{true, said}
}

const helmController = "helm-controller"

// unlocks is false for a helm-controller that does not unlock pending releases
// by itself: before v0.37.
func unlocks(c *Controller) bool {
	if c == nil || c.Version == "" {
		return true
	}
	v, err := version.ParseGeneric(strings.TrimPrefix(c.Version, "v"))
	return err != nil || v.AtLeast(version.MajorMinor(0, 37))
}

// span is a duration as a person says it.
func span(d time.Duration) string {
	if d >= 48*time.Hour {
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
	unit := time.Second
	if d >= time.Hour {
		unit = time.Minute
	}
	said := d.Round(unit).String()
	if strings.HasSuffix(said, "m0s") {
		said = strings.TrimSuffix(said, "0s")
	}
	return said
}

// verdict is the beginning of one about the release.
func (w *World) verdict(r *Release, cause Cause) Verdict {
	v := Verdict{Cause: cause, Object: r.Object(), State: string(r.Status), ResolvesItself: Never}
	if r.Latest() != nil {
		w.recordEvidence(r, &v)
	}
	if r.ours() {
		v.evidence(r.Node.Ref, "spec.suspend", "true, by a former run of unwedge that was ended before it could resume it")
	}
	if r.Node != nil {
		told := map[string]bool{}
		for _, kind := range []string{"Ready", "Stalled", "Released"} {
			for _, c := range r.Node.Conditions {
				said := c.Reason + ": " + firstLine(c.Message)
				if c.Type == kind && !told[said] && (kind != "Released" || c.Status != "True") {
					told[said] = true
					v.evidence(r.Node.Ref, kind, string(c.Status)+" "+said)
				}
			}
		}
	}
	return v
}

// recordEvidence is what the newest record says.
func (w *World) recordEvidence(r *Release, v *Verdict) {
	latest := r.Latest()
	record := secretRef(*latest)
	switch {
	case r.Broken != nil:
		v.evidence(record, "data.release", r.Broken.Error())
	case r.Record != nil:
		v.evidence(record, "info.status", string(r.Status))
		if latest.Label != r.Status {
			v.evidence(record, "metadata.labels.status", string(latest.Label)+", which is not what counts")
		}
		v.evidence(record, "info.description", firstLine(r.Record.Description))
	}
	if r.Namesake != nil {
		v.evidence(record, "metadata.namespace", fmt.Sprintf("%s counts; the records of the same name in namespace %s do not", r.Namespace, r.Namesake.Namespace))
	}
	v.since(r.started())
}

// releases calls judge for each release that a verdict may be about.
func (w *World) releases(of func(*Release) *Verdict) []Verdict {
	var out []Verdict
	for _, r := range w.Releases {
		if r.Unlooked {
			continue
		}
		v := of(r)
		if v == nil {
			continue
		}
		if len(r.Others) > 0 && (len(v.Actions) > 0 || v.Choice != nil) {
			v.Actions, v.Choice = nil, nil
			v.Refused = fmt.Sprintf("%s and %s want the same release: what is done for one is done to the other. Remove one of them first", r.Node.Ref, some(r.Others))
		}
		out = append(out, *v)
	}
	return out
}
