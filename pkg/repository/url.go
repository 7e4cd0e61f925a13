// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"bufio"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// scpStyle is user@host:path, as git takes it.
var scpStyle = regexp.MustCompile(`^(?:[^@/]+@)?([^:/@]+):([^/].*|/.*)$`)

// normalURL is a git URL without what does not tell one repository from another:
// scheme, user, default port, .git, the case of the host. Empty for none.
func normalURL(raw string) string {
	raw = strings.TrimSpace(raw)
	if raw == "" {
		return ""
	}
	host, path := "", raw
	if u, err := url.Parse(raw); err == nil && u.Host != "" {
		host, path = strings.ToLower(u.Hostname()), u.Path
		switch u.Port() {
		case "", "22", "80", "443":
		default:
			host += ":" + u.Port()
		}
	} else if m := scpStyle.FindStringSubmatch(raw); m != nil {
		host, path = strings.ToLower(m[1]), m[2]
	}
	return host + "/" + strings.TrimSuffix(strings.Trim(path, "/"), ".git")
}

// remotes are the URLs of the checkout's own remotes, normalised: its
// repository goes by all of them.
func remotes(root string) map[string]bool {
	all := map[string]bool{}
	config := filepath.Join(gitDir(root), "config")
	if !regular(config) {
		return all // no checkout
	}
	file, err := os.Open(config)
	if err != nil {
		return all
	}
	defer func() { _ = file.Close() }() // it was only read
	remote := false
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			remote = strings.HasPrefix(line, "[remote ")
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		if remote && strings.TrimSpace(key) == "url" {
			all[normalURL(value)] = true
		}
	}
	return all
}

// gitDir is where a checkout keeps its configuration: of a worktree, with the
// repository that it is a worktree of (gitrepository-layout).
func gitDir(root string) string {
	dir := filepath.Join(root, ".git")
	if !regular(dir) {
		return dir // a directory, mostly
	}
	content, err := os.ReadFile(dir)
	if err != nil {
		return dir
	}
	_, target, _ := strings.Cut(strings.TrimSpace(string(content)), "gitdir: ")
	if !filepath.IsAbs(target) {
		target = filepath.Join(root, target)
	}
	if !regular(filepath.Join(target, "commondir")) {
		return target
	}
	common, err := os.ReadFile(filepath.Join(target, "commondir"))
	if err != nil {
		return target
	}
	if name := strings.TrimSpace(string(common)); filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(target, strings.TrimSpace(string(common)))
}

// regular is true of what can be read to its end: a pipe may have none.
func regular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
