// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// The stage RequestReceived is kept on purpose: it is written before a request
// is handled, so that a client that has its answer finds its request in the log.
// ResponseComplete is written when the answer has left already.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Metadata
`

// Event is one request to the API server.
type Event struct {
	Received    time.Time
	User        string
	UserAgent   string
	Verb        string // get, list, watch, create, update, patch, delete, deletecollection; of other URLs the method in lower case
	URI         string // path and query
	Group       string
	Resource    string // "" for URLs that are no resource, such as discovery
	Subresource string
	Namespace   string
	Name        string
	Code        int // HTTP status; 0 while the answer is not complete
}

// String is one line for a test's message.
func (e Event) String() string {
	return fmt.Sprintf("%s %s → %d (%s)", e.Verb, e.URI, e.Code, e.UserAgent)
}

// DryRun tells whether the request asked the server to change nothing.
func (e Event) DryRun() bool {
	_, query, _ := strings.Cut(e.URI, "?")
	values, err := url.ParseQuery(query)
	return err == nil && slices.Contains(values["dryRun"], "All")
}

// Mutating tells whether the request could have changed the cluster: a verb that
// writes, not as a dry run and not of a review (which is a question), or any
// verb on a sub-resource that reaches into a workload.
func (e Event) Mutating() bool {
	switch e.Subresource {
	case "exec", "attach", "portforward", "proxy":
		return true
	}
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
	case "post", "put": // a URL that is no resource
	default:
		return false
	}
	review := (e.Group == "authorization.k8s.io" || e.Group == "authentication.k8s.io") && strings.HasSuffix(e.Resource, "reviews")
	return !review && !e.DryRun()
}

// Events are requests in the order in which they were received.
type Events []Event

// By keeps the requests whose User-Agent begins with prefix.
func (es Events) By(prefix string) Events {
	return es.Where(func(e Event) bool { return strings.HasPrefix(e.UserAgent, prefix) })
}

// Mutating keeps the requests that could have changed the cluster.
func (es Events) Mutating() Events { return es.Where(Event.Mutating) }

// Where keeps the requests for which keep is true.
func (es Events) Where(keep func(Event) bool) Events {
	var kept Events
	for _, e := range es {
		if keep(e) {
			kept = append(kept, e)
		}
	}
	return kept
}

// String is a line per request.
func (es Events) String() string {
	var b strings.Builder
	for _, e := range es {
		b.WriteString(e.String() + "\n")
	}
	return b.String()
}

// Mark is a point in the audit log.
type Mark struct{ offset int64 }

// Audit returns all requests since the cluster was started: each whose client
// has an answer, and whatever else was received by now.
func (c *Cluster) Audit(ctx context.Context) (Events, error) { return c.Since(ctx, Mark{}) }

// Mark marks the end of the audit log as it is.
func (c *Cluster) Mark() Mark {
	info, err := os.Stat(c.auditLog())
	if err != nil {
		return Mark{}
	}
	return Mark{info.Size()}
}

// Since returns the requests that were received after a mark, as Audit does.
func (c *Cluster) Since(ctx context.Context, mark Mark) (Events, error) {
	// Nothing can be missing, but the code of an answer that has just left may
	// be. A request that hangs keeps its 0.
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for asked := -1; ; {
		events, err := readAudit(c.auditLog(), mark.offset)
		if err != nil {
			return nil, err
		}
		if asked < 0 {
			asked = len(events) // later ones, of whoever else is at work, are not waited for
		}
		if !slices.ContainsFunc(events[:asked], func(e Event) bool { return e.Code == 0 }) {
			return events, nil
		}
		select {
		case <-ctx.Done():
			return events, nil
		case <-tick.C:
		}
	}
}

func (c *Cluster) auditLog() string { return c.file("audit.log") }

// auditLine is what is read of an audit.k8s.io/v1 Event.
type auditLine struct {
	AuditID    string    `json:"auditID"`
	Stage      string    `json:"stage"`
	RequestURI string    `json:"requestURI"`
	Verb       string    `json:"verb"`
	UserAgent  string    `json:"userAgent"`
	Received   time.Time `json:"requestReceivedTimestamp"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		APIGroup    string `json:"apiGroup"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

func readAudit(path string, offset int64) (Events, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	before := min(offset, 1)
	data, err := io.ReadAll(io.NewSectionReader(f, offset-before, 1<<62))
	if err != nil {
		return nil, err
	}
	if before > 0 {
		// A mark may have been set while a line was being written.
		data = data[bytes.IndexByte(data, '\n')+1:]
	}
	// A line that is being written has no end yet.
	data = data[:bytes.LastIndexByte(data, '\n')+1]

	var events Events
	index := map[string]int{} // by audit id
	for line := range bytes.Lines(data) {
		var l auditLine
		if err := json.Unmarshal(line, &l); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		at, known := index[l.AuditID]
		switch {
		case known:
		case l.Stage == "RequestReceived" || l.ResponseStatus.Code == http.StatusUnauthorized:
			// Who cannot log in is not let through to where requests are received.
			at = len(events)
			index[l.AuditID] = at
			events = append(events, l.event())
		default:
			continue // received before the mark
		}
		if code := l.ResponseStatus.Code; code != 0 {
			events[at].Code = code
		}
	}
	return events, nil
}

func (l auditLine) event() Event {
	return Event{
		Received:    l.Received,
		User:        l.User.Username,
		UserAgent:   l.UserAgent,
		Verb:        l.Verb,
		URI:         l.RequestURI,
		Group:       l.ObjectRef.APIGroup,
		Resource:    l.ObjectRef.Resource,
		Subresource: l.ObjectRef.Subresource,
		Namespace:   l.ObjectRef.Namespace,
		Name:        l.ObjectRef.Name,
	}
}
