// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/kubestandup/kubestandup/pkg/build"
	"github.com/kubestandup/kubestandup/pkg/chart"
	"github.com/kubestandup/kubestandup/pkg/coldstart"
	"github.com/kubestandup/kubestandup/pkg/flux"
	"github.com/kubestandup/kubestandup/pkg/knowledge"
	"github.com/kubestandup/kubestandup/pkg/lint/suggest"
	"github.com/kubestandup/kubestandup/pkg/repository"
	"github.com/kubestandup/kubestandup/pkg/tiers"
)

// Options say what is looked at.
type Options struct {
	// Path is the repository, or a folder of it.
	Path string
	// Entries name the entry points; empty for all that are found.
	Entries []string
	// Knowledge extends what is known of who creates which kind.
	Knowledge []KnowledgeFile
	// FetchCharts downloads charts that are not in the repository into
	// ChartCache. Without it what ChartCache holds is used. ChartCache is a
	// folder; empty for none.
	FetchCharts bool
	ChartCache  string
	// RemoteBases lets kustomize fetch.
	RemoteBases bool
	// LooseSubstitution is StrictPostBuildSubstitutions=false.
	LooseSubstitution bool
	// Suggest writes patches.
	Suggest bool
}

// KnowledgeFile extends the knowledge.
type KnowledgeFile struct {
	Name    string
	Content []byte
}

// Run looks at a repository. The error is for what keeps it from looking: no
// repository, no entry point, a knowledge file that cannot be read. It needs no
// cluster, and no network but what the options allow.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	book, err := o.book()
	if err != nil {
		return nil, err
	}
	repo, err := repository.Open(ctx, o.Path, repository.Options{
		Entries: o.Entries, AllowRemoteBases: o.RemoteBases, LooseSubstitution: o.LooseSubstitution,
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := repo.Close(); err == nil && closed != nil {
			report, err = nil, closed
		}
	}()
	cache := newCache(&o)
	clusters := make([]examined, len(repo.Clusters))
	for i, cluster := range repo.Clusters {
		if clusters[i], err = examine(ctx, repo.Dir, cluster, book, cache); err != nil {
			return nil, err
		}
		clusters[i].fetches = o.FetchCharts
	}
	var patch Patch
	if o.Suggest {
		if patch, err = o.suggest(ctx, repo, clusters); err != nil {
			return nil, err
		}
	}
	report = newReport(clusters)
	report.Patch = patch
	report.Loose, report.Root = looseOf(repo), repo.Dir
	return report, nil
}

// suggest writes patches. Clusters that were not asked for may build the files
// that a patch changes: they are looked at for that.
func (o *Options) suggest(ctx context.Context, repo *repository.Repository, clusters []examined) (patch Patch, err error) {
	var others []suggest.Cluster
	if repo.Narrowed {
		whole, opened := repository.Open(ctx, repo.Dir, repository.Options{
			AllowRemoteBases: o.RemoteBases, LooseSubstitution: o.LooseSubstitution,
		})
		switch {
		case errors.Is(opened, repository.ErrNoEntry): // but for what was named
		case opened != nil:
			return Patch{}, opened
		default:
			defer func() { err = errors.Join(err, whole.Close()) }()
			for _, cluster := range whole.Clusters {
				if !slices.ContainsFunc(clusters, func(e examined) bool { return e.cluster.Entry == cluster.Entry }) {
					others = append(others, suggest.Cluster{Name: cluster.Entry, World: &coldstart.Cluster{Tiers: cluster.Tiers}, Locate: cluster.Locate})
				}
			}
		}
	}
	root, err := os.OpenRoot(repo.Dir) // no link leads out of it
	if err != nil {
		return Patch{}, fmt.Errorf("repository %s: %w", repo.Dir, err)
	}
	patch = suggestions(root.FS(), clusters, others)
	return patch, root.Close()
}

func (o *Options) book() (*knowledge.Base, error) {
	book, err := knowledge.Builtin()
	if err != nil {
		return nil, err
	}
	for _, file := range o.Knowledge {
		if book, err = book.Extend(file.Name, file.Content); err != nil {
			return nil, err
		}
	}
	return book, nil
}

// examine predicts one cluster, and asks the rules.
func examine(ctx context.Context, dir string, cluster *repository.Cluster, book *knowledge.Base, cache *chart.Cache) (examined, error) {
	world := &coldstart.Cluster{Tiers: cluster.Tiers, Book: book, Bootstrap: bootstrap(cluster), Standing: cluster.Standing}
	shelf := newShelf(cache, cluster, book)
	shelf.mixed(cluster.Tiers)
	broken, err := shelf.fill(ctx, world)
	if err != nil {
		return examined{}, err
	}
	s := &Subject{
		Entry: cluster.Entry, Root: cluster.Source.String(), World: world, Book: book,
		Prediction: coldstart.Predict(world), Graph: graph(cluster), Locate: cluster.Locate,
	}
	e := examined{subject: s, cluster: cluster}
	e.findings = shelf.uninstallable(s, dir, broken)
	for _, rule := range Rules() {
		e.findings = append(e.findings, rule.Check(s)...)
	}
	e.findings = append(e.findings, unexplained(s, e.findings)...)
	return e, nil
}

func bootstrap(cluster *repository.Cluster) []coldstart.Installed {
	var all []coldstart.Installed
	for _, i := range cluster.Bootstrap {
		all = append(all, coldstart.Installed{Name: i.Name, Namespace: i.Namespace, Chart: i.Chart, Project: i.Project, By: i.File})
	}
	return all
}

// graph is that of the tiers as git has them. HelmReleases are in it too.
func graph(cluster *repository.Cluster) *tiers.Graph {
	snapshot := &flux.Snapshot{}
	add := func(object build.Object, parent *flux.Ref) {
		tier, err := flux.Authored(object.Unstructured)
		if err != nil {
			return // the API server refuses it: no matter of the graph
		}
		tier.Owner = flux.Ref{} // what the manifest says is whoever applied it last
		if parent != nil {
			tier.Owner = *parent
		}
		snapshot.Tiers = append(snapshot.Tiers, tier)
	}
	seen := map[flux.Ref]bool{}
	for i := range cluster.Tiers {
		t := &cluster.Tiers[i]
		var parent *flux.Ref
		if len(t.Parents) > 0 {
			parent = &t.Parents[0]
		}
		if t.Kustomization != nil {
			add(build.Object{Unstructured: t.Kustomization}, parent)
		}
		for _, release := range releases(t) {
			if key := coldstart.Key(release.Ref()); !seen[key] {
				seen[key] = true
				add(release, &t.Tier)
			}
		}
	}
	return tiers.Build(snapshot, tiers.Options{})
}

// releases are the HelmReleases that the tier applies.
func releases(t *build.Followed) []build.Object {
	if t.Result == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(t.Result.Objects), func(o build.Object) bool {
		gk := o.GroupVersionKind().GroupKind()
		return o.Ignored || gk.Group != flux.HelmGroup || gk.Kind != flux.HelmReleaseKind
	})
}

func newCache(o *Options) *chart.Cache {
	if o.ChartCache == "" {
		return nil
	}
	return chart.NewCache(o.ChartCache, o.FetchCharts)
}
