// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package unwedge

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
	"github.com/kubestandup/kubestandup/pkg/finding"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/guard"
	"github.com/kubestandup/kubestandup/pkg/printers"
	"github.com/kubestandup/kubestandup/pkg/progress"
	"github.com/kubestandup/kubestandup/pkg/wedge"
)

// labels is how wide the words before a paragraph are.
const labels = 9

func (o *Options) print(plan *wedge.Plan) error {
	if o.Output != "" {
		return printers.PrintObject(o.shell.Out, o.Output, plan)
	}
	w := bufio.NewWriter(o.shell.Out)
	p := &page{w: w, width: printers.TerminalWidth(o.shell.Out), now: o.now}
	for i := range plan.Verdicts {
		if i > 0 {
			p.line("")
		}
		p.verdict(&plan.Verdicts[i])
	}
	return w.Flush()
}

// page prints verdicts for people.
type page struct {
	w     io.Writer
	width int
	now   time.Time
}

func (p *page) line(text string) { fmt.Fprintln(p.w, printers.OneLine(text)) }

func (p *page) say(label, text string) {
	if text != "" {
		_, _ = io.WriteString(p.w, printers.Paragraph(2, label, labels, text, p.width)) // Flush has the error
	}
}

func (p *page) verdict(v *wedge.Verdict) {
	title := fmt.Sprintf("%s: %s", shown(v.Object), v.State)
	if v.Since != nil {
		title += " for " + printers.Age(*v.Since, p.now)
	}
	if v.State != string(v.Cause) {
		title += fmt.Sprintf(" (%s)", v.Cause)
	}
	p.line(title)
	_, _ = io.WriteString(p.w, printers.Paragraph(2, "", 0, sentence(v.Summary), p.width))
	for i, e := range v.Evidence {
		label := ""
		if i == 0 {
			label = "seen"
		}
		about := ""
		if e.Object != v.Object {
			about = shown(e.Object) + " "
		}
		p.say(label, strings.TrimSpace(about+e.Field)+": "+e.Value)
	}
	p.say("ends", ends(v))
	p.say("repair", sentence(v.Repair))
	for _, c := range v.Commands {
		p.command(c)
	}
	if v.Choice != nil {
		for _, option := range v.Choice.Options {
			p.option(&option)
		}
	}
	p.say("refused", v.Refused)
	if v.Refused != "" {
		return
	}
	for i := range v.Actions {
		a := &v.Actions[i]
		label := ""
		if i == 0 {
			label = "plan"
		}
		p.say(label, action(i, a))
	}
}

func (p *page) option(o *wedge.Option) {
	p.say("choose", o.Value+" deletes "+list(o.Deletes, "nothing"))
	p.say("", "and keeps "+list(o.Keeps, "nothing"))
	for _, note := range o.Notes {
		p.say("", note)
	}
	if o.Refused != "" {
		p.say("", "refused: "+o.Refused)
		return
	}
	p.command(o.Command)
}

// command prints one that is meant to be pasted, so it is never folded.
func (p *page) command(text string) {
	if text != "" {
		_, _ = io.WriteString(p.w, printers.Paragraph(2, "", labels, text, 0))
	}
}

func list(items []string, none string) string {
	if len(items) == 0 {
		return none
	}
	return strings.Join(items, ", ")
}

// ends says whether a controller ends the state.
func ends(v *wedge.Verdict) string {
	said := "not by itself"
	switch v.ResolvesItself {
	case wedge.Itself:
		said = "by itself"
		if v.ResolvesWhen != "" {
			said += ", " + v.ResolvesWhen
		}
	case wedge.When:
		said = v.ResolvesWhen
	}
	if v.Why != "" {
		said += ": " + v.Why
	}
	return said
}

