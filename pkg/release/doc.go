// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Package release reads the records in which Helm 3 and Helm 4 keep what they
// did, and edits them without loss.
//
// A record is a Secret, one per revision of a release:
//
//	List    the metadata of all records, a History per release; no payload
//	Get     one record, decoded: its status, objects and hooks
//	Record.WithStatus   the same record in another status, every other byte kept
//
// Helm locks on the status in the payload of the highest revision, and looks
// deployed revisions up by the label "status" (pkg/storage/driver/secrets.go),
// so an edit writes both.
//
// Records hold the values of a release, and with them secrets. A Record keeps
// no values that a caller can reach, and no error quotes what it could not read.
package release
