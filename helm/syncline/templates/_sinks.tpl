{{/* What sinks need of a pod: a place to write to, and checks of what the values say about them. */}}

{{- define "syncline.sinkMount" -}}
{{- if ne .Values.sinks.volume.kind "none" }}
- { name: sinks, mountPath: {{ .Values.sinks.volume.mountPath | quote }} }
{{- end }}
{{- end -}}

{{- define "syncline.sinkVolume" -}}
{{- with .Values.sinks.volume }}
{{- if eq .kind "emptyDir" }}
- name: sinks
  emptyDir: { sizeLimit: {{ .sizeLimit }} }
{{- else if eq .kind "claim" }}
- name: sinks
  persistentVolumeClaim: { claimName: {{ required "sinks.volume.kind is claim, and so sinks.volume.claimName is needed: the PersistentVolumeClaim that file sinks write to" .claimName | quote }} }
{{- end }}
{{- end }}
{{- end -}}

{{/* The sinks and heartbeats in `policies.files`, as far as they can be read here: `{"files": {place: path}, "ports": [443]}` as JSON. */}}
{{- define "syncline.sinksInPolicies" -}}
{{- $files := dict -}}
{{- $urls := list -}}
{{- $ports := list -}}
{{- range $file, $text := .Values.policies.files | default dict -}}
{{- $content := fromYaml $text -}}
{{- range $name, $sink := (kindIs "map" $content.sinks | ternary $content.sinks dict) -}}
{{- if kindIs "map" $sink -}}
{{- if kindIs "map" $sink.file -}}{{- with $sink.file.path -}}{{- $_ := set $files (printf "%s, sink %s" $file $name) (toString .) -}}{{- end -}}{{- end -}}
{{- if kindIs "map" $sink.webhook -}}{{- with $sink.webhook.url -}}{{- $urls = append $urls (toString .) -}}{{- end -}}{{- end -}}
{{- if kindIs "map" $sink.email -}}{{- with int (default 465 $sink.email.port) -}}{{- $ports = append $ports . -}}{{- end -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- range (kindIs "slice" $content.policies | ternary $content.policies list) -}}
{{- if kindIs "map" . -}}{{- if kindIs "map" .heartbeat -}}{{- with .heartbeat.url -}}{{- $urls = append $urls (toString .) -}}{{- end -}}{{- end -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- range $urls -}}
{{- if regexMatch "^https?://" . -}}
{{- $said := regexFind ":[0-9]+$" (regexFind "^https?://[^/?#]*" . | trimPrefix "https:" | trimPrefix "http:") | trimPrefix ":" -}}
{{- $ports = append $ports (int (default (ternary 80 443 (hasPrefix "http:" .)) $said)) -}}
{{- end -}}
{{- end -}}
{{- toJson (dict "files" $files "ports" (uniq $ports | sortAlpha)) -}}
{{- end -}}

{{/* Refuses a file sink where nothing can be written. What stands in an existing ConfigMap, or behind a variable, only doctor can tell. */}}
{{- define "syncline.checkSinks" -}}
{{- $places := list "/tmp" -}}
{{- if ne .Values.sinks.volume.kind "none" -}}{{- $places = append $places .Values.sinks.volume.mountPath -}}{{- end -}}
{{- range .Values.extraVolumeMounts -}}{{- if not .readOnly -}}{{- $places = append $places .mountPath -}}{{- end -}}{{- end -}}
{{- range $where, $path := (include "syncline.sinksInPolicies" . | fromJson).files -}}
{{- $lies := contains "${" $path -}}
{{- range $places -}}{{- if hasPrefix (printf "%s/" (trimSuffix "/" .)) (clean $path) -}}{{- $lies = true -}}{{- end -}}{{- end -}}
{{- if not $lies -}}
{{- fail (printf "policies.files: %s writes to %s, where the root file system is read-only: set sinks.volume.kind to emptyDir or claim, and let the path begin with sinks.volume.mountPath, which is %s" $where $path $.Values.sinks.volume.mountPath) -}}
{{- end -}}
{{- end -}}
{{- range .Values.sinks.urls -}}
{{- if include "syncline.isOwnVariable" .name -}}
{{- fail (printf "sinks.urls sets %s, which the chart sets itself: use another name" .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
