{{/* The beginning of all names: that of the release, with the chart's if it is not in it. */}}
{{- define "roost.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The labels by which pods are selected. root, name: of the component. */}}
{{- define "roost.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end -}}

{{- define "roost.labels" -}}
{{ include "roost.selector" . }}
app.kubernetes.io/part-of: roost
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
{{- end -}}

{{/* The image. root, tag: of the component. */}}
{{- define "roost.image" -}}
{{- $image := .root.Values.image -}}
{{- printf "%s:%s" $image.repository (coalesce .tag $image.tag .root.Chart.AppVersion) -}}
{{- end -}}

{{- define "roost.serviceAccount" -}}
{{- $account := .Values.serviceAccount -}}
{{- if $account.name }}{{ $account.name }}{{ else if $account.create }}{{ include "roost.fullname" . }}{{ else }}default{{ end -}}
{{- end -}}

{{/* The names of all cells, cell0 first. */}}
{{- define "roost.cellNames" -}}
{{- $names := list "cell0" -}}
{{- range .Values.cells }}{{ $names = append $names .name }}{{ end -}}
{{- toJson $names -}}
{{- end -}}

{{/* "true" if a component needs more than the database of placement. */}}
{{- define "roost.hasConductors" -}}
{{- if or .Values.conductor.enabled .Values.scheduler.enabled .Values.dashboard.enabled .Values.cells }}true{{ end -}}
{{- end -}}

{{/* The security of a pod, and of each container: the restricted profile of Kubernetes, and no writable file system. */}}
{{- define "roost.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "roost.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop:
    - ALL
{{- end -}}
