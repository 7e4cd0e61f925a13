// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package draft

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

func (w *writer) variables() {
	vars, plain := guessVariables(w.live, w.tree)
	on := slices.ContainsFunc(vars, (*variable).on)
	w.gap()
	w.say(0, "Variables that tell this cluster from another one, and placeholders. preflight resolves them as Flux would.")
	w.set(0, on, "variables:")
	for _, v := range vars {
		w.variable(v)
	}
	if len(vars) == 0 {
		w.set(0, false, "- name: CLUSTER_NAME")
		w.set(2, false, "required: true")
		w.set(2, false, `forbid: ["dev-*"]`)
	}
	if len(plain) > 0 {
		w.say(0, "Nothing was guessed about "+list(plain)+".")
	}
	w.unseen()
}

// unseen names the Sets about which nothing could be said.
func (w *writer) unseen() {
	users := map[Set][]string{}
	for _, t := range w.live.Tiers {
		for _, s := range t.From {
			users[s] = append(users[s], tierName(t.Ref))
		}
	}
	sets := slices.SortedFunc(maps.Keys(users), func(a, b Set) int { return a.ref().Compare(b.ref()) })
	for _, s := range sets {
		switch known := w.live.Known[s]; {
		case known.Missing:
			w.say(0, fmt.Sprintf("%s does not exist, and %s is substituted from it.", s, list(users[s])))
		case known.Hidden:
			w.say(0, fmt.Sprintf("Which names %s holds could not be read; %s is substituted from it.", s, list(users[s])))
		}
	}
}

// on is true where something is asserted, and not only suggested.
func (v *variable) on() bool {
	return v.required && v.not == "" || len(v.forbid) > 0 || v.placeholder != ""
}

func (w *writer) variable(v *variable) {
	on := v.on()
	for _, why := range v.why {
		w.say(0, why)
	}
	w.set(0, on, "- name: "+scalar(v.name))
	if v.required {
		if v.not != "" {
			w.say(2, "Not required, since every substituted tier would have to know it, and these do not or may not: "+v.not+".")
		}
		w.set(2, on && v.not == "", "required: true")
	}
	if len(v.forbid) > 0 {
		var values []string
		for _, f := range v.forbid {
			if !slices.Contains(values, f.value) {
				values = append(values, f.value)
			}
		}
		w.set(2, on, "forbid: "+flow(values))
	}
	if v.placeholder == "" {
		return
	}
	w.set(2, on, "placeholder: "+strconv.Quote(v.placeholder))
	if len(v.usedBy) > 0 {
		w.say(2, "These tiers use it. Which of them cannot come up without it (blocks), and which come up and fail at what they are for (degrades)?")
	} else {
		w.say(2, "Which tiers cannot come up without it (blocks), and which come up and fail at what they are for (degrades)?")
	}
	w.set(2, false, "blocks: "+flow(v.usedBy))
	w.set(2, false, "degrades: []")
}
