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

{{/* What a selector of Syncline's own pods asks for. Redis and the test pod have names of their own, or a selector would find them too. */}}
{{- define "syncline.selectorLabels" -}}
app.kubernetes.io/name: {{ include "syncline.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "syncline.redisSelectorLabels" -}}
app.kubernetes.io/name: {{ include "syncline.name" . }}-redis
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "syncline.testSelectorLabels" -}}
app.kubernetes.io/name: {{ include "syncline.name" . }}-test
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Labels of every object that say nothing about which part it is. */}}
{{- define "syncline.commonLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: {{ include "syncline.name" . }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "syncline.labels" -}}
{{ include "syncline.selectorLabels" . }}
{{ include "syncline.commonLabels" . }}
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

{{- define "syncline.podSecurityContext" -}}
runAsNonRoot: true
{{- with .Values.podSecurityContext }}
{{- range $key := list "runAsUser" "runAsGroup" "fsGroup" }}
{{- with index $.Values.podSecurityContext $key }}
{{ $key }}: {{ int64 . }}
{{- end }}
{{- end }}
{{- end }}
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "syncline.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{/* Refuses what would give a key twice: labels and variables that the chart sets itself. */}}
{{- define "syncline.checkNames" -}}
{{- $ours := list "name" "instance" "component" "version" "managed-by" "part-of" -}}
{{- range $where := list "commonLabels" "podLabels" -}}
{{- range $label, $_ := index $.Values $where -}}
{{- if or (eq $label "helm.sh/chart") (and (hasPrefix "app.kubernetes.io/" $label) (has (trimPrefix "app.kubernetes.io/" $label) $ours)) -}}
{{- fail (printf "%s sets %s, which the chart sets itself, since selectors ask for it: use another label" $where $label) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range .Values.extraEnv -}}
{{- if include "syncline.isOwnVariable" .name -}}
{{- fail (printf "extraEnv sets %s, which the chart sets itself: use the values under redis and log, which keep passwords in files" .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Whether a variable is one that the chart sets itself; nothing when it is not. */}}
{{- define "syncline.isOwnVariable" -}}
{{- if regexMatch "^(REDIS_(URL|(SENTINEL_)?PASSWORD(_FILE)?|(CA|CERT|KEY)_FILE)|SYNCLINE_LOG_LEVEL)$" . -}}true{{- end -}}
{{- end -}}
