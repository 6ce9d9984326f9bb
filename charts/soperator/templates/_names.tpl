{{- define "soperator.labels" -}}
app.kubernetes.io/name: soperator
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "soperator.wide" -}}
{{ .Release.Namespace }}-{{ .Release.Name }}
{{- end }}

{{- /* The image of a role: its own, or <prefix>/<role>:<tag>@<digest>. Call with (list $ "slurm"). Without a prefix only machines that have built the images have them. */}}
{{- define "soperator.image" -}}
{{- $root := index . 0 }}{{ $role := index . 1 }}{{ $images := $root.Values.images -}}
{{- $digest := "" }}{{ if not $images.tag }}{{ $digest = get ($images.digests | default dict) $role }}{{ end -}}
{{ get $images $role | default (printf "%s/%s:%s%s" ($images.prefix | default "localhost/soperator") $role ($images.tag | default $root.Chart.AppVersion) (ternary (print "@" $digest) "" (not (empty $digest)))) }}
{{- end }}
