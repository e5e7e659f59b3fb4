{{/* A value of a configuration file. oslo.config takes $ for a reference to another option. */}}
{{- define "roost.value" -}}
{{- if kindIs "slice" . -}}
{{- $parts := list -}}
{{- range . }}{{ $parts = append $parts (include "roost.value" .) }}{{ end -}}
{{- join "," $parts -}}
{{- else if kindIs "string" . -}}
{{- replace "$" "$$" . -}}
{{- else -}}
{{- toJson . -}}
{{- end -}}
{{- end -}}

{{/* A configuration file: group -> option -> value. Groups without options, and options that are null, are left out. */}}
{{- define "roost.file" -}}
{{- range $group, $options := . }}
{{- $lines := list -}}
{{- range $name, $value := $options }}
{{- if not (kindIs "invalid" $value) }}{{ $lines = append $lines (printf "%s = %s" $name (include "roost.value" $value)) }}{{ end -}}
{{- end -}}
{{- if $lines }}
[{{ $group }}]
{{ join "\n" $lines }}
{{ end -}}
{{- end -}}
{{- end -}}

{{/* A text of several lines as a block of YAML, four columns in, without blanks on empty lines. */}}
{{- define "roost.block" -}}
{{- trim . | nindent 4 | replace "\n    \n" "\n\n" -}}
{{- end -}}

{{/* roost.conf: what the chart knows, and over it what the values say. */}}
{{- define "roost.plainFile" -}}
{{- $own := dict -}}
{{- if eq (dig "api" "auth_strategy" "keystone" .Values.config) "tokens" -}}
{{- $_ := set $own "api" (dict "tokens_file" "/etc/roost/tokens.toml") -}}
{{- end -}}
{{- if .Values.policy -}}
{{- $_ := set $own "oslo_policy" (dict "policy_file" "/etc/roost/policy.yaml") -}}
{{- end -}}
{{- if .Values.dashboard.enabled -}}
{{- $_ := set $own "dashboard" (fromYaml (include "roost.dashboardOptions" .)) -}}
{{- end -}}
{{- include "roost.file" (mergeOverwrite $own (deepCopy .Values.config)) | trimPrefix "\n" -}}
{{- end -}}

{{/* The files of the Secret, as a map in JSON: each component gets those that it needs. */}}
{{- define "roost.secretFiles" -}}
{{- $databases := .Values.databases -}}
{{- $secret := deepCopy .Values.secretConfig -}}
{{- $conductor := pick $secret "api_database" "records" -}}
{{- $groups := mergeOverwrite (dict "placement_database" (dict "connection" $databases.api)) (omit $secret "api_database" "records") -}}
{{- $files := dict "placement.conf" (include "roost.file" $groups | trimPrefix "\n") -}}
{{- if include "roost.hasConductors" . -}}
{{- $groups = mergeOverwrite (dict "api_database" (dict "connection" $databases.api) "records" (dict "connection" $databases.records)) $conductor -}}
{{- $_ := set $files "conductor.conf" (include "roost.file" $groups | trimPrefix "\n") -}}
{{- $_ := set $files "cell-cell0.conf" (include "roost.file" (dict "cell0" (dict "connection" $databases.cell0)) | trimPrefix "\n") -}}
{{- range .Values.cells -}}
{{- $section := printf "cell_%s" .name -}}
{{- $_ := set $files (printf "cell-%s.conf" .name) (include "roost.file" (dict $section (dict "connection" .database)) | trimPrefix "\n") -}}
{{- end -}}
{{- end -}}
{{- if .Values.tokens -}}
{{- $_ := set $files "tokens.toml" .Values.tokens -}}
{{- end -}}
{{- toJson $files -}}
{{- end -}}

{{/* The names of the configuration files of a component, in JSON. root, cells: names of the cells that it knows. */}}
{{- define "roost.files" -}}
{{- $files := list "roost.conf" "placement.conf" -}}
{{- if .cells -}}
{{- $files = append $files "conductor.conf" -}}
{{- range .cells }}{{ $files = append $files (printf "cell-%s.conf" .) }}{{ end -}}
{{- end -}}
{{- toJson $files -}}
{{- end -}}

{{/* The volume of /etc/roost. root, files: as of roost.files; configMap, secret: their names. */}}
{{- define "roost.configurationVolume" -}}
name: configuration
projected:
  defaultMode: 0440
  sources:
    - configMap:
        name: {{ .configMap }}
    - secret:
        name: {{ .secret }}
        items:
          {{- range without .files "roost.conf" }}
          - {key: {{ . }}, path: {{ . }}}
          {{- end }}
          {{- if eq (dig "api" "auth_strategy" "keystone" .root.Values.config) "tokens" }}
          - {key: tokens.toml, path: tokens.toml}
          {{- end }}
{{- end -}}

{{/* The group [dashboard]: names by which browsers may reach it, its directory, and where actions go. */}}
{{- define "roost.dashboardOptions" -}}
{{- $fullname := include "roost.fullname" . -}}
{{- $own := printf "%s-dashboard" $fullname -}}
{{- $hosts := list "localhost" "127.0.0.1" $own (printf "%s.%s" $own .Release.Namespace) (printf "%s.%s.svc" $own .Release.Namespace) -}}
{{- with .Values.dashboard.ingress.host }}{{ $hosts = prepend $hosts . }}{{ end -}}
directory: /var/lib/roost/dashboard
hosts: {{ toJson $hosts }}
{{- if .Values.conductor.enabled }}
conductor_endpoint: {{ ternary "https" "http" (ne .Values.tls.existingSecret "") }}://{{ $fullname }}-conductor:8780
{{- end }}
{{- end -}}
