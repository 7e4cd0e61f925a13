// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// resolved is what a kubeconfig and kubectl's flags come to, read once: no
// file name is left in it that a later edit could turn into another cluster.
type resolved struct {
	config    *rest.Config
	context   string
	namespace string
	// explicitNamespace is true when -n was given.
	explicitNamespace bool
}

// resolve reads the kubeconfig as kubectl does, but for its two silent
// fallbacks: an empty configuration becomes neither the service account of the
// Pod that this happens to run in nor http://localhost:8080.
func resolve(flags *genericclioptions.ConfigFlags) (*resolved, error) {
	rules := loadingRules(flags)
	files := kubeconfigFiles(rules)
	name := describeFiles(files)

	raw, err := rules.Load()
	if errors.Is(err, fs.ErrNotExist) && rules.ExplicitPath != "" {
		return nil, fmt.Errorf("%s does not exist: pass --kubeconfig with a file that does", name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", name, err)
	}
	context, err := chooseContext(raw, flags, name)
	if err != nil {
		return nil, err
	}
	client := clientcmd.NewNonInteractiveClientConfig(*raw, context, overrides(flags), rules)
	config, err := client.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%s cannot be used: %w", name, err)
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("%s names a file that cannot be read: %w", name, err)
	}
	config.CAFile, config.CertFile, config.KeyFile = "", "", ""

	r := &resolved{config: config, context: context}
	r.namespace, r.explicitNamespace, err = client.Namespace()
	if err != nil {
		return nil, fmt.Errorf("%s cannot be used: %w", name, err)
	}
	return r, nil
}

func loadingRules(flags *genericclioptions.ConfigFlags) *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = value(flags.KubeConfig)
	rules.WarnIfAllMissing = false // what is missing ends in a sentence of ours
	return rules
}

// chooseContext returns the name of the context to use, empty when flags alone
// say where to connect to. Every other way leads to a sentence.
func chooseContext(raw *clientcmdapi.Config, flags *genericclioptions.ConfigFlags, files string) (string, error) {
	asked := value(flags.Context)
	name := orText(asked, raw.CurrentContext)
	byFlags := value(flags.APIServer) != "" || value(flags.ClusterName) != ""
	contexts := "it has the contexts " + list(slices.Collect(maps.Keys(raw.Contexts)))
	if len(raw.Contexts) == 0 {
		contexts = "it has no context"
	}
	context, ok := raw.Contexts[name]
	switch {
	case ok:
	case name == "" && byFlags:
		context = clientcmdapi.NewContext()
	case len(raw.Contexts) == 0 && len(raw.Clusters) == 0 && asked == "":
		return "", fmt.Errorf("%s names no cluster: set KUBECONFIG or pass --kubeconfig%s", files, podHint())
	case name == "":
		return "", fmt.Errorf("%s has no current context: choose one with --context; %s", files, contexts)
	case asked == "":
		return "", fmt.Errorf("%s has no context %s, its current context: choose one with --context; %s", files, printable(name), contexts)
	default:
		return "", fmt.Errorf("%s has no context %s: choose another with --context; %s", files, printable(name), contexts)
	}
	return name, checkContext(raw, flags, name, context, files)
}

// checkContext finds what client-go would fill in from its defaults, or say in
// several lines.
func checkContext(raw *clientcmdapi.Config, flags *genericclioptions.ConfigFlags, name string, context *clientcmdapi.Context, files string) error {
	user, cluster := "which --user names", "which --cluster names"
	if value(flags.AuthInfoName) == "" {
		user = "which context " + printable(name) + " uses"
	}
	if value(flags.ClusterName) == "" {
		cluster = "which context " + printable(name) + " uses"
	}
	clusterName := orText(value(flags.ClusterName), context.Cluster)
	switch c, ok := raw.Clusters[clusterName]; {
	case value(flags.APIServer) != "":
	case !ok:
		return fmt.Errorf("%s has no cluster %s, %s: it has the clusters %s",
			files, printable(clusterName), cluster, list(slices.Collect(maps.Keys(raw.Clusters))))
	case c.Server == "":
		return fmt.Errorf("%s gives no server for cluster %s, %s", files, printable(clusterName), cluster)
	}
	userName := orText(value(flags.AuthInfoName), context.AuthInfo)
	if _, ok := raw.AuthInfos[userName]; !ok && userName != "" {
		return fmt.Errorf("%s has no user %s, %s: it has the users %s",
			files, printable(userName), user, list(slices.Collect(maps.Keys(raw.AuthInfos))))
	}
	return nil
}

