{{/* Objects are named after the release; "thinwire" makes the names of deploy/base. */}}
{{- define "thinwire.name" -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "thinwire.selector" -}}
app.kubernetes.io/name: {{ include "thinwire.name" . }}
app.kubernetes.io/component: proxy
{{- end }}

{{- define "thinwire.labels" -}}
app.kubernetes.io/name: {{ include "thinwire.name" . }}
{{ include "thinwire.origin" . }}
{{- end }}

{{- define "thinwire.origin" -}}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* The configuration, with what the switches add to it. */}}
{{- define "thinwire.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- if .Values.tls.enabled -}}
{{- $pair := dict "chain" "tls/tls.crt" "key" "tls/tls.key" -}}
{{- $listener := dict "address" "0.0.0.0:8443" "tls" (dict "certificates" (list $pair)) -}}
{{- $_ := set $config "listen" (append $config.listen $listener) -}}
{{- end -}}
{{- if .Values.valkey.enabled -}}
{{- $url := printf "redis://%s-valkey:6379" (include "thinwire.name" .) -}}
{{- $cache := merge (dict "shared" (dict "url" $url "timeout" .Values.valkey.timeout)) (default (dict) $config.cache) -}}
{{- $_ := set $config "cache" $cache -}}
{{- end -}}
{{- toYaml $config -}}
{{- end }}
