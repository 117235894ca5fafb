{{/* The ConfigMaps with policy files: how the chart lays `policies.files` into them. */}}

{{/*
Names of files, a list for each ConfigMap, as JSON. A ConfigMap holds 1 MiB, and Syncline reads 256 KiB
of a file and 200 files (`policyLimits`).
*/}}
{{- define "syncline.policyParts" -}}
{{- $files := .Values.policies.files | default dict -}}
{{- if gt (len $files) 200 -}}
{{- fail (printf "policies.files holds %d files, and Syncline reads 200 at most: put several policies into one file" (len $files)) -}}
{{- end -}}
{{- $parts := list -}}
{{- $part := list -}}
{{- $bytes := 0 -}}
{{- range $name, $text := $files -}}
{{- if not (regexMatch "^[-_a-zA-Z0-9][-._a-zA-Z0-9]{0,247}\\.(ya?ml|ics)$" $name) -}}
{{- fail (printf "policies.files: %q cannot be a policy file in a ConfigMap: use letters, digits, - _ and . (not first), the ending .yaml, .yml or .ics, and 253 characters at most" (trunc 300 $name)) -}}
{{- end -}}
{{- if and (gt (len $text) 262144) (not (hasSuffix ".ics" $name)) -}}
{{- fail (printf "policies.files: %s holds %d bytes, and Syncline reads 262144 (256 KiB) of a file: split it into several files" $name (len $text)) -}}
{{- end -}}
{{- if gt (add $bytes (len $text)) 1000000 -}}
{{- $parts = append $parts $part -}}
{{- $part = list -}}
{{- $bytes = 0 -}}
{{- end -}}
{{- $part = append $part $name -}}
{{- $bytes = add $bytes (len $text) -}}
{{- end -}}
{{- if $part -}}{{- $parts = append $parts $part -}}{{- end -}}
{{- toJson $parts -}}
{{- end -}}

{{/*
Names of the ConfigMaps that the pods mount, as JSON: those of the operator, else FULLNAME-policies,
FULLNAME-policies-2 and so on.
*/}}
{{- define "syncline.policiesConfigMaps" -}}
{{- $names := .Values.policies.existingConfigMaps | default list -}}
{{- range $index, $_ := include "syncline.policyParts" . | fromJsonArray -}}
{{- $suffix := ternary "" (printf "-%d" (add1 $index)) (eq $index 0) -}}
{{- $names = append $names (printf "%s-policies%s" (include "syncline.fullname" $) $suffix) -}}
{{- end -}}
{{- toJson $names -}}
{{- end -}}
