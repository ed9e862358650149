package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// accountDir is the directory in which Kubernetes places a pod's service account.
const accountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// podLabel sets a label of this pod to the server's role, master or replica. A Service of Kubernetes selects the
// master by it.
//
// It writes its HTTP request without net/http's client, which would make the program half a megabyte larger.
type podLabel struct {
	label, account string
	addr, path     string // of the pod in the Kubernetes API
	tls            *tls.Config
}

// labelTimeout is the time limit of one request.
const labelTimeout = 10 * time.Second

// podLabelFrom returns the label that EBB_POD_ROLE_LABEL names, or nil without the variable. EBB_POD_NAME is the
// pod's name; account is the directory with token, ca.crt and namespace.
func podLabelFrom(env func(string) string, account string) (*podLabel, error) {
	label := env("EBB_POD_ROLE_LABEL")
	if label == "" {
		return nil, nil
	}
	read := func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(account, name)) }
	namespace, err := read("namespace")
	var ca []byte
	if err == nil {
		ca, err = read("ca.crt")
	}
	if err != nil {
		return nil, fmt.Errorf("EBB_POD_ROLE_LABEL needs the pod's service account: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("EBB_POD_ROLE_LABEL needs the file of the authority: %s has no certificate", filepath.Join(account, "ca.crt"))
	}
	name, host := env("EBB_POD_NAME"), env("KUBERNETES_SERVICE_HOST")
	if name == "" || host == "" {
		return nil, fmt.Errorf("EBB_POD_ROLE_LABEL needs EBB_POD_NAME and KUBERNETES_SERVICE_HOST; they are %q and %q", name, host)
	}
	return &podLabel{
		label: label, account: account,
		addr: net.JoinHostPort(host, cmp.Or(env("KUBERNETES_SERVICE_PORT"), "443")),
		path: "/api/v1/namespaces/" + url.PathEscape(strings.TrimSpace(string(namespace))) + "/pods/" + url.PathEscape(name),
		tls:  &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, ServerName: host},
	}, nil
}

// set writes the label. The token is read each time, because Kubernetes renews it.
func (l *podLabel) set(ctx context.Context, r role) error {
	value := map[string]string{"master": "master", "slave": "replica"}[r.name]
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{l.label: value}}})
	if err != nil {
		return err
	}
	token, err := os.ReadFile(filepath.Join(l.account, "token"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, labelTimeout)
	defer cancel()
	d := tls.Dialer{Config: l.tls}
	c, err := d.DialContext(ctx, "tcp", l.addr)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })() // ends the calls below
	_, err = fmt.Fprintf(c, "PATCH %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/merge-patch+json\r\n"+
		"Content-Length: %d\r\nConnection: close\r\n\r\n%s", l.path, l.addr, strings.TrimSpace(string(token)), len(patch), patch)
	if err != nil {
		return err
	}
	reply, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	defer func() { _ = reply.Body.Close() }()
	if reply.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(reply.Body, 512))
		return fmt.Errorf("Kubernetes refused to set the label %s of this pod: %s: %s", l.label, reply.Status, text)
	}
	return nil
}
