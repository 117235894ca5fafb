{{- define "syncline.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "syncline.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "syncline.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "syncline.selectorLabels" -}}
app.kubernetes.io/name: {{ include "syncline.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "syncline.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "syncline.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "syncline.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "syncline.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "syncline.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "syncline.policiesConfigMap" -}}
{{- default (printf "%s-policies" (include "syncline.fullname" .)) .Values.policies.existingConfigMap -}}
{{- end -}}

{{/* The grace period: what was said, checked, or the drain and what stopping takes beyond it. */}}
{{- define "syncline.graceSeconds" -}}
{{- $least := add (int .Values.drainSeconds) 15 -}}
{{- $said := int .Values.terminationGracePeriodSeconds -}}
{{- if and (ne $said 0) (lt $said (int $least)) -}}
{{- fail (printf "terminationGracePeriodSeconds is %d: it must be at least drainSeconds + 15 = %d, or pods are killed while they stop; set it to 0 to derive it" $said (int $least)) -}}
{{- end -}}
{{- if eq $said 0 -}}{{ $least }}{{- else -}}{{ $said }}{{- end -}}
{{- end -}}

{{- define "syncline.redisEnv" -}}
- name: REDIS_URL
{{- if .Values.redis.embedded.enabled }}
  value: {{ printf "redis://%s-redis:6379" (include "syncline.fullname" .) | quote }}
{{- else if .Values.redis.existingSecret.name }}
  valueFrom:
    secretKeyRef:
      name: {{ .Values.redis.existingSecret.name }}
      key: {{ .Values.redis.existingSecret.key }}
{{- else }}
  value: {{ required "redis.url or redis.existingSecret.name is needed (or redis.embedded.enabled=true for trying out)" .Values.redis.url | quote }}
{{- end }}
{{- end -}}

{{- define "syncline.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "syncline.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}
