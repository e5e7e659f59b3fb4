{{/*
A Deployment, its Service and what belongs to it. All processes of Roost are alike: they differ in their command, port and
configuration files.

root; name: of the component; command: the words of the command; port; values: as of .Values.placement; cells: names of
the cells whose databases it reads; workers: it has an option for them; dashboard: it is the dashboard;
announced: others announce work to it.
*/}}
{{- define "roost.component" -}}
{{- $root := .root -}}
{{- $all := $root.Values -}}
{{- $pods := $all.pods -}}
{{- $own := .values -}}
{{- $fullname := printf "%s-%s" (include "roost.fullname" $root) .name -}}
{{- $labels := include "roost.labels" . -}}
{{- $selector := include "roost.selector" . -}}
{{- $files := include "roost.files" (dict "cells" .cells) | fromJsonArray -}}
{{- $secretFiles := include "roost.secretFiles" $root | fromJson -}}
{{- $scheme := ternary "https" "http" (ne $all.tls.existingSecret "") -}}
{{- $replicas := ternary 1 $own.replicas (eq .name "dashboard") -}}
{{- if $all.stopped }}{{ $replicas = 0 }}{{ end -}}
{{- $spread := $pods.topologySpreadConstraints -}}
{{- $checked := list (include "roost.plainFile" $root) -}}
{{- range $files }}{{ $checked = append $checked (get $secretFiles .) }}{{ end -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $fullname }}
  labels:
    {{- $labels | nindent 4 }}
