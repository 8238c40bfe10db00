{{/* The name of everything of a release: the release's, with the chart's unless it is in it. */}}
{{- define "basetide.name" -}}
{{- if contains "basetide" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-basetide" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "basetide.selector" -}}
app.kubernetes.io/name: basetide
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "basetide.labels" -}}
{{ include "basetide.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* The roles that have pods of their own, separated by spaces. */}}
{{- define "basetide.roles" -}}
{{- if .Values.all.enabled }}all{{ else }}worker proxy console{{ end -}}
{{- end }}

{{/* The role whose pods serve a service (console or proxy). */}}
{{- define "basetide.servedBy" -}}
{{- if .root.Values.all.enabled }}all{{ else }}{{ .role }}{{ end -}}
{{- end }}

{{- define "basetide.image" -}}
{{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
{{- end }}

{{- define "basetide.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{/* What every container of ours has: the image, its confinement, its environment. */}}
{{- define "basetide.container" -}}
image: {{ include "basetide.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
# The remedy of a failed start is in the pod's status.
terminationMessagePolicy: FallbackToLogsOnError
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
volumeMounts:
  - { name: tmp, mountPath: /tmp }
env:
  - name: DATABASE_URL
    valueFrom: { secretKeyRef: { name: {{ .Values.database.existingSecret | quote }}, key: {{ .Values.database.key | quote }} } }
  {{- if .Values.replicas.existingSecret }}
  - name: REPLICA_URL
    valueFrom: { secretKeyRef: { name: {{ .Values.replicas.existingSecret | quote }}, key: {{ .Values.replicas.key | quote }} } }
  {{- end }}
  - name: SECRET_KEY
    valueFrom: { secretKeyRef: { name: {{ .Values.secretKey.existingSecret | quote }}, key: {{ .Values.secretKey.key | quote }} } }
  {{- if .Values.secretKey.previousKey }}
  - name: SECRET_KEY_PREVIOUS
    valueFrom: { secretKeyRef: { name: {{ .Values.secretKey.existingSecret | quote }}, key: {{ .Values.secretKey.previousKey | quote }} } }
  {{- end }}
  - { name: CONSOLE_URL, value: {{ .Values.consoleUrl | quote }} }
  - { name: PROXY_URL, value: {{ .Values.proxyUrl | quote }} }
  - { name: CONSOLE_PORT, value: "3000" }
  - { name: PROXY_PORT, value: "4000" }
  - { name: WORKER_PORT, value: "4200" }
  - { name: METRICS_PORT, value: "9464" }
  - { name: DATA_DIR, value: /tmp }
  {{- with (.Values.write).port }}
  - { name: WRITE_PORT, value: {{ . | quote }} }
  {{- if not (hasKey $.Values.env "WRITE_HOST") }}
  - { name: WRITE_HOST, value: {{ printf "%s-write.%s.svc" (include "basetide.name" $) $.Release.Namespace | quote }} }
  {{- end }}
  {{- end }}
  {{- with .Values.clientIpHeader }}
  - { name: CLIENT_IP_HEADER, value: {{ . | quote }} }
  {{- end }}
  {{- range $name, $value := .Values.env }}
  - { name: {{ $name }}, value: {{ $value | toString | quote }} }
  {{- end }}
{{- with .Values.envFrom }}
envFrom: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What every pod of ours has, but for its containers. */}}
{{- define "basetide.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext: {{ include "basetide.podSecurity" . | nindent 2 }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
volumes:
  # Sockets of the gateway to customers' databases.
  - { name: tmp, emptyDir: { sizeLimit: 256Mi } }
{{- end }}
