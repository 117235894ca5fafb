{{- define "syncline.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 46 | trimAll "-" -}}
{{- end -}}

{{/*
The name of objects. The name of a Service begins with a letter and holds no dot. The pods of a
StatefulSet carry its name and a hash in a label of 63 characters, so that 46 are left.
*/}}
{{- define "syncline.fullname" -}}
{{- $name := include "syncline.name" . -}}
{{- $long := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- $full := default $long .Values.fullnameOverride | replace "." "-" | trunc 46 | trimAll "-" -}}
{{- if not (regexMatch "^[a-z]" $full) -}}
{{- fail (printf "objects would be named %s, and the name of a Service must begin with a letter: set fullnameOverride" $full) -}}
{{- end -}}
{{- $full -}}
{{- end -}}

{{/* What a selector of Syncline's own pods asks for. Redis and the test pod have names of their own, or a selector would find them too. */}}
{{- define "syncline.selectorLabels" -}}
app.kubernetes.io/name: {{ include "syncline.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "syncline.redisSelectorLabels" -}}
app.kubernetes.io/name: {{ include "syncline.name" . }}-redis
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "syncline.testSelectorLabels" -}}
app.kubernetes.io/name: {{ include "syncline.name" . }}-test
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* Labels of every object that say nothing about which part it is. */}}
{{- define "syncline.commonLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: {{ include "syncline.name" . | quote }}
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

{{/* The grace period: what was said, checked, or the drain and what stopping takes beyond it. */}}
{{- define "syncline.graceSeconds" -}}
{{- $least := add (int .Values.drainSeconds) 15 -}}
{{- $said := int .Values.terminationGracePeriodSeconds -}}
{{- if and (ne $said 0) (lt $said (int $least)) -}}
{{- fail (printf "terminationGracePeriodSeconds is %d: it must be at least drainSeconds + 15 = %d, or pods are killed while they stop; set it to 0 to derive it" $said (int $least)) -}}
{{- end -}}
{{- if eq $said 0 -}}{{ $least }}{{- else -}}{{ $said }}{{- end -}}
{{- end -}}

{{/* Refuses what would give a key twice: labels, variables and names of containers. */}}
{{- define "syncline.checkNames" -}}
{{- $ours := list "name" "instance" "component" "version" "managed-by" "part-of" -}}
{{- $metrics := .Values.metrics -}}
{{- $labels := dict "commonLabels" .Values.commonLabels "podLabels" .Values.podLabels "metrics.serviceMonitor.labels" $metrics.serviceMonitor.labels "metrics.prometheusRule.labels" $metrics.prometheusRule.labels "metrics.dashboard.labels" $metrics.dashboard.labels -}}
{{- range $where, $set := $labels -}}
{{- range $label, $_ := $set | default dict -}}
{{- if or (eq $label "helm.sh/chart") (and (hasPrefix "app.kubernetes.io/" $label) (has (trimPrefix "app.kubernetes.io/" $label) $ours)) -}}
{{- fail (printf "%s sets %s, which the chart sets itself, since selectors ask for it: use another label" $where $label) -}}
{{- end -}}
{{- if and (hasPrefix "metrics." $where) (hasKey ($.Values.commonLabels | default dict) $label) -}}
{{- fail (printf "%s and commonLabels both set %s: set it in one of them" $where $label) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $seen := dict -}}
{{- range .Values.sinks.urls -}}
{{- if hasKey $seen .name -}}{{- fail (printf "sinks.urls sets %s twice: a variable has one value" .name) -}}{{- end -}}
{{- $_ := set $seen .name true -}}
{{- end -}}
{{- range .Values.extraEnv -}}
{{- if include "syncline.isOwnVariable" .name -}}
{{- fail (printf "extraEnv sets %s, which the chart sets itself: use the values under redis, outcomes and log, which keep passwords in files" .name) -}}
{{- end -}}
{{- if hasKey $seen .name -}}{{- fail (printf "extraEnv sets %s, which it or sinks.urls sets, too: a variable has one value" .name) -}}{{- end -}}
{{- if and .value .valueFrom -}}{{- fail (printf "extraEnv gives %s a value and a valueFrom: give it one of them" .name) -}}{{- end -}}
{{- $_ := set $seen .name true -}}
{{- end -}}
{{- $names := dict "syncline" true -}}
{{- range concat (.Values.extraContainers | default list) (.Values.initContainers | default list) -}}
{{- if hasKey $names .name -}}{{- fail (printf "extraContainers and initContainers: the name %s is taken, and a pod's containers have different ones" .name) -}}{{- end -}}
{{- $_ := set $names .name true -}}
{{- end -}}
{{- end -}}

{{/* Refuses what a pod cannot have: a volume or a place twice, a mount of no volume. */}}
{{- define "syncline.checkMounts" -}}
{{- $volumes := dict "policies" true "tmp" true -}}
{{- $places := dict "/etc/syncline/policies" "the policies" "/run/secrets/redis" "secrets of Redis" "/run/secrets/web" "files of the role web" "/tmp" "temporary files" -}}
{{- range $index, $name := .Values.secrets -}}
{{- $_ := set $volumes (printf "secret-%d" $index) true -}}
{{- $_ := set $places (printf "/run/secrets/syncline/%s" $name) (printf "the secret %s" $name) -}}
{{- end -}}
{{- with .Values.sinks.volume -}}
{{- if ne .kind "none" -}}
{{- with get $places .mountPath -}}{{- fail (printf "sinks.volume.mountPath is %s, where %s lie: choose another place" $.Values.sinks.volume.mountPath .) -}}{{- end -}}
{{- $_ := set $places .mountPath "what file sinks write" -}}
{{- end -}}
{{- end -}}
{{- range .Values.extraVolumes -}}
{{- if or (hasKey $volumes .name) (has .name (list "redis" "sinks" "web")) -}}{{- fail (printf "extraVolumes: the name %s is taken: use another one" .name) -}}{{- end -}}
{{- $_ := set $volumes .name true -}}
{{- end -}}
{{- range concat (.Values.extraContainers | default list) (.Values.initContainers | default list) -}}
{{- $container := .name -}}
{{- range .volumeMounts -}}
{{- if eq .name "sinks" -}}{{- fail (printf "the container %s mounts sinks, which only pods with workers have: let sinks.volume.kind be none, and give extraVolumes and extraVolumeMounts a volume of your own for what file sinks write" $container) -}}{{- end -}}
{{- if not (hasKey $volumes .name) -}}{{- fail (printf "the container %s mounts %s, which is no volume: add it to extraVolumes" $container .name) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- range .Values.extraVolumeMounts -}}
{{- $path := clean .mountPath -}}
{{- if not (hasKey $volumes .name) -}}{{- fail (printf "extraVolumeMounts mounts %s, which is no volume: add it to extraVolumes" .name) -}}{{- end -}}
{{- with get $places $path -}}{{- fail (printf "extraVolumeMounts mounts something at %s, where %s lie: choose another place" $path .) -}}{{- end -}}
{{- $_ := set $places $path "files of another mount" -}}
{{- end -}}
{{- end -}}

{{/* Refuses a request above its limit: the API server would, and no pod would come up. */}}
{{- define "syncline.checkResources" -}}
{{- $sets := dict "resources" .Values.resources "scheduler.resources" .Values.scheduler.resources "worker.resources" .Values.worker.resources "web.resources" .Values.web.resources "redis.embedded.resources" .Values.redis.embedded.resources -}}
{{- range $where, $set := $sets -}}
{{- $limits := ($set | default dict).limits | default dict -}}
{{- range $name, $request := ($set | default dict).requests | default dict -}}
{{- if hasKey $limits $name -}}
{{- $limit := index $limits $name -}}
{{- if gt (include "syncline.quantity" $request | float64) (include "syncline.quantity" $limit | float64) -}}
{{- fail (printf "%s.requests.%s is %v, more than %s.limits.%s, which is %v" $where $name $request $where $name $limit) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A quantity such as 100m, 1.5, 1e3 or 64Mi as a plain number. */}}
{{- define "syncline.quantity" -}}
{{- $text := kindIs "string" . | ternary . (printf "%f" (float64 .)) -}}
{{- $unit := regexFind "[a-zA-Z]+$" $text -}}
{{- $units := dict "" 1.0 "n" 1e-9 "u" 1e-6 "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 "Ei" 1152921504606846976.0 -}}
{{- mulf (trimSuffix $unit $text | float64) (index $units $unit) | printf "%f" -}}
{{- end -}}

{{/* Whether a variable is one that the chart sets itself; nothing when it is not. */}}
{{- define "syncline.isOwnVariable" -}}
{{- if regexMatch "^(REDIS_(URL|(SENTINEL_)?PASSWORD(_FILE)?|(CA|CERT|KEY)_FILE)|SYNCLINE_(LOG_LEVEL|PREFIX|OWNER|OUTCOMES_(KEPT|FOR)))$" . -}}true{{- end -}}
{{- end -}}