spec:
  replicas: {{ int $replicas }}
  revisionHistoryLimit: 3
  selector:
    matchLabels:
      {{- $selector | nindent 6 }}
  strategy:
    {{- if and .dashboard $own.persistence.enabled }}
    # Two pods cannot have the volume.
    type: Recreate
    {{- else }}
    type: RollingUpdate
    rollingUpdate:
      maxSurge: 1
      maxUnavailable: 0
    {{- end }}
  template:
    metadata:
      labels:
        {{- $labels | nindent 8 }}
        {{- with $pods.labels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      annotations:
        # A change of options restarts the pods; one of tokens or of the policy counts by itself.
        roost/configuration: {{ join "\n" $checked | sha256sum }}
        {{- if and $all.metrics.enabled $all.metrics.annotations }}
        prometheus.io/scrape: "true"
        prometheus.io/port: {{ $all.metrics.port | quote }}
        prometheus.io/path: /metrics
        {{- end }}
        {{- with $pods.annotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ include "roost.serviceAccount" $root }}
      automountServiceAccountToken: false
      enableServiceLinks: false
      securityContext:
        {{- include "roost.podSecurity" $root | nindent 8 }}
      terminationGracePeriodSeconds: {{ $pods.terminationGracePeriodSeconds }}
      {{- with $all.image.pullSecrets }}
      imagePullSecrets:
        {{- range . }}
        - name: {{ . }}
        {{- end }}
      {{- end }}
      {{- with $pods.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with default $pods.nodeSelector $own.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with default $pods.tolerations $own.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with default $pods.affinity $own.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      topologySpreadConstraints:
        {{- if $spread }}
        {{- toYaml $spread | nindent 8 }}
        {{- else }}
        - topologyKey: kubernetes.io/hostname
          maxSkew: 1
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- $selector | nindent 14 }}
        {{- end }}
      containers:
        - name: {{ .container }}
          image: {{ include "roost.image" (dict "root" $root "tag" $own.imageTag) }}
          imagePullPolicy: {{ $all.image.pullPolicy }}
          args:
            {{- range .command }}
            - {{ . | quote }}
            {{- end }}
            - --host
            - {{ $all.listenAddress | quote }}
            {{- if .workers }}
            - --workers
            - {{ $own.workers | toString | quote }}
            {{- end }}
            {{- if $all.metrics.enabled }}
            - --metrics-host
            - {{ $all.listenAddress | quote }}
            - --metrics-port
            - {{ $all.metrics.port | toString | quote }}
            {{- end }}
            {{- if $all.tls.existingSecret }}
            - --tls-cert
            - /etc/roost-tls/tls.crt
            - --tls-key
            - /etc/roost-tls/tls.key
            {{- end }}
            {{- range $files }}
            - --config-file
            - /etc/roost/{{ . }}
            {{- end }}
            {{- range $own.arguments }}
            - {{ . | quote }}
            {{- end }}
          {{- with $pods.env }}
          env:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- with $pods.envFrom }}
          envFrom:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          ports:
            - name: {{ $scheme }}
              containerPort: {{ .port }}
            {{- if $all.metrics.enabled }}
            - name: metrics
              containerPort: {{ $all.metrics.port }}
            {{- end }}
          # The port answers when the fleet is loaded, which takes a minute for a million providers.
          startupProbe:
            httpGet: {path: /healthz, port: {{ $scheme }}, scheme: {{ upper $scheme }}}
            timeoutSeconds: 5
            periodSeconds: 5
            failureThreshold: 180
          livenessProbe:
            httpGet: {path: /healthz, port: {{ $scheme }}, scheme: {{ upper $scheme }}}
            timeoutSeconds: 5
            periodSeconds: 10
            failureThreshold: 6
          readinessProbe:
            httpGet: {path: /readyz, port: {{ $scheme }}, scheme: {{ upper $scheme }}}
            timeoutSeconds: 3
            periodSeconds: 5
            failureThreshold: 2
          lifecycle:
            # Roost takes no connection from SIGTERM on. Until then all nodes have to know that this pod ends.
            preStop:
              sleep:
                seconds: 5
          resources:
            {{- toYaml $own.resources | nindent 12 }}
          securityContext:
            {{- include "roost.containerSecurity" $root | nindent 12 }}
          volumeMounts:
            - {name: configuration, mountPath: /etc/roost, readOnly: true}
            - {name: tmp, mountPath: /tmp}
            {{- if $all.tls.existingSecret }}
            - {name: tls, mountPath: /etc/roost-tls, readOnly: true}
            {{- end }}
            {{- if .dashboard }}
            - {name: data, mountPath: /var/lib/roost}
            {{- end }}
            {{- with $pods.volumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      volumes:
        - {{ include "roost.configurationVolume" (dict "root" $root "files" $files "configMap" (include "roost.fullname" $root) "secret" (default (include "roost.fullname" $root) $all.existingSecret)) | nindent 10 | trim }}
        - name: tmp
          emptyDir: {sizeLimit: 1Gi}
        {{- if $all.tls.existingSecret }}
        - name: tls
          secret:
            secretName: {{ $all.tls.existingSecret }}
            defaultMode: 0440
        {{- end }}
        {{- if .dashboard }}
        - name: data
          {{- if $own.persistence.enabled }}
          persistentVolumeClaim:
            claimName: {{ $fullname }}
          {{- else }}
          emptyDir: {sizeLimit: {{ $own.persistence.size }}}
          {{- end }}
        {{- end }}
        {{- with $pods.volumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $fullname }}
  labels:
    {{- $labels | nindent 4 }}
  {{- with $own.service.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ $own.service.type }}
  selector:
    {{- $selector | nindent 4 }}
  ports:
    - name: {{ $scheme }}
      port: {{ .port }}
      targetPort: {{ $scheme }}
{{- if and $all.podDisruptionBudget.enabled (gt (int $replicas) 1) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $fullname }}
  labels:
    {{- $labels | nindent 4 }}
spec:
  maxUnavailable: 1
  # A pod that is not ready protects nothing, and must not keep a node from being drained.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- $selector | nindent 6 }}
{{- end }}
{{- if $all.networkPolicy.enabled }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ $fullname }}
  labels:
    {{- $labels | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- $selector | nindent 6 }}
  policyTypes: [Ingress]
  ingress:
    - ports:
        - port: {{ $scheme }}
      {{- with $all.networkPolicy.clients }}
      from:
        - podSelector:
            matchLabels:
              app.kubernetes.io/instance: {{ $root.Release.Name }}
              app.kubernetes.io/part-of: roost
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- if .announced }}
    # Announcements of work, at a port that each process chooses.
    - ports:
        - protocol: UDP
      from:
        - podSelector:
            matchLabels:
              app.kubernetes.io/instance: {{ $root.Release.Name }}
              app.kubernetes.io/part-of: roost
    {{- end }}
    {{- if $all.metrics.enabled }}
    {{- with $all.networkPolicy.prometheus }}
    - ports:
        - port: metrics
      from:
        {{- toYaml . | nindent 8 }}
    {{- end }}
    {{- end }}
{{- end }}
{{- end -}}
