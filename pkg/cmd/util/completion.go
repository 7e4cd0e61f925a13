// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package util

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubestandup/kubestandup/pkg/guard"
)

// completePrefix begins the name of the program that kubectl asks for a
// plugin's completions (k8s.io/kubectl pkg/cmd/plugin plugin_completion.go).
// krew links no second file, so the plugin's own binary answers to it.
const completePrefix = "kubectl_complete-"

// completionTimeout is how long a person waits for a TAB before giving up.
const completionTimeout = 3 * time.Second

// CompleteNames completes the names that list returns; a list that fails
// completes nothing, and says nothing.
func CompleteNames(list func(context.Context) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		names, err := list(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, toComplete) })
		slices.Sort(names)
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeConfigFlags completes what kubectl completes among its own flags.
// kubectl's package for it would add 24 MB to each binary.
func (s *Shell) completeConfigFlags() {
	inKubeconfig := func(pick func(guard.Names) []string) cobra.CompletionFunc {
		return CompleteNames(func(context.Context) ([]string, error) {
			names, err := guard.KubeconfigNames(s.ConfigFlags)
			return pick(names), err
		})
	}
	for flag, complete := range map[string]cobra.CompletionFunc{
		"namespace": CompleteNames(s.namespaces),
		"context":   inKubeconfig(func(n guard.Names) []string { return n.Contexts }),
		"cluster":   inKubeconfig(func(n guard.Names) []string { return n.Clusters }),
		"user":      inKubeconfig(func(n guard.Names) []string { return n.Users }),
	} {
		// It fails only for a flag that is not there; a test asks all four.
		_ = s.root.RegisterFlagCompletionFunc(flag, complete)
	}
}

func (s *Shell) namespaces(ctx context.Context) ([]string, error) {
	server, err := s.Connect()
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(server.Config())
	if err != nil {
		return nil, err
	}
	list, err := client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).
		List(ctx, metav1.ListOptions{Limit: 500})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	return names, nil
}

func (s *Shell) newCmdCompletion() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	name := s.root.Name()
	return &cobra.Command{
		Use:   "completion [" + strings.Join(shells, "|") + "]",
		Short: "Show how to complete this plugin in a shell",
		Long: templates.LongDesc(fmt.Sprintf(`
			Completion of a plugin is kubectl's own: for the words after its name kubectl asks a
			program on PATH that is named %[1]s%[2]s. This plugin answers by that name itself, so
			one link is the whole installation. This command prints it.`, completePrefix, name)),
		Example: templates.Examples(fmt.Sprintf(`
			# Print the line for the shell in use, and what kubectl itself needs
			kubectl %[1]s completion

			# Run it
			kubectl %[1]s completion bash | sh`, name)),
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: shells,
		RunE: func(_ *cobra.Command, args []string) error {
			shell := programName(os.Getenv("SHELL"))
			if len(args) > 0 {
				shell = args[0]
			}
			_, err := fmt.Fprint(s.Out, completionText(shell, name, binaryPath()))
			return err
		},
	}
}

// completionText is a script of one line, with comments that every one of the
// shells understands.
func completionText(shell, name, binary string) string {
	link := filepath.Join(filepath.Dir(binary), completePrefix+name)
	line := fmt.Sprintf("ln -s %s %s", quote(binary), quote(link))
	load := "source <(kubectl completion bash)"
	switch shell {
	case "zsh":
		load = "source <(kubectl completion zsh)"
	case "fish":
		load = "kubectl completion fish | source"
	case "powershell", "pwsh":
		line = fmt.Sprintf("New-Item -ItemType HardLink -Path %s -Target %s",
			quotePowerShell(link+".exe"), quotePowerShell(binary))
		load = "kubectl completion powershell | Out-String | Invoke-Expression"
	}
	return fmt.Sprintf(`# For the words after "kubectl %[1]s", kubectl asks a program on PATH that is named
# %[2]s%[1]s. One link, once, and this plugin answers to it:
%[3]s
# kubectl's own completion must be loaded, in your shell's start-up file:
#   %[4]s
`, name, completePrefix, line, load)
}

// binaryPath is where the plugin stands on PATH. krew keeps a link there that
// it moves at each upgrade, while the binary's own path has the version in it.
func binaryPath() string {
	if path, err := exec.LookPath(filepath.Base(os.Args[0])); err == nil {
		if absolute, err := filepath.Abs(path); err == nil {
			return absolute
		}
	}
	if path, err := os.Executable(); err == nil {
		return path
	}
	return os.Args[0]
}

// quote is for a path in a POSIX shell or in fish.
func quote(path string) string {
	if !strings.ContainsAny(path, " \t'\"$&;()<>|*?[]`\\#~") {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

func quotePowerShell(path string) string {
	return "'" + strings.ReplaceAll(path, "'", "''") + "'"
}
