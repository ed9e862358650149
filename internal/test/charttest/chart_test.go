// Package charttest renders the Helm chart of charts/ebb with Helm's own library and compares the result with testdata. Its module is
// apart because of Helm's dependencies.
package charttest

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
)

const top = "../../.."

var update = flag.Bool("update", false, "write the files of testdata again")

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load(filepath.Join(top, "charts/ebb"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// render renders the chart with the values of a YAML text, as `helm template shop charts/ebb -n prod` does.
func render(t *testing.T, values string) (files map[string]string, err error) {
	t.Helper()
	c := load(t)
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	release := chartutil.ReleaseOptions{Name: "shop", Namespace: "prod", Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(c, given, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.Render(c, all)
}

// objects decodes the objects of rendered files.
func objects(t *testing.T, files map[string]string) (list []map[string]any) {
	t.Helper()
	for name, text := range files {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		d := yaml.NewDecoder(strings.NewReader(text))
		for {
			var o map[string]any
			if err := d.Decode(&o); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s is not YAML: %v\n%s", name, err, text)
			}
			if len(o) > 0 {
				list = append(list, o)
			}
		}
	}
	return list
}

// at returns a value by its path of names and indexes.
func at(t *testing.T, o any, path ...any) any {
	t.Helper()
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := o.(map[string]any)
			o = m[p]
		case int:
			l, _ := o.([]any)
			if p >= len(l) {
				t.Fatalf("%v: there are %d", path, len(l))
			}
			o = l[p]
		}
	}
	return o
}

// joined joins rendered files in the order of their names.
func joined(files map[string]string) string {
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		if text := strings.Trim(files[name], "\n"); strings.TrimSpace(text) != "" {
			b.WriteString("--- # " + name + "\n" + text + "\n")
		}
	}
	return b.String()
}

// Each testdata/NAME.values.yaml renders to testdata/NAME.yaml. `go test -update` writes these.
func TestTheChartRendersAsTheFilesSay(t *testing.T) {
	sets, err := filepath.Glob("testdata/*.values.yaml")
	if err != nil || len(sets) < 5 {
		t.Fatalf("%d sets of values, %v", len(sets), err)
	}
	for _, set := range sets {
		name := strings.TrimSuffix(filepath.Base(set), ".values.yaml")
		t.Run(name, func(t *testing.T) {
			values, err := os.ReadFile(set)
			if err != nil {
				t.Fatal(err)
			}
			files, err := render(t, string(values))
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range objects(t, files) {
				if o["kind"] == nil || o["apiVersion"] == nil || at(t, o, "metadata", "name") == nil || at(t, o, "metadata", "namespace") != "prod" {
					t.Errorf("an object without its kind, name or namespace: %v", o)
				}
			}
			got, file := joined(files), filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
				t.Errorf("%s differs (-want +got); go test -update writes it again:\n%s", file, d)
			}
		})
	}
}

// The schema refuses what the templates cannot use, and says which value it is.
func TestBadValuesAreRefused(t *testing.T) {
	for values, want := range map[string]string{
		`replica: 3`:                                   "replica",
		`replicas: 0`:                                  "replicas",
		`replicas: "three"`:                            "replicas",
		`image: {pullPolicy: Sometimes}`:               "pullPolicy",
		`image: {digest: "sha256:12"}`:                 "digest",
		`config: {requirepass: secret}`:                "requirepass",
		`config: {port: 7000}`:                         "port",
		`config: {appendonly: true}`:                   "appendonly", // YAML's true is not redis.conf's yes
		`config: {MAXMEMORY: 1gb}`:                     "MAXMEMORY",
		`auth: {password: a, existingSecret: b}`:       "auth",
		`auth: {password: 12345}`:                      "password",
		`tls: {enabled: true}`:                         "existingSecret",
		`tls: {authClients: false}`:                    "authClients",
		`persistence: {size: big}`:                     "size",
		`persistence: {accessModes: [ReadOnlyMany]}`:   "accessModes",
		`{replicas: 3, persistence: {enabled: false}}`: "persistence",
		`failover: {enabled: true}`:                    "replicas",
		`{replicas: 3, failover: {timeoutSeconds: 0}}`: "timeoutSeconds",
		`service: {type: ExternalName}`:                "type",
		`service: {port: 70000}`:                       "port",
		`metrics: {serviceMonitor: {interval: often}}`: "interval",
		`podDisruptionBudget: {maxUnavailable: half}`:  "maxUnavailable",
		`networkPolicy: {extraFrom: {}}`:               "extraFrom",
		`fullnameOverride: Shop`:                       "fullnameOverride",
	} {
		_, err := render(t, values)
		if err == nil {
			t.Errorf("%s is accepted", values)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is refused with an error that does not name %s:\n%v", values, want, err)
		}
	}
}

