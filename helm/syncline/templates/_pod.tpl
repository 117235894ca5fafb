{{/* A pod of Syncline. Called with (dict "root" $ "roles" "scheduler,worker" "component" "syncline" "resources" {…}). */}}
{{- define "syncline.pod" -}}
{{- $root := .root -}}
{{- $values := $root.Values -}}
metadata:
  labels:
    {{- include "syncline.selectorLabels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
    {{- with $values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- include "syncline.podBasics" $root | nindent 2 }}
  terminationGracePeriodSeconds: {{ include "syncline.graceSeconds" $root }}
  {{- with $values.priorityClassName }}
  priorityClassName: {{ . | quote }}
  {{- end }}
  topologySpreadConstraints:
    {{- if $values.topologySpreadConstraints }}
    {{- toYaml $values.topologySpreadConstraints | nindent 4 }}
    {{- else }}
    {{- $component := .component }}
    {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      # Pods of this version only: those of the old one are about to go.
      matchLabelKeys: [pod-template-hash]
      labelSelector:
        matchLabels:
          {{- include "syncline.selectorLabels" $root | nindent 10 }}
          app.kubernetes.io/component: {{ $component }}
    {{- end }}
    {{- end }}
  containers:
    - name: syncline
      image: {{ include "syncline.image" $root | quote }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      args:
        - serve
        - --config=/etc/syncline/policies
        - --roles={{ .roles }}
        - --drain={{ int $values.drainSeconds }}s
        - --take-over-after={{ int $values.takeOverAfterSeconds }}s
        - --health-port={{ int $values.health.port }}
        {{- if eq .roles "web" }}
        {{- include "syncline.webArgs" $root | nindent 8 }}
        {{- end }}
      {{- include "syncline.env" $root | nindent 6 }}
      ports:
        - { name: health, containerPort: {{ int $values.health.port }}, protocol: TCP }
        {{- if eq .roles "web" }}
        - { name: web, containerPort: {{ int $values.web.port }}, protocol: TCP }
        {{- end }}
      {{- if eq .roles "web" }}
      # Proxies hear of a pod's end while it stops: until they have, it answers.
      lifecycle: { preStop: { exec: { command: [/usr/bin/node, -e, "setTimeout(() => {}, 5000)"] } } }
      {{- end }}
      {{- range $kind := list "startup" "liveness" "readiness" }}
      {{- $probe := index $values.probes $kind }}
      {{- if $probe.enabled }}
      {{ $kind }}Probe:
        httpGet: { path: {{ ternary "/readyz" "/livez" (eq $kind "readiness") }}, port: health }
        {{- range $key, $value := omit $probe "enabled" }}
        {{ $key }}: {{ int $value }}
        {{- end }}
      {{- end }}
      {{- end }}
      {{- with default $values.resources .resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.securityContext }}
      securityContext:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- include "syncline.mounts" $root | nindent 6 }}
      {{- if contains "worker" .roles }}
      {{- include "syncline.sinkMount" $root | nindent 8 }}
      {{- else if eq .roles "web" }}
        - { name: web, mountPath: /run/secrets/web, readOnly: true }
      {{- end }}
    {{- with $values.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $values.initContainers }}
  initContainers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- include "syncline.volumes" $root | nindent 2 }}
  {{- if contains "worker" .roles }}
  {{- include "syncline.sinkVolume" $root | nindent 4 }}
  {{- else if eq .roles "web" }}
  {{- include "syncline.webVolume" $root | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* What every pod with the image has in common: who it is, what it may, where it may run. */}}
{{- define "syncline.podBasics" -}}
serviceAccountName: {{ include "syncline.serviceAccountName" . | quote }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.runtimeClassName }}
runtimeClassName: {{ . | quote }}
{{- end }}
{{- with .Values.dnsPolicy }}
dnsPolicy: {{ . }}
{{- end }}
{{- with .Values.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.hostAliases }}
hostAliases:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "syncline.env" -}}
env:
  {{- include "syncline.redisEnv" . | nindent 2 }}
  # Variables, not arguments: so `kubectl exec … syncline status` reads the same keys.
  - name: SYNCLINE_PREFIX
    value: {{ include "syncline.prefix" . | quote }}
  - name: SYNCLINE_OWNER
    value: {{ printf "%s/%s" .Release.Namespace .Release.Name | quote }}
  - name: SYNCLINE_OUTCOMES_KEPT
    value: {{ int .Values.outcomes.kept | quote }}
  - name: SYNCLINE_OUTCOMES_FOR
    value: {{ .Values.outcomes.keptFor | quote }}
  - name: SYNCLINE_LOG_LEVEL
    value: {{ .Values.log.level }}
  {{- range .Values.sinks.urls }}
  - name: {{ .name | quote }}
    valueFrom: { secretKeyRef: { name: {{ .secret | quote }}, key: {{ .key | quote }} } }
  {{- end }}
  {{- with .Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .Values.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "syncline.mounts" -}}
volumeMounts:
  # A whole folder, never subPath: only so do changed policies arrive in a running pod.
  - { name: policies, mountPath: /etc/syncline/policies, readOnly: true }
  {{- range $index, $name := .Values.secrets }}
  - { name: secret-{{ $index }}, mountPath: {{ printf "/run/secrets/syncline/%s" $name | quote }}, readOnly: true }
  {{- end }}
  {{- if include "syncline.redisSources" . }}
  - { name: redis, mountPath: /run/secrets/redis, readOnly: true }
  {{- end }}
  - { name: tmp, mountPath: /tmp }
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* Modes are decimal: 288 is 0440. */}}
{{- define "syncline.volumes" -}}
volumes:
  - name: policies
    # One volume of all ConfigMaps: their changes arrive together, by one swap of a link.
    projected:
      sources:
        {{- range include "syncline.policiesConfigMaps" . | fromJsonArray }}
        - configMap: { name: {{ . | quote }} }
        {{- end }}
  {{- range $index, $name := .Values.secrets }}
  - name: secret-{{ $index }}
    secret: { secretName: {{ $name | quote }}, defaultMode: 288 }
  {{- end }}
  {{- with include "syncline.redisSources" . }}
  - name: redis
    projected:
      defaultMode: 288
      sources:
        {{- . | nindent 8 }}
  {{- end }}
  - name: tmp
    emptyDir: { sizeLimit: 64Mi }
  {{- with .Values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
