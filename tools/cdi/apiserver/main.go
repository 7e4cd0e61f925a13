// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

// Command cdi-apiserver is CDI's own API server (the webhooks of its custom
// resources, and upload tokens) on an address of choice: upstream's main, which
// this repeats, knows only 0.0.0.0:8443, where cdi-operator listens already
// when both run on one machine.
package main

import (
	"flag"
	"fmt"
	"os"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v6/apis/volumesnapshot/v1"
	snapclient "github.com/kubernetes-csi/external-snapshotter/client/v6/clientset/versioned"
	corev1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"

	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"kubevirt.io/containerized-data-importer/pkg/apiserver"
	cdiclient "kubevirt.io/containerized-data-importer/pkg/client/clientset/versioned"
	"kubevirt.io/containerized-data-importer/pkg/controller/datavolume"
	certwatcher "kubevirt.io/containerized-data-importer/pkg/util/cert/watcher"
	cryptowatch "kubevirt.io/containerized-data-importer/pkg/util/tls-crypto-watch"
)

func main() {
	klog.InitFlags(nil)
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "`file` that says where the API server is")
	host := flag.String("host", "127.0.0.1", "address to listen on")
	port := flag.Uint("port", 8443, "port to listen on")
	cert := flag.String("cert-file", "", "serving certificate")
	key := flag.String("key-file", "", "key of the serving certificate")
	flag.Parse()
	if err := run(*kubeconfig, *host, *port, *cert, *key); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(kubeconfig, host string, port uint, cert, key string) error {
	utilruntime.Must(cdiv1.AddToScheme(scheme.Scheme))
	utilruntime.Must(snapshotv1.AddToScheme(scheme.Scheme))
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	ctx := signals.SetupSignalHandler()
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	cdi, err := cdiclient.NewForConfig(config)
	if err != nil {
		return err
	}
	plain, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return err
	}
	volumes, err := cache.New(config, cache.Options{
		Scheme:   scheme.Scheme,
		ByObject: map[client.Object]cache.ByObject{&corev1.PersistentVolume{}: {}},
	})
	if err != nil {
		return err
	}
	if err := datavolume.CreateAvailablePersistentVolumeIndex(volumes); err != nil {
		return err
	}
	authConfig, err := apiserver.NewAuthConfigWatcher(ctx, kube)
	if err != nil {
		return err
	}
	tls, err := cryptowatch.NewCdiConfigTLSWatcher(ctx, cdi)
	if err != nil {
		return err
	}
	authorizer, err := apiserver.NewAuthorizorFromConfig(config, authConfig)
	if err != nil {
		return err
	}
	certs, err := certwatcher.New(cert, key)
	if err != nil {
		return err
	}
	server, err := apiserver.NewCdiAPIServer(host, port, kube,
		aggregator.NewForConfigOrDie(config), cdi, snapclient.NewForConfigOrDie(config),
		reader{plain, volumes}, authorizer, authConfig, tls, certs, nil)
	if err != nil {
		return err
	}
	go func() {
		if err := volumes.Start(ctx); err != nil {
			klog.Fatalf("cache: %v", err)
		}
	}()
	if !volumes.WaitForCacheSync(ctx) {
		return fmt.Errorf("cache did not fill")
	}
	go func() {
		if err := certs.Start(ctx.Done()); err != nil {
			klog.Errorf("certificate watch: %v", err)
		}
	}()
	return server.Start(ctx.Done())
}
