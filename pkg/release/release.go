// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Key names a release: the namespace that holds its records, which need not be
// the one that holds its objects, and its name.
type Key struct{ Namespace, Name string }

// String is namespace/name.
func (k Key) String() string { return k.Namespace + "/" + k.Name }

// Compare orders keys by namespace, then name.
func (k Key) Compare(o Key) int {
	return cmp.Or(strings.Compare(k.Namespace, o.Namespace), strings.Compare(k.Name, o.Name))
}

// Status is what a record says of its revision. The words are Helm's
// (helm.sh/helm/v3/pkg/release/status.go); Helm 4 has the same.
type Status string

// The statuses that Helm writes.
const (
	Unknown         Status = "unknown"
	Deployed        Status = "deployed"
	Uninstalled     Status = "uninstalled"
	Superseded      Status = "superseded"
	Failed          Status = "failed"
	Uninstalling    Status = "uninstalling"
	PendingInstall  Status = "pending-install"
	PendingUpgrade  Status = "pending-upgrade"
	PendingRollback Status = "pending-rollback"
)

// Pending tells whether an operation is under way, or was when Helm died. Helm
// refuses to begin another one over it. Uninstalling is not among them.
func (s Status) Pending() bool {
	return s == PendingInstall || s == PendingUpgrade || s == PendingRollback
}

// Revision is one record as the metadata of its Secret tells; nothing of it is
// decoded.
type Revision struct {
	Key
	// Version is the revision's number, from the Secret's name. At least 1.
	Version int
	// Label is the label "status", a hint: people edit it, and Helm's lock is in
	// the payload.
	Label           Status
	UID             types.UID
	ResourceVersion string
	// Created is when the Secret was created: the start of the operation.
	Created time.Time
	// Modified is when anybody last wrote the Secret, to the second, as its
	// managedFields tell; at least Created. Helm's label "modifiedAt" is no help:
	// a revision begins with that of the one before it, and an uninstall writes
	// the old one again (pkg/storage/driver/secrets.go applies rls.Labels last).
	Modified time.Time
	// Deleted is the Secret's deletionTimestamp; zero when it is not going.
	Deleted time.Time
}

const secretPrefix = "sh.helm.release.v1."

// Secret is the name of the Secret: sh.helm.release.v1.NAME.vN.
func (r Revision) Secret() string {
	return secretPrefix + r.Name + ".v" + strconv.Itoa(r.Version)
}

// parseSecret is the release's name and the revision's number of which a Secret
// is the record. A release's name may hold dots, so the last ".v" counts.
func parseSecret(secret string) (name string, version int, ok bool) {
	rest, ok := strings.CutPrefix(secret, secretPrefix)
	if !ok {
		return "", 0, false
	}
	at := strings.LastIndex(rest, ".v")
	if at <= 0 {
		return "", 0, false
	}
	name, digits := rest[:at], rest[at+len(".v"):]
	version, err := strconv.Atoi(digits)
	// Helm looks a record up by the name that it would give it, so v01 and v+1
	// are nobody's.
	if err != nil || version < 1 || strconv.Itoa(version) != digits {
		return "", 0, false
	}
	return name, version, true
}

// History is all revisions of one release, ascending by version.
type History struct {
	Key
	Revisions []Revision
}

// Latest is the highest revision, the one whose payload decides what Helm does.
// It is nil only for a History without revisions, which List never returns.
func (h *History) Latest() *Revision {
	if len(h.Revisions) == 0 {
		return nil
	}
	return &h.Revisions[len(h.Revisions)-1]
}

// histories groups revisions by release, everything sorted.
func histories(revisions []Revision) []History {
	slices.SortFunc(revisions, func(a, b Revision) int {
		return cmp.Or(a.Compare(b.Key), cmp.Compare(a.Version, b.Version))
	})
	var all []History
	for start := 0; start < len(revisions); {
		key := revisions[start].Key
		end := start
		for end < len(revisions) && revisions[end].Key == key {
			end++
		}
		all = append(all, History{Key: key, Revisions: revisions[start:end:end]})
		start = end
	}
	return all
}
