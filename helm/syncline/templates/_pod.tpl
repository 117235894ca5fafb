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
  priorityClassName: {{ . }}
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
        - {{ printf "--prefix=%s" $values.redis.prefix | quote }}
        - --drain={{ int $values.drainSeconds }}s
        - --take-over-after={{ int $values.takeOverAfterSeconds }}s
        - --health-port={{ int $values.health.port }}
      {{- include "syncline.env" $root | nindent 6 }}
      ports:
        - { name: health, containerPort: {{ int $values.health.port }}, protocol: TCP }
      startupProbe:
        httpGet: { path: /livez, port: health }
        periodSeconds: 2
        timeoutSeconds: 5
        failureThreshold: 60
      # Whether the event loop turns, and nothing more: a pod that waits for Redis must not be killed for it.
      livenessProbe:
        httpGet: { path: /livez, port: health }
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 3
      readinessProbe:
        httpGet: { path: /readyz, port: health }
        periodSeconds: 5
        timeoutSeconds: 3
        failureThreshold: 2
      resources:
        {{- toYaml (default $values.resources .resources) | nindent 8 }}
      securityContext:
        {{- include "syncline.securityContext" $root | nindent 8 }}
      {{- include "syncline.mounts" $root | nindent 6 }}
      {{- if contains "worker" .roles }}
      {{- include "syncline.sinkMount" $root | nindent 8 }}
      {{- end }}
  {{- include "syncline.volumes" $root | nindent 2 }}
  {{- if contains "worker" .roles }}
  {{- include "syncline.sinkVolume" $root | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* What every pod with the image has in common: who it is, what it may, where it may run. */}}
{{- define "syncline.podBasics" -}}
serviceAccountName: {{ include "syncline.serviceAccountName" . }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  {{- include "syncline.podSecurityContext" . | nindent 2 }}
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
  - name: SYNCLINE_LOG_LEVEL
    value: {{ .Values.log.level }}
  {{- range .Values.sinks.urls }}
  - name: {{ .name }}
    valueFrom: { secretKeyRef: { name: {{ .secret }}, key: {{ .key | quote }} } }
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
  - { name: secret-{{ $index }}, mountPath: {{ printf "/run/secrets/syncline/%s" $name }}, readOnly: true }
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
    configMap: { name: {{ include "syncline.policiesConfigMap" . }} }
  {{- range $index, $name := .Values.secrets }}
  - name: secret-{{ $index }}
    secret: { secretName: {{ $name }}, defaultMode: 288 }
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
