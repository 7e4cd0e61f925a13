// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"cmp"
	"fmt"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/flux"
)

// builds are what tiers would apply.
type builds struct {
	all []build.Followed
	// unfetched are the sources whose artifact could not be fetched, and why.
	// Their APIVersion is empty.
	unfetched map[flux.Ref]error
	// variables are those of the cluster, each read once.
	variables build.Variables

	at      map[string]*build.Followed
	objects map[identity][]built
}

// identity is what Flux knows an object by: its version may change.
type identity struct{ group, kind, namespace, name string }

func identityOf(r flux.Ref) identity {
	return identity{r.Group(), r.Kind, r.Namespace, r.Name}
}

// built is an object, and the tier that applies it.
type built struct {
	build.Object
	tier *build.Followed
}

func (b *builds) index() {
	b.at, b.objects = map[string]*build.Followed{}, map[identity][]built{}
	for i := range b.all {
		f := &b.all[i]
		b.at[f.Tier.Key()] = f
		if f.Result == nil {
			continue
		}
		for _, o := range f.Result.Objects {
			at := identityOf(o.Ref())
			b.objects[at] = append(b.objects[at], built{o, f})
		}
	}
}

// of is the build of a Kustomization, nil when it was not reached.
func (b *builds) of(tier flux.Ref) *build.Followed { return b.at[tier.Key()] }

// unknown says of how many tiers no build is known, empty where there is none:
// what was looked for in builds was then not looked for everywhere.
func (b *builds) unknown() string {
	count := 0
	for i := range b.all {
		if b.all[i].Result == nil {
			count++
		}
	}
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("; of %d nothing is known", count)
}

// authored is the manifest of an object in git, and the tier whose build it
// comes from; false when no tier builds it.
func (b *builds) authored(r flux.Ref) (built, bool) {
	all := b.objects[identityOf(r)]
	if len(all) == 0 {
		return built{}, false
	}
	return all[0], true
}

// why is the reason that a tier was not built, nil when it was.
func (b *builds) why(f *build.Followed) error {
	if f.Outside == nil {
		return f.Err
	}
	source := *f.Outside
	source.APIVersion = ""
	return cmp.Or(b.unfetched[source], error(&noArtifactError{source}))
}

type noArtifactError struct{ source flux.Ref }

func (e *noArtifactError) Error() string {
	return e.source.String() + " does not exist or has no artifact"
}
