{{/* How a pod reaches Redis: variables, and the volume with what is secret. Passwords and keys are files, never variables. */}}

{{- define "syncline.redisEnv" -}}
{{- $redis := .Values.redis -}}
{{- if and (or $redis.tls.caSecret.name $redis.tls.clientSecret.name) (or $redis.embedded.enabled (and $redis.url (not $redis.existingSecret.name) (not (hasPrefix "rediss" $redis.url)))) }}
{{- fail "redis.tls names certificates, and Redis is asked without TLS: begin redis.url with rediss, or leave redis.tls out (redis.embedded speaks no TLS)" }}
{{- end -}}
- name: REDIS_URL
{{- if $redis.embedded.enabled }}
  {{- if or $redis.url $redis.existingSecret.name }}
  {{- fail "redis.embedded.enabled is true, and so redis.url and redis.existingSecret.name must be empty: there can be one Redis only" }}
  {{- end }}
  value: {{ printf "redis://%s-redis:6379" (include "syncline.fullname" .) | quote }}
{{- else if $redis.existingSecret.name }}
  valueFrom:
    secretKeyRef:
      name: {{ $redis.existingSecret.name | quote }}
      key: {{ $redis.existingSecret.key | quote }}
{{- else }}
  value: {{ required "redis.url or redis.existingSecret.name is needed (or redis.embedded.enabled=true for trying out)" $redis.url | quote }}
{{- end }}
{{- with $redis.passwordSecret.name }}
- name: REDIS_PASSWORD_FILE
  value: /run/secrets/redis/password
{{- end }}
{{- with $redis.sentinelPasswordSecret.name }}
- name: REDIS_SENTINEL_PASSWORD_FILE
  value: /run/secrets/redis/sentinel-password
{{- end }}
{{- with $redis.tls.caSecret.name }}
- name: REDIS_CA_FILE
  value: /run/secrets/redis/ca.crt
{{- end }}
{{- with $redis.tls.clientSecret.name }}
- name: REDIS_CERT_FILE
  value: /run/secrets/redis/tls.crt
- name: REDIS_KEY_FILE
  value: /run/secrets/redis/tls.key
{{- end }}
{{- end -}}

{{/*
The start of all keys: what was said, or the release's own, `{syncline.NAMESPACE.RELEASE}`. A namespace
holds no dot, so no two releases share it. Syncline takes 64 characters: a longer prefix is cut, and
ends in a hash of the whole.
*/}}
{{- define "syncline.prefix" -}}
{{- $own := printf "%s.%s" .Release.Namespace .Release.Name -}}
{{- if gt (len $own) 53 -}}
{{- $own = printf "%s-%s" (trunc 44 $own) (sha256sum $own | trunc 8) -}}
{{- end -}}
{{- default (printf "{syncline.%s}" $own) .Values.redis.prefix -}}
{{- end -}}

{{/* The sources of the volume, or nothing. */}}
{{- define "syncline.redisSources" -}}
{{- $redis := .Values.redis -}}
{{- with $redis.passwordSecret }}{{ if .name }}
- secret: { name: {{ .name | quote }}, items: [{ key: {{ .key | quote }}, path: password }] }
{{- end }}{{ end }}
{{- with $redis.sentinelPasswordSecret }}{{ if .name }}
- secret: { name: {{ .name | quote }}, items: [{ key: {{ .key | quote }}, path: sentinel-password }] }
{{- end }}{{ end }}
{{- with $redis.tls.caSecret }}{{ if .name }}
- secret: { name: {{ .name | quote }}, items: [{ key: {{ .key | quote }}, path: ca.crt }] }
{{- end }}{{ end }}
{{- with $redis.tls.clientSecret }}{{ if .name }}
- secret:
    name: {{ .name | quote }}
    items: [{ key: {{ .certKey | quote }}, path: tls.crt }, { key: {{ .keyKey | quote }}, path: tls.key }]
{{- end }}{{ end }}
{{- end -}}

{{/* The ports of Redis as a JSON array: those that were said, else those in the URL; with Sentinels both kinds. */}}
{{- define "syncline.redisPorts" -}}
{{- $url := .Values.redis.url -}}
{{- if .Values.networkPolicy.redisPorts -}}
{{- toJson .Values.networkPolicy.redisPorts -}}
{{- else -}}
{{- $ports := list -}}
{{- $hosts := regexReplaceAll "^[a-z+]*://([^/@]*@)?([^/]*).*$" $url "${2}" -}}
{{- range splitList "," $hosts -}}
{{- $said := regexFind ":[0-9]+$" . | trimPrefix ":" -}}
{{- $port := int (default (ternary 26379 6379 (contains "+sentinel" $url)) $said) -}}
{{- if or (lt $port 1) (gt $port 65535) -}}
{{- fail (printf "redis.url names port %d: a port is a number from 1 to 65535" $port) -}}
{{- end -}}
{{- $ports = append $ports $port -}}
{{- end -}}
{{- if contains "+sentinel" $url -}}{{- $ports = append $ports 6379 -}}{{- end -}}
{{- toJson (uniq $ports) -}}
{{- end -}}
{{- end -}}