func action(i int, a *wedge.Action) string {
	mark := ""
	if a.Destructive {
		mark = ", DESTRUCTIVE"
	}
	said := fmt.Sprintf("%s. %s: %s%s", strconv.Itoa(i+1), shown(a.Object), a.Description, mark)
	if a.Message != "" {
		said += " (" + a.Message + ")"
	}
	return said
}

// shown is how an object is named here: a record by its release, as it is typed.
func shown(ref flux.Ref) string {
	if name, ok := strings.CutPrefix(wedge.Arg(ref), "release/"); ok {
		return "Release/" + name + " " + ref.Name[strings.LastIndex(ref.Name, ".v")+1:]
	}
	return ref.String()
}

// sentence ends what is one. A first word that is a name stays as it is: it may
// be searched for.
func sentence(text string) string {
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	first, _, _ := strings.Cut(text, " ")
	if strings.Trim(first, "abcdefghijklmnopqrstuvwxyz,") == "" {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	return text + "."
}

// say shows actions as they run, on stderr.
func (o *Options) say(shown *progress.Progress) func(*wedge.Verdict, *wedge.Action) {
	return func(_ *wedge.Verdict, a *wedge.Action) {
		if a.Result == "" {
			shown.Set(subject(a), a.Description)
			return
		}
		text := a.Message
		if a.Backup != "" {
			text = strings.TrimSpace(text + " (backup " + a.Backup + ")")
		}
		shown.Done(subject(a), string(a.Result), text)
	}
}

// subject is by what an action that runs is shown.
func subject(a *wedge.Action) string { return fmt.Sprintf("%s %s", a.Verb, a.Object) }

// restoring says how the backups are put back.
func (o *Options) restoring(plan *wedge.Plan, dir string, target *util.Target) {
	if !slices.ContainsFunc(plan.Verdicts, func(v wedge.Verdict) bool {
		return slices.ContainsFunc(v.Actions, func(a wedge.Action) bool { return a.Backup != "" })
	}) {
		return
	}
	o.note("To put back what was backed up (the objects, not the data that they held): kubectl apply --server-side --force-conflicts -f " + guard.ShellQuote(dir) + " " + target.KubectlArgs())
}

// again repeats the flags that this plan was made with.
func (o *Options) again(more string) string {
	args := slices.Clone(o.Names)
	for _, only := range o.Only {
		args = append(args, "--only", only)
	}
	if o.Namespace != "" {
		args = append(args, "-n", o.Namespace)
	}
	for _, allow := range o.Choices.Allow {
		args = append(args, "--allow", allow)
	}
	if o.Choices.Uninstalling != "" {
		args = append(args, "--uninstalling="+o.Choices.Uninstalling)
	}
	if o.Choices.Hooks {
		args = append(args, "--run-hooks")
	}
	if o.Choices.OlderThan > 0 {
		args = append(args, "--older-than", o.Choices.OlderThan.String())
	}
	return strings.Join(append(args, more), " ")
}

// noteElsewhere says what -n leaves out: what was seen and is not shown, and what
// was not even looked at.
func (o *Options) noteElsewhere(world *wedge.World, plan *wedge.Plan) {
	everywhere := *o
	everywhere.Namespace = ""
	hidden, unlooked := 0, 0
	for i := range plan.Verdicts {
		if v := &plan.Verdicts[i]; everywhere.wants(v) && !o.inScope(v.Object) {
			hidden++
		}
	}
	for _, r := range world.Releases {
		if r.Unlooked && everywhere.names(r.Object()) {
			unlooked++
		}
	}
	var parts []string
	if hidden > 0 {
		parts = append(parts, fmt.Sprintf("not shown: %s about other namespaces, or what is in none", finding.Count(hidden, "verdict")))
	}
	if unlooked > 0 {
		parts = append(parts, fmt.Sprintf("not looked at: %s in other namespaces", finding.Count(unlooked, "release")))
	}
	if len(parts) > 0 {
		o.note(strings.Join(parts, "; ") + ". Leave -n out to see them")
	}
}
