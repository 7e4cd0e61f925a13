// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package wedge

import (
	"fmt"
	"strings"

	"github.com/kubestandup/kubestandup/pkg/release"
)

// releaseUnreadable judges releases whose newest record cannot be decoded:
// neither Helm nor helm-controller gets past it.
func releaseUnreadable(w *World) []Verdict {
	return w.releases(func(r *Release) *Verdict {
		if r.Broken == nil {
			return nil
		}
		v := w.verdict(r, ReleaseUnreadable)
		v.State = "unreadable"
		v.Summary = fmt.Sprintf("the newest record of release %s, revision %d, cannot be read: %s", r.Name, r.Latest().Version, r.Broken.Reason)
		v.Why = "helm and helm-controller read the newest record first, and fail there"
		v.Repair = "look again afterwards: the record below it may have a state of its own"
		if r.deleting() && r.Node.Suspended {
			v.ResolvesItself = Itself
			return &v
		}
		switch {
		case r.Foreign:
			v.Refused = "the record may be a forgery: see who wrote it"
			return &v
		case r.deleting() && len(r.Revisions) == 1 && !w.allows(secretRef(*r.Latest())):
			v.Refused = fmt.Sprintf("%s is being deleted, and this is the only record: without it helm-controller lets go, and what the release owns, which nothing tells, is left behind: --allow %s",
				r.Node.Ref, Arg(secretRef(*r.Latest())))
			return &v
		}
		v.Actions = r.bracket(ReleaseUnreadable, []Action{
			deleteRecord(*r.Latest(), " alone; the backup keeps its bytes"),
		})
		return &v
	})
}

// releaseUninstalled judges releases that are wanted, but whose records say
// that they were uninstalled and kept (--keep-history): Helm does not install
// over such a name.
func releaseUninstalled(w *World) []Verdict {
	return w.releases(func(r *Release) *Verdict {
		if r.Status != release.Uninstalled || r.Record == nil || r.Node == nil || r.deleting() || r.Node.Helm.Replace || r.ours() {
			return nil
		}
		v := w.verdict(r, ReleaseUninstalled)
		v.Summary = fmt.Sprintf("release %s was uninstalled, and its records were kept", r.Name)
		v.Why = "helm-controller takes it for absent and installs it, which Helm refuses: cannot reuse a name that is still in use"
		v.Repair = "`install.replace: true` in the HelmRelease does it too; never roll such a release back"
		var left []string
		for _, o := range r.Owned {
			switch {
			case o.Unknown:
				left = append(left, fmt.Sprintf("%s (discovery of %s fails)", o.Ref, o.APIVersion))
			case o.Live != nil && o.kept() == "":
				left = append(left, o.Ref.String())
			}
		}
		if why := r.unknown(); why != "" {
			v.Refused = why
			return &v
		}
		if len(left) > 0 {
			v.Refused = "objects of the release are still there, so that it was not uninstalled to the end: " + strings.Join(left, ", ")
			return &v
		}
		v.Actions = r.bracket(ReleaseUninstalled, deleteRecords(r))
		return &v
	})
}
