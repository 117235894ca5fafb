{{/* The role `web`: how it is called, and who may look. Modes are decimal: 288 is 0440. */}}
{{- define "syncline.webArgs" -}}
- "--web-host=::"
- --web-port={{ int .Values.web.port }}
{{- if .Values.web.tokensSecret.name }}
- --web-tokens=/run/secrets/web/tokens
{{- end }}
{{- if .Values.web.authSecret.name }}
- --web-auth=/run/secrets/web/auth.yaml
{{- end }}
{{- if .Values.web.readOnly }}
- --web-read-only
{{- end }}
{{- end -}}

{{- define "syncline.webVolume" -}}
- name: web
  projected:
    defaultMode: 288
    sources:
      {{- range $file, $secret := dict "tokens" .Values.web.tokensSecret "auth.yaml" .Values.web.authSecret }}
      {{- if $secret.name }}
      - secret: { name: {{ $secret.name | quote }}, items: [{ key: {{ $secret.key | quote }}, path: {{ $file }} }] }
      {{- end }}
      {{- end }}
{{- end -}}

{{/* Refuses what could not be reached, or could be reached by everyone. */}}
{{- define "syncline.checkWeb" -}}
{{- $web := .Values.web -}}
{{- if $web.enabled -}}
{{- if not (or $web.tokensSecret.name $web.authSecret.name) -}}
{{- fail "web.enabled is true, and so web.tokensSecret.name or web.authSecret.name is needed: a secret that says who may look (docs/dashboard.md)" -}}
{{- end -}}
{{- if eq (int $web.port) (int .Values.health.port) -}}
{{- fail (printf "web.port and health.port are both %d: take different ones" (int $web.port)) -}}
{{- end -}}
{{- if and $web.ingress.enabled (not $web.ingress.host) -}}
{{- fail "web.ingress.enabled is true, and so web.ingress.host is needed: the name under which people reach the dashboard" -}}
{{- end -}}
{{- if and $web.httpRoute.enabled (not $web.httpRoute.parentRefs) -}}
{{- fail "web.httpRoute.enabled is true, and so web.httpRoute.parentRefs is needed: the Gateways that lead to the dashboard" -}}
{{- end -}}
{{- else if or $web.ingress.enabled $web.httpRoute.enabled -}}
{{- fail "web.ingress or web.httpRoute is enabled, but web.enabled is false: there would be nothing behind it" -}}
{{- end -}}
{{- end -}}
