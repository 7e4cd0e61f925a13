// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package flux

import "time"

// Helm is what only a HelmRelease has. The first part is its spec as it was
// typed, with nothing resolved; the second what helm-controller reports.
type Helm struct {
	ReleaseName      string
	TargetNamespace  string
	StorageNamespace string
	ServiceAccount   string
	// ChartName is spec.chart.spec.chart, empty with a chartRef.
	ChartName string
	// ChartNameChange is spec.upgrade.chartNameChangeStrategy.
	ChartNameChange string
	Install         Attempts
	Upgrade         Attempts
	// Replace is spec.install.replace.
	Replace bool
	// DisableUninstallHooks and KeepHistory are of spec.uninstall.
	DisableUninstallHooks, KeepHistory bool

	// Storage is status.storageNamespace: where the records are, whatever the
	// spec says by now.
	Storage         string
	History         []HelmSnapshot
	LastAction      string
	InstallFailures int64
	UpgradeFailures int64
	// LastHandledResetAt and LastHandledForceAt are the tokens that were answered.
	LastHandledResetAt, LastHandledForceAt string
}

// Attempts are how an install or an upgrade deals with its failure.
type Attempts struct {
	// Strategy is RemediateOnFailure or RetryOnFailure, empty for the default.
	Strategy string
	Retries  int
	// LastFailure is remediateLastFailure: also the last attempt is remediated.
	LastFailure bool
	// Remediation is "rollback" or "uninstall", empty for the default: an
	// install is uninstalled, an upgrade rolled back.
	Remediation string
}

// HelmSnapshot is one entry of status.history, the newest first.
type HelmSnapshot struct {
	Name         string    `json:"name"`
	Namespace    string    `json:"namespace"`
	Version      int       `json:"version"`
	Status       string    `json:"status"`
	ChartName    string    `json:"chartName"`
	ChartVersion string    `json:"chartVersion"`
	LastDeployed time.Time `json:"lastDeployed"`
}

// helm resolves nothing: what Flux makes of these values depends on the records.
func (it *item) helm() *Helm {
	sp, st := &it.Spec, &it.Status
	h := &Helm{
		ReleaseName:        sp.ReleaseName,
		TargetNamespace:    sp.TargetNamespace,
		StorageNamespace:   sp.StorageNamespace,
		ServiceAccount:     sp.ServiceAccountName,
		Install:            sp.Install.attempts(),
		Upgrade:            sp.Upgrade.attempts(),
		Storage:            st.StorageNamespace,
		LastAction:         st.LastAttemptedReleaseAction,
		InstallFailures:    st.InstallFailures,
		UpgradeFailures:    st.UpgradeFailures,
		LastHandledResetAt: st.LastHandledResetAt,
		LastHandledForceAt: st.LastHandledForceAt,
	}
	if sp.Chart != nil {
		h.ChartName = sp.Chart.Spec.Chart
	}
	if sp.Install != nil {
		h.Replace = sp.Install.Replace
	}
	if sp.Upgrade != nil {
		h.ChartNameChange = sp.Upgrade.ChartNameChange
	}
	if u := sp.Uninstall; u != nil {
		h.DisableUninstallHooks, h.KeepHistory = u.DisableHooks, u.KeepHistory
	}
	for _, e := range st.History {
		if e.Name != "" {
			h.History = append(h.History, e.HelmSnapshot)
		}
	}
	return h
}

func (a *action) attempts() Attempts {
	var out Attempts
	if a == nil {
		return out
	}
	if a.Strategy != nil {
		out.Strategy = a.Strategy.Name
	}
	if a.Remediation != nil {
		out.Retries, out.Remediation, out.LastFailure = a.Remediation.Retries, a.Remediation.Strategy, a.Remediation.LastFailure
	}
	return out
}
