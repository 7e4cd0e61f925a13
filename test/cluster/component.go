// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// command is how a component runs as a process.
type command struct {
	args, env []string
	// health is an URL that answers 200 once the component works.
	health string
}

// command returns how to run a component. It takes the ports it needs, which
// stay the component's own for the life of the cluster.
func (c *Cluster) command(ctx context.Context, comp Component) (command, error) {
	switch comp {
	case Etcd:
		return command{
			args: []string{
				"--data-dir", filepath.Join(c.dir, "etcd"),
				"--listen-client-urls", "http://" + c.address(Etcd, "client"),
				"--advertise-client-urls", "http://" + c.address(Etcd, "client"),
				"--listen-peer-urls", "http://" + c.address(Etcd, "peer"),
				"--log-level", "warn",
				"--unsafe-no-fsync", // the data does not outlive the process's machine
			},
			health: "http://" + c.address(Etcd, "client") + "/readyz",
		}, nil
	case APIServer:
		return c.apiServerCommand(), nil
	case ControllerManager:
		return command{
			args: []string{
				"--kubeconfig", c.Kubeconfig(),
				"--service-account-private-key-file", c.file("pki", "sa.key"),
				"--root-ca-file", c.file("pki", "ca.crt"),
				"--leader-elect=false",
				"--controllers=*,-nodeipam",
				// Nobody renews the leases of the nodes that the stand-in for a kubelet has.
				"--node-monitor-grace-period=24h",
				"--bind-address", "127.0.0.1",
				"--secure-port", c.port(ControllerManager, "https"),
				// Deployments, the garbage collector and namespaces go through these.
				"--kube-api-qps=500", "--kube-api-burst=1000",
			},
			health: "https://" + c.address(ControllerManager, "https") + "/healthz",
		}, nil
	case SourceController:
		cmd := c.fluxCommand(comp)
		cmd.args = append(cmd.args,
			"--storage-path", c.file("artifacts"),
			"--storage-addr", c.address(comp, "storage"),
			"--storage-adv-addr", c.address(comp, "storage"))
		return cmd, os.MkdirAll(c.file("artifacts"), 0o700)
	case KustomizeController, HelmController:
		return c.fluxCommand(comp), nil
	case CDIOperator:
		return c.cdiOperatorCommand(ctx)
	case CDIAPIServer:
		return c.cdiAPIServerCommand(ctx)
	}
	return command{}, fmt.Errorf("unknown component %q", comp)
}

func (c *Cluster) apiServerCommand() command {
	return command{
		args: []string{
			"--etcd-servers", "http://" + c.address(Etcd, "client"),
			"--secure-port", c.port(APIServer, "https"),
			"--bind-address", "127.0.0.1",
			"--advertise-address", "127.0.0.1",
			"--tls-cert-file", c.file("pki", "tls.crt"),
			"--tls-private-key-file", c.file("pki", "tls.key"),
			"--token-auth-file", c.file("pki", "tokens.csv"),
			"--authorization-mode", "RBAC",
			"--service-account-key-file", c.file("pki", "sa.key"),
			"--service-account-signing-key-file", c.file("pki", "sa.key"),
			"--service-account-issuer", "https://kubernetes.default.svc",
			"--service-cluster-ip-range", "10.0.0.0/24",
			"--disable-admission-plugins", c.admissionOff(),
			"--endpoint-reconciler-type", "none",
			// With these it can be told from an impostor by the servers it
			// aggregates, as in a cluster that kubeadm made.
			"--requestheader-client-ca-file", c.file("pki", "ca.crt"),
			"--requestheader-allowed-names", "kube-apiserver",
			"--requestheader-username-headers", "X-Remote-User",
			"--requestheader-group-headers", "X-Remote-Group",
			"--requestheader-extra-headers-prefix", "X-Remote-Extra-",
			"--proxy-client-cert-file", c.file("pki", "tls.crt"),
			"--proxy-client-key-file", c.file("pki", "tls.key"),
			"--egress-selector-config-file", c.file("egress.yaml"),
			"--audit-policy-file", c.file("audit-policy.yaml"),
			"--audit-log-path", c.auditLog(),
			// A request is in the log before it is handled: see Audit.
			"--audit-log-mode", "blocking-strict",
			"--audit-log-maxsize", "100000", // megabytes: one file, never rotated
		},
		health: c.URL() + "/readyz",
	}
}

// admissionOff names the plugins that are not asked. Pods need no token mounted,
// for nothing runs in them, and where nobody makes them none has a
// ServiceAccount; but a test may want to be refused one that has not.
func (c *Cluster) admissionOff() string {
	const accounts = "ServiceAccount"
	if slices.Contains(c.options.Args[APIServer], "--enable-admission-plugins="+accounts) {
		return ""
	}
	return accounts
}

func (c *Cluster) fluxCommand(comp Component) command {
	return command{
		args: []string{
			"--enable-leader-election=false",
			"--metrics-addr", c.address(comp, "metrics"),
			"--health-addr", c.address(comp, "health"),
			"--events-addr=",
			"--watch-all-namespaces=true",
			"--log-level=info",
			"--log-encoding=json",
		},
		env:    []string{"RUNTIME_NAMESPACE=" + FluxNamespace},
		health: "http://" + c.address(comp, "health") + "/readyz",
	}
}