// helm lint finds nothing to criticise.
func TestTheChartPassesHelmsLint(t *testing.T) {
	for _, m := range lint.AllWithKubeVersion(filepath.Join(top, "charts/ebb"), nil, "prod", nil).Messages {
		if m.Severity > support.InfoSev {
			t.Error(m)
		}
	}
}

// A random password is as long as it says, and a template makes one for itself only.
func TestARandomPasswordIsMadeWithoutOneOfTheUser(t *testing.T) {
	seen := map[string]bool{}
	for range 3 {
		files, err := render(t, ``)
		if err != nil {
			t.Fatal(err)
		}
		secret := files["ebb/templates/secret.yaml"]
		m := regexp.MustCompile(`password: "(\S{40,})"`).FindStringSubmatch(secret)
		if m == nil || seen[m[1]] {
			t.Fatalf("no new password in\n%s", secret)
		}
		seen[m[1]] = true
	}
	files, err := render(t, `auth: {existingSecret: mine}`)
	if err != nil || strings.TrimSpace(files["ebb/templates/secret.yaml"]) != "" {
		t.Errorf("with a Secret of the user: %v\n%s", err, files["ebb/templates/secret.yaml"])
	}
}

// The containers run without rights: also the defaults of a restricted namespace are met.
func TestThePodsAreRestricted(t *testing.T) {
	files, err := render(t, `{replicas: 3, failover: {enabled: true}, tls: {enabled: true, existingSecret: cert}}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects(t, files) {
		if o["kind"] != "StatefulSet" {
			continue
		}
		pod := at(t, o, "spec", "template", "spec")
		c := at(t, pod, "containers", 0)
		for what, ok := range map[string]bool{
			"runAsNonRoot":             at(t, pod, "securityContext", "runAsNonRoot") == true,
			"seccomp":                  at(t, pod, "securityContext", "seccompProfile", "type") == "RuntimeDefault",
			"allowPrivilegeEscalation": at(t, c, "securityContext", "allowPrivilegeEscalation") == false,
			"readOnlyRootFilesystem":   at(t, c, "securityContext", "readOnlyRootFilesystem") == true,
			"capabilities":             at(t, c, "securityContext", "capabilities", "drop", 0) == "ALL",
			"preStop":                  at(t, c, "lifecycle", "preStop", "exec", "command", 1) == "handover",
			"enableServiceLinks":       at(t, pod, "enableServiceLinks") == false,
			"memory limit":             at(t, c, "resources", "limits", "memory") != nil,
		} {
			if !ok {
				t.Errorf("the pod has no %s:\n%s", what, files["ebb/templates/statefulset.yaml"])
			}
		}
		return
	}
	t.Error("there is no StatefulSet")
}

// The alerts of the chart are those of the packages, and the version is that of the release.
func TestTheChartHasTheAlertsAndTheVersionOfTheTree(t *testing.T) {
	read := func(name string) []byte {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(top, name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if !bytes.Equal(read("packaging/prometheus/ebb.rules.yml"), read("charts/ebb/files/ebb.rules.yml")) {
		t.Error("charts/ebb/files/ebb.rules.yml is not packaging/prometheus/ebb.rules.yml: copy it")
	}
	released := regexp.MustCompile(`(?m)^## (\d\S*) \(\d`).FindSubmatch(read("CHANGELOG.md"))
	if m := load(t).Metadata; released == nil || m.AppVersion != string(released[1]) || m.Version != m.AppVersion {
		t.Errorf("Chart.yaml has version %s and appVersion %s, CHANGELOG.md has %s", m.Version, m.AppVersion, released[1])
	}
	files, err := render(t, `metrics: {prometheusRule: {enabled: true}}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects(t, files) {
		if o["kind"] == "PrometheusRule" {
			var file map[string]any
			if err := yaml.Unmarshal(read("packaging/prometheus/ebb.rules.yml"), &file); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(file["groups"], at(t, o, "spec", "groups")); d != "" {
				t.Errorf("the rules differ (-file +chart):\n%s", d)
			}
			return
		}
	}
	t.Error("there is no PrometheusRule")
}
