{{- define "ebb.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "ebb.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains (include "ebb.name" .) .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "ebb.name" .) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "ebb.selector" -}}
app.kubernetes.io/name: {{ include "ebb.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "ebb.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "ebb.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "ebb.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "ebb.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "ebb.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{- define "ebb.secret" -}}
{{- default (include "ebb.fullname" .) .Values.auth.existingSecret }}
{{- end }}

{{- define "ebb.domain" -}}
{{ include "ebb.fullname" . }}-headless.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}
{{- end }}

{{- define "ebb.peers" -}}
{{- $names := list }}
{{- range $i := until (int .Values.replicas) }}
{{- $names = append $names (printf "%s-%d.%s:%d" (include "ebb.fullname" $) $i (include "ebb.domain" $) (int $.Values.service.port)) }}
{{- end }}
{{- join " " $names }}
{{- end }}

{{/* The label that has the role of a pod, with failover. */}}
{{- define "ebb.roleLabel" -}}
ebb.ebbdb.github.io/role
{{- end }}
