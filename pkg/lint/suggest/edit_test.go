// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestEdit(t *testing.T) {
	const head = "kind: K\nmetadata: {name: a}\n"
	at := address{kind: "K", name: "a"}
	item := mapping("name", "new")
	add := func(f *file) error { return f.addItems(at, "list", item) }
	set := func(f *file) error { return f.setField(at, "spec", "on", yes()) }
	remove := func(name string) func(f *file) error {
		return func(f *file) error {
			err := f.removeItems(at, "", "list", func(n *yaml.Node) bool { return scalar(n) == name })
			return err
		}
	}
	tests := []struct {
		name         string
		change       func(*file) error
		before, want string // behind head; an empty want is a refusal
	}{
		{"behind a comment that is indented", add, "spec:\n  list:\n  - name: old\n  # - name: out\nstatus: {}\n", "spec:\n  list:\n  - name: old\n  - name: new\n  # - name: out\nstatus: {}\n"},
		{"deeper", add, "spec:\n    list:\n      -   name: old\n\n    a: b\n", "spec:\n    list:\n      -   name: old\n      - name: new\n\n    a: b\n"},
		{"a block scalar at the end", add, "spec:\n  list:\n    - name: old\n      expr: |\n        - a\n\n        # b\n\n# c\n", "spec:\n  list:\n    - name: old\n      expr: |\n        - a\n\n        # b\n    - name: new\n\n# c\n"},
		{"empty", add, "spec:\n  list: []\n", "spec:\n  list: [{name: new}]\n"},
		{"flow over lines", add, "spec:\n  list: [\n    {name: old},\n  ]\n", "spec:\n  list: [{name: new}, \n    {name: old},\n  ]\n"},
		{"none yet", add, "spec:\n  a: b\nstatus: {}\n", "spec:\n  a: b\n  list:\n    - name: new\nstatus: {}\n"},
		{"none yet, style of another list", add, "spec:\n  a:\n  - b\nstatus: {}\n", "spec:\n  a:\n  - b\n  list:\n  - name: new\nstatus: {}\n"},
		{"null", add, "spec:\n  list:\n  a: b\n", ""},
		{"a quoted text that goes back to the margin", add, "spec:\n  a: \"b\nc\"\n", ""},
		{"an alias", add, "x: &x\n- name: old\nspec:\n  list: *x\n", ""},
		{"an anchor with an alias", add, "spec:\n  list: &x\n  - name: old\n  b: *x\n", ""},
		{"two of the name", add, "spec:\n  a: b\n---\n" + head + "spec: {}\n", ""},
		{"a field", set, "spec:\n  a: |-\n    b\n", "spec:\n  a: |-\n    b\n  on: true\n"},
		{"a field that is there", set, "spec:\n  \"on\": x\n", ""},
		{"a field in flow style", set, "spec: {}\n", "spec: {on: true}\n"},
		{"a field behind wide characters", set, "spec: {\"ä€\": 1}\n", "spec: {on: true, \"ä€\": 1}\n"},
		{"other documents stay", set, "spec:\n  a: b\n---\n{a: [1,2 ] }\n", "spec:\n  a: b\n  on: true\n---\n{a: [1,2 ] }\n"},
		{"no spec", set, "a: b\n", ""},
		{"remove", remove("b"), "list:\n- a\n- b # why\n- c\n", "list:\n- a\n- c\n"},
		{"remove the last", remove("c"), "list:\n- a\n# because\n- c\n", "list:\n- a\n# because\n"},
		{"remove the only one", remove("a"), "list:\n- a\nx: y\n", "list: []\nx: y\n"},
		{"remove in flow style", remove("b"), "list: [a, \"b\", c]\n", "list: [a, c]\n"},
		{"remove the last in flow style", remove("c"), "list: [ a, 'b' , c ]\n", "list: [ a, 'b']\n"},
		{"remove the only one in flow style", remove("c"), "list: [c] # x\n", "list: [] # x\n"},
		{"remove one with a bracket", remove("a]"), "list: [b, \"a]\"]\n", ""},
		{"remove over lines", remove("b"), "list: [a,\n  b,\n  c]\n", ""},
		{"remove what is not there", remove("z"), "list: [a]\n", "list: [a]\n"},
	}
	for _, test := range tests {
		for _, eol := range []string{"\n", "\r\n"} {
			t.Run(test.name, func(t *testing.T) {
				before := strings.ReplaceAll(head+test.before, "\n", eol)
				f := newFile("f.yaml", before)
				err := test.change(f)
				want := strings.ReplaceAll(head+test.want, "\n", eol)
				if test.want == "" {
					if err == nil {
						t.Errorf("no refusal:\n%s", f.content())
					}
					want = before // what is refused is left alone
				} else if err != nil {
					t.Fatal(err)
				}
				if f.content() != want {
					t.Errorf("it is\n%s\nwant\n%s", f.content(), want)
				}
			})
		}
	}
}

