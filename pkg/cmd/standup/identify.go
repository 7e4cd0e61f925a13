// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package standup

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/kubestandup/kubestandup/pkg/cmd/util"
	"github.com/kubestandup/kubestandup/pkg/guard"
	"github.com/kubestandup/kubestandup/pkg/printers"
	"github.com/kubestandup/kubestandup/pkg/standup"
	"github.com/kubestandup/kubestandup/pkg/standup/config"
)

func newCmdIdentify(f *Flags) *cobra.Command {
	output := util.NewOutput("json", "yaml")
	cmd := &cobra.Command{
		Use:   "identify",
		Short: "Print who the server is, ready to be kept as standup.yaml",
		Long: templates.LongDesc(`
			Ask the server who it is and print it as a standup.yaml. Read it before you keep it:
			what it says is what every later step will insist on.`),
		Example: templates.Examples(`
			# Keep it beside the cluster's entry point
			kubectl standup identify > clusters/prod/standup.yaml`),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.identify(cmd.Context(), output.String())
		},
	}
	output.AddOutput(cmd)
	return cmd
}

func (f *Flags) identify(ctx context.Context, format string) error {
	server, err := f.shell.Connect()
	if err != nil {
		return err
	}
	identity, err := server.Identity(ctx)
	if err != nil {
		return err
	}
	if format != "" {
		return printers.PrintObject(f.shell.Out, format, &standup.IdentityReport{TypeMeta: printers.TypeMeta("Identity"), Identity: identity})
	}
	_, err = fmt.Fprint(f.shell.Out, standupYAML(identity))
	if identity.Unprovable != "" {
		fmt.Fprintf(f.shell.ErrOut, "Warning: this connection can prove nothing: %s\n", identity.Unprovable)
	}
	return err
}

// standupYAML is the file that makes the identity the expectation.
func standupYAML(i guard.Identity) string {
	return fmt.Sprintf(`# The cluster that this folder is for. Every step of kubectl standup compares
# it with the live server, and does nothing on any other.
# CA of the server when this was written: %s
# As flags: --expect-server %s --expect-uid %s
%scluster:
  server: %s
  uid: %s
`, i.CA(), i.URL, i.UID, config.Header, i.URL, i.UID)
}