// overrides mirrors ConfigFlags.toRawKubeConfigLoader of cli-runtime, which
// does not export them, without its ClusterDefaults: those are localhost:8080.
// A test fails when ConfigFlags grows a field that is not handled here.
func overrides(f *genericclioptions.ConfigFlags) *clientcmd.ConfigOverrides {
	o := &clientcmd.ConfigOverrides{CurrentContext: value(f.Context), Timeout: value(f.Timeout)}
	o.AuthInfo.ClientCertificate = value(f.CertFile)
	o.AuthInfo.ClientKey = value(f.KeyFile)
	o.AuthInfo.Token = value(f.BearerToken)
	o.AuthInfo.Username = value(f.Username)
	o.AuthInfo.Password = value(f.Password)
	o.AuthInfo.Impersonate = value(f.Impersonate)
	o.AuthInfo.ImpersonateUID = value(f.ImpersonateUID)
	o.AuthInfo.ImpersonateGroups = value(f.ImpersonateGroup)
	for _, extra := range value(f.ImpersonateUserExtra) {
		if key, val, ok := strings.Cut(extra, "="); ok {
			if o.AuthInfo.ImpersonateUserExtra == nil {
				o.AuthInfo.ImpersonateUserExtra = map[string][]string{}
			}
			o.AuthInfo.ImpersonateUserExtra[key] = append(o.AuthInfo.ImpersonateUserExtra[key], val)
		}
	}
	o.ClusterInfo.Server = value(f.APIServer)
	o.ClusterInfo.TLSServerName = value(f.TLSServerName)
	o.ClusterInfo.CertificateAuthority = value(f.CAFile)
	o.ClusterInfo.InsecureSkipTLSVerify = value(f.Insecure)
	o.ClusterInfo.DisableCompression = value(f.DisableCompression)
	o.ClusterInfo.ProxyURL = value(f.ProxyURL)
	o.Context.Cluster = value(f.ClusterName)
	o.Context.AuthInfo = value(f.AuthInfoName)
	o.Context.Namespace = value(f.Namespace)
	return o
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// kubeconfigFiles are the files that were asked for, whether or not they are
// there.
func kubeconfigFiles(rules *clientcmd.ClientConfigLoadingRules) []string {
	if rules.ExplicitPath != "" {
		return []string{rules.ExplicitPath}
	}
	return slices.DeleteFunc(slices.Clone(rules.Precedence), func(f string) bool { return f == "" })
}

func describeFiles(files []string) string {
	named := make([]string, 0, len(files))
	for _, f := range files {
		named = append(named, printable(f))
	}
	return "kubeconfig " + strings.Join(named, ", ")
}

func list(names []string) string {
	if len(names) == 0 {
		return "(none)"
	}
	slices.Sort(names)
	for i, n := range names {
		names[i] = printable(n)
	}
	return strings.Join(names, ", ")
}

// podHint is for those who were used to the silent fallback.
func podHint() string {
	if os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		return ""
	}
	return "; the service account of this Pod is not used by itself: name the server with --server, --certificate-authority and --token"
}

// Names are those that a kubeconfig gives, sorted.
type Names struct{ Contexts, Clusters, Users []string }

// KubeconfigNames reads the names that --context, --cluster and --user take,
// for completion at the shell.
func KubeconfigNames(flags *genericclioptions.ConfigFlags) (Names, error) {
	rules := loadingRules(flags)
	raw, err := rules.Load()
	if err != nil {
		return Names{}, fmt.Errorf("%s cannot be read: %w", describeFiles(kubeconfigFiles(rules)), err)
	}
	return Names{
		Contexts: slices.Sorted(maps.Keys(raw.Contexts)),
		Clusters: slices.Sorted(maps.Keys(raw.Clusters)),
		Users:    slices.Sorted(maps.Keys(raw.AuthInfos)),
	}, nil
}