func TestFree(t *testing.T) {
	dir := Unpack(t, "-- open/a.yaml --\n-- closed/kustomization.yaml --\n-- open/below/kustomization.yaml --\n")
	tree := newTree(os.DirFS(dir))
	for _, test := range []struct {
		tier, folder string
		want         bool
	}{
		{"open", "open/x", true},
		{"open", "open/y/x", true},
		{"open", "open/below/x", false},
		{"open", "open-x", false},
		{"closed", "closed/x", false},
		{"closed", "closed-x", false},
		{".", "x", true},
		{".", "closed/x", false},
	} {
		if got := tree.takes(test.tier, test.folder); got != test.want {
			t.Errorf("a tier that builds %s takes up %s: %v", test.tier, test.folder, got)
		}
	}
}

func FuzzEdit(f *testing.F) {
	for _, seed := range []string{
		edge, "spec:\n  dependsOn:\n  -   name: a\n  # - b\n\n    # c\nstatus: {}\n---\nresources:\n- a\n# b\n- 'c'\n", "spec: {dependsOn: [\n{a: b}], \"ä\": [] }\n",
		"---\n# a\nspec:\n  resources: [a]\n  b: |+\n    c\n\n    # d\n\n---\n", "spec: &a\n  x: \"b\nc\"\ny: *a\n", "spec:\r\n  - a\r\nresources:\r\n  - b # c\r\n",
		"resources: [ \"a\", 'b]', c , [d], {e: f}]\nspec:\n    a: >-\n      b\n      - c\n", strings.SplitAfter(config(waits, edge), "---\n")[1],
	} {
		f.Add(seed)
	}
	f.Add("kind: K\nmetadata: {name: a}\nspec: {list: [a, {b: c}], on: \"x\"}\n...\n")
	f.Add("kind: K\nspec:\n  resources:\n  - ? a\n    : b\n  -\n    c\n  - !!str d\n  - &x e\n  - *x\nresources: [*x, 'a', \"b]\"]\n")
	f.Fuzz(func(t *testing.T, content string) {
		for _, change := range []func(*file, address) error{
			func(f *file, a address) error { return f.addItems(a, "dependsOn", mapping("name", "n")) },
			func(f *file, a address) error { return f.setField(a, "spec", "wait", yes()) },
			func(f *file, a address) error {
				err := f.removeItems(a, "spec", "resources", func(*yaml.Node) bool { return true })
				return err
			},
			func(f *file, a address) error {
				err := f.removeItems(a, "", "resources", func(n *yaml.Node) bool { return scalar(n) != "" })
				return err
			},
		} {
			file := newFile("f.yaml", content)
			before, err := file.segments()
			if err != nil {
				return
			}
			for i, s := range before {
				if s.object != nil {
					changesOnly(t, content, before, i, change)
				}
			}
		}
	})
}

// changesOnly: other documents, and other fields of this one, are what they
// were, whatever was changed.
func changesOnly(t *testing.T, content string, before []segment, at int, change func(*file, address) error) {
	t.Helper()
	f := newFile("f.yaml", content)
	old := f.lines
	err := change(f, addressOf(before[at].object))
	if err != nil {
		if f.content() != content {
			t.Errorf("refused, and changed:\n%q\n%q", content, f.content())
		}
		return
	}
	after, err := f.segments()
	if err != nil || len(after) != len(before) {
		t.Fatalf("%v: %d documents of %d:\n%q\n%q", err, len(after), len(before), content, f.content())
	}
	for i := range before {
		a, b := before[i], after[i]
		was, is := strings.Join(old[a.from:a.to], ""), strings.Join(f.lines[b.from:b.to], "")
		if i != at && was != is {
			t.Errorf("document %d was\n%q\nand is\n%q", i, was, is)
		}
		if i == at && !reflect.DeepEqual(values(a.object), values(b.object)) {
			t.Errorf("other fields changed:\n%q\n%q", was, is)
		}
	}
}

