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
  serviceAccountName: {{ include "syncline.serviceAccountName" $root }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ include "syncline.graceSeconds" $root }}
  {{- with $values.imagePullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  {{- with $values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext:
    {{- include "syncline.podSecurityContext" $root | nindent 4 }}
  {{- with $values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
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
        - --prefix={{ $values.redis.prefix }}
        - --drain={{ int $values.drainSeconds }}s
        - --take-over-after={{ int $values.takeOverAfterSeconds }}s
        - --health-port={{ int $values.health.port }}
      env:
        {{- include "syncline.redisEnv" $root | nindent 8 }}
        - name: SYNCLINE_LOG_LEVEL
          value: {{ $values.log.level }}
        {{- with $values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with $values.extraEnvFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - { name: health, containerPort: {{ int $values.health.port }}, protocol: TCP }
      startupProbe:
        httpGet: { path: /livez, port: health }
        periodSeconds: 2
        failureThreshold: 60
      livenessProbe:
        httpGet: { path: /livez, port: health }
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 3
      readinessProbe:
        httpGet: { path: /readyz, port: health }
        periodSeconds: 5
        timeoutSeconds: 3
      resources:
        {{- toYaml (default $values.resources .resources) | nindent 8 }}
      securityContext:
        {{- include "syncline.securityContext" $root | nindent 8 }}
      volumeMounts:
        # A whole folder, never subPath: only so do changed policies arrive in a running pod.
        - { name: policies, mountPath: /etc/syncline/policies, readOnly: true }
        {{- range $values.secrets }}
        - { name: {{ printf "secret-%s" . }}, mountPath: {{ printf "/run/secrets/syncline/%s" . }}, readOnly: true }
        {{- end }}
        - { name: tmp, mountPath: /tmp }
        {{- with $values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: policies
      configMap: { name: {{ include "syncline.policiesConfigMap" $root }} }
    {{- range $values.secrets }}
    - name: {{ printf "secret-%s" . }}
      secret: { secretName: {{ . }}, defaultMode: 0440 }
    {{- end }}
    - name: tmp
      emptyDir: { sizeLimit: 64Mi }
    {{- with $values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}