// environment is all that a component sees of the machine's: no proxy, no
// kubeconfig, no cloud's credentials of whoever runs the test.
func (c *Cluster) environment() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + c.file("home"),
		"TMPDIR=" + c.file("tmp"),
		"KUBECONFIG=" + c.Kubeconfig(),
		// A fifth of the API server's start is garbage collection otherwise.
		"GOGC=400",
	}
}

// Start starts components, what others need first, and returns when all are
// healthy. Those that run already stay as they are.
func (c *Cluster) Start(ctx context.Context, components ...Component) error {
	for _, comp := range ordered(components) {
		if err := c.startOne(ctx, comp); err != nil {
			return fmt.Errorf("%s: %w", comp, err)
		}
	}
	return nil
}

func (c *Cluster) startOne(ctx context.Context, comp Component) (err error) {
	unlock := c.lock(comp)
	defer unlock()
	if comp == Git {
		return c.git.start()
	}
	if p := c.process(comp); p != nil && p.running() {
		return nil
	}
	if comp == CDIOperator {
		// Before the deadline begins: other clusters may take long with it.
		if err := c.takeCDITurn(ctx); err != nil {
			return err
		}
		defer func() {
			if err != nil {
				c.endCDITurn()
			}
		}()
	}
	ctx, cancel := withDeadline(ctx, startDeadline)
	defer cancel()
	for range 5 {
		err := c.launch(ctx, comp)
		if !errors.Is(err, errClash) || !c.forgetPorts(comp) {
			return err
		}
	}
	return errClash
}

func (c *Cluster) launch(ctx context.Context, comp Component) error {
	cmd, err := c.command(ctx, comp)
	if err != nil {
		return err
	}
	cmd.args = append(cmd.args, c.options.Args[comp]...)
	p, err := c.spawner.run(c.programs.Path(string(comp)), cmd.args, append(c.environment(), cmd.env...), c.dir, c.LogFile(comp))
	if err != nil {
		return err
	}
	c.setProcess(comp, p)
	if err := p.awaitHealthy(ctx, c.probe, cmd.health); err != nil {
		p.kill()
		return err
	}
	c.settlePorts(comp)
	return nil
}

// Stop asks components to end and returns when they have, what others need
// last. One that does not end in time is killed. Those that do not run are no
// error.
func (c *Cluster) Stop(ctx context.Context, components ...Component) error {
	order := ordered(components)
	slices.Reverse(order)
	for _, comp := range order {
		c.end(comp, func(p *process) { p.stop(ctx, patience(comp)) })
	}
	return context.Cause(ctx)
}

// patience is how long a component may take to end.
func patience(comp Component) time.Duration {
	if comp == APIServer {
		// It would wait a minute for the watches that its clients keep open.
		return time.Second
	}
	return 10 * time.Second
}

// ordered sorts components by what they need to start.
func ordered(components []Component) []Component {
	rank := func(comp Component) int {
		switch comp {
		case Etcd, Git:
			return 0
		case APIServer:
			return 1
		case CDIAPIServer:
			return 3
		}
		return 2
	}
	return slices.SortedStableFunc(slices.Values(components), func(a, b Component) int { return rank(a) - rank(b) })
}

// Kill ends components at once, as a power cut would, and returns when they are gone.
func (c *Cluster) Kill(components ...Component) {
	for _, comp := range components {
		c.end(comp, (*process).kill)
	}
}

func (c *Cluster) end(comp Component, how func(*process)) {
	unlock := c.lock(comp)
	defer unlock()
	if comp == Git {
		c.git.stop()
		return
	}
	if p := c.process(comp); p != nil {
		how(p)
	}
	if comp == CDIOperator {
		c.endCDITurn()
	}
}

// Restart stops components and starts them again, on the ports they had.
func (c *Cluster) Restart(ctx context.Context, components ...Component) error {
	if err := c.Stop(ctx, components...); err != nil {
		return err
	}
	return c.Start(ctx, components...)
}

// Running tells whether a component runs.
func (c *Cluster) Running(comp Component) bool {
	if comp == Git {
		return c.git.running()
	}
	p := c.process(comp)
	return p != nil && p.running()
}

// LogFile is the file a component writes its log to, over all its starts.
func (c *Cluster) LogFile(comp Component) string {
	return c.file("logs", string(comp)+".log")
}

// port returns the port a component uses for a purpose. It was free when first
// asked for; 0 when there is none, which a component refuses by itself.
func (c *Cluster) port(comp Component, purpose string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := string(comp) + "/" + purpose
	if c.ports[key] == 0 {
		c.ports[key], _ = freePort()
	}
	return strconv.Itoa(c.ports[key])
}

func (c *Cluster) address(comp Component, purpose string) string {
	return "127.0.0.1:" + c.port(comp, purpose)
}