// values are those of an object without the fields that the test changes.
func values(node *yaml.Node) any {
	var all map[string]any
	if node.Decode(&all) != nil {
		return nil
	}
	spec, _ := all["spec"].(map[string]any)
	for _, m := range []map[string]any{all, spec} {
		for _, key := range []string{"dependsOn", "wait", "resources"} {
			delete(m, key)
		}
	}
	return all
}

// FuzzCut: a document that is cut out and the rest are together what was there.
func FuzzCut(f *testing.F) {
	for _, seed := range []string{
		cdi + "---\n" + profile, "---\n" + profile + "---\n\n" + cdi, "# a\n---\na: b\n--- # c\nd: e\n---\n", "a: |+\n  b\n\n---\nc: d", "a: b\r\n---\r\nc: d\r\n\r\n", "\ufeffa: b\n---\nc: d",
	} {
		f.Add(seed, uint(1))
		f.Add(seed, uint(5))
	}
	f.Fuzz(func(t *testing.T, content string, which uint) {
		file := newFile("f.yaml", content)
		before, err := file.segments()
		if err != nil {
			return
		}
		taken, err := file.cut(func(n *yaml.Node) bool { return (uint(len(n.Content))+uint(len(addressOf(n).name)))%8 <= which%8 })
		if err != nil {
			t.Fatal(err)
		}
		var old, now []string
		for _, s := range before {
			if s.object != nil {
				old = append(old, objectText(t, s.object))
			}
		}
		for _, part := range []string{taken, file.content()} {
			all, err := newFile("part", part).segments()
			if err != nil {
				t.Fatalf("%v:\n%q", err, part)
			}
			for _, s := range all {
				if s.object != nil {
					now = append(now, objectText(t, s.object))
				}
			}
		}
		slices.Sort(old)
		slices.Sort(now)
		if !slices.Equal(old, now) {
			t.Errorf("of\n%q\nbecame\n%q\nand\n%q", content, taken, file.content())
		}
	})
}

func objectText(t *testing.T, node *yaml.Node) string {
	t.Helper()
	out, err := yaml.Marshal(bare(node))
	if err != nil {
		return "" // aliases in keys and the like
	}
	return string(out)
}

// FuzzDiff applies diffs with the real git.
func FuzzDiff(f *testing.F) {
	f.Add("a\nb\nc\nd\ne\nf\ng\nh\n", "a\nb\nc\nd\ne\nf\ng\nh\ni")
	f.Add("a\r\nb", "a\nb\n")
	f.Add("x", "")
	f.Add("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n12\n")
	f.Fuzz(func(t *testing.T, before, after string) {
		if before == "" || before == after || strings.ContainsRune(before+after, 0) {
			return
		}
		dir := t.TempDir()
		write(t, dir, "a/f.yaml", before)
		tree := newTree(os.DirFS(dir))
		if _, err := tree.open("a/f.yaml"); err != nil {
			t.Fatal(err)
		}
		tree.create("a/f.yaml", after)
		diff := tree.diff([]string{"a note"})
		run(t, dir, diff, "git", "apply", "--whitespace=nowarn", "-")
		if got := read(t, dir)["a/f.yaml"]; got != after {
			t.Errorf("it is %q, want %q:\n%s", got, after, diff)
		}
	})
}

// TestAnEmptiedListOfResources: it goes where the kustomization file says more,
// and stays, empty, where kustomize would refuse what is left.
func TestAnEmptiedListOfResources(t *testing.T) {
	const head = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
	for in, want := range map[string]string{
		head + "namespace: x\nresources:\n  - a.yaml\n": head + "namespace: x\n",
		head + "resources:\n  - a.yaml\n":               head + "resources: []\n",
	} {
		f := newFile("kustomization.yaml", in)
		segments, err := f.segments()
		if err != nil {
			t.Fatal(err)
		}
		err = f.removeItems(addressOf(segments[0].object), "", "resources", func(n *yaml.Node) bool { return scalar(n) == "a.yaml" })
		if got := f.content(); err != nil || got != want {
			t.Errorf("%v\n%s\nwant\n%s", err, got, want)
		}
	}
}
