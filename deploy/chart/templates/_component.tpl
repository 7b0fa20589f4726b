{{/* Labels of a component. */}}
{{- define "drachma.labels" -}}
app.kubernetes.io/component: {{ .name }}
app.kubernetes.io/name: drachma
{{- end }}

{{/* Metadata of an object of a component in a namespace. */}}
{{- define "drachma.metadata" -}}
name: drachma-{{ .name }}
namespace: {{ .root.Values.namespace }}
labels:
  {{- include "drachma.labels" . | nindent 2 }}
{{- end }}

{{/* The account of a component, as the subject of a binding. */}}
{{- define "drachma.subjects" -}}
- kind: ServiceAccount
  name: drachma-{{ .name }}
  namespace: {{ .root.Values.namespace }}
{{- end }}

{{/* Environment of the containers of an agent. */}}
{{- define "drachma.environment" -}}
env:
  {{- range .variables }}
  - name: {{ .name }}
    {{- if .field }}
    valueFrom:
      fieldRef:
        fieldPath: {{ .field }}
    {{- else }}
    value: {{ .value }}
    {{- end }}
  {{- end }}
{{- end }}

{{/* Folders that the containers of an agent share. */}}
{{- define "drachma.folders" -}}
{{- range .folders }}
- name: {{ .name }}
  mountPath: {{ .path }}
{{- end }}
{{- end }}

{{/*
All objects of a component: name, args, lease (may be empty), roles, root. These may be absent: leaseNamespace, rules,
port (name, number, keepsClients), hasOwnProbes (there is no status page), mounts (name, path, secret or configMap), isOptional,
agent (variables with name and field or value, folders with name and path, driverImage), which makes a DaemonSet.
*/}}
{{- define "drachma.component" -}}
{{- $component := . }}
{{- $ports := list }}
{{- if not .hasOwnProbes }}{{ $ports = append $ports (dict "name" "status" "number" 10443) }}{{ end }}
{{- if .port }}{{ $ports = append $ports .port }}{{ end }}
{{- $probed := (first $ports).name }}
{{- $values := .root.Values }}
{{- $leaseNamespace := .leaseNamespace | default $values.namespace }}
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "drachma.metadata" . | nindent 2 }}
{{- $roles := .roles }}
{{- if .rules }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: drachma-{{ .name }}
  labels:
    {{- include "drachma.labels" . | nindent 4 }}
rules:
  {{- .rules | nindent 2 }}
{{- $roles = append $roles (printf "drachma-%s" .name) }}
{{- end }}
{{- if not .hasOwnProbes }}{{ $roles = append $roles "system:auth-delegator" }}{{ end }}
{{- range $roles }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  {{- $own := printf "drachma-%s" $component.name }}
  name: {{ if eq . $own }}{{ $own }}{{ else }}{{ $own }}-{{ trimPrefix "system:" . | replace ":" "-" }}{{ end }}
  labels:
    {{- include "drachma.labels" $component | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ . }}
subjects:
  {{- include "drachma.subjects" $component | nindent 2 }}
{{- end }}
{{- if not .hasOwnProbes }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: drachma-{{ .name }}
  namespace: kube-system
  labels:
    {{- include "drachma.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: extension-apiserver-authentication-reader
subjects:
  {{- include "drachma.subjects" . | nindent 2 }}
{{- end }}
{{- if .lease }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: drachma-{{ .name }}
  namespace: {{ $leaseNamespace }}
  labels:
    {{- include "drachma.labels" . | nindent 4 }}
rules:
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [create]
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    resourceNames: [{{ .lease }}]
    verbs: [get, update]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: drachma-{{ .name }}
  namespace: {{ $leaseNamespace }}
  labels:
    {{- include "drachma.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: drachma-{{ .name }}
subjects:
  {{- include "drachma.subjects" . | nindent 2 }}
{{- end }}
---
apiVersion: apps/v1
kind: {{ if .agent }}DaemonSet{{ else }}Deployment{{ end }}
metadata:
  {{- include "drachma.metadata" . | nindent 2 }}
spec:
  {{- if not .agent }}
  replicas: {{ if .lease }}{{ $values.replicas }}{{ else }}1{{ end }}
  {{- end }}
  selector:
    matchLabels:
      {{- include "drachma.labels" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "drachma.labels" . | nindent 8 }}
    spec:
      serviceAccountName: drachma-{{ .name }}
      {{- if not .isOptional }}
      priorityClassName: system-cluster-critical
      {{- end }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        seccompProfile:
          type: RuntimeDefault
      {{- if not .agent }}
      affinity:
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 100
              podAffinityTerm:
                topologyKey: kubernetes.io/hostname
                labelSelector:
                  matchLabels:
                    {{- include "drachma.labels" . | nindent 20 }}
      {{- end }}
      containers:
        - name: {{ .name }}
          image: {{ $values.image | default (printf "drachma:%s" .root.Chart.AppVersion) }}
          args:
            {{- range .args }}
            - {{ . | quote }}
            {{- end }}
            {{- if .lease }}
            - --leader-elect-resource-name={{ .lease }}
            - --leader-elect-resource-namespace={{ $leaseNamespace }}
            {{- end }}
            {{- if not .hasOwnProbes }}
            - --secure-address=0.0.0.0:10443
            {{- end }}
          {{- with .agent }}
          {{- include "drachma.environment" . | nindent 10 }}
          {{- end }}
          ports:
            {{- range $ports }}
            - name: {{ .name }}
              containerPort: {{ .number }}
            {{- end }}
          livenessProbe:
            {{- if .agent }}
            tcpSocket:
              port: {{ $probed }}
            {{- else }}
            httpGet:
              path: /livez
              port: {{ $probed }}
              scheme: HTTPS
            {{- end }}
            periodSeconds: 10
            timeoutSeconds: 5
            initialDelaySeconds: 10
            failureThreshold: 6
          readinessProbe:
            {{- if .agent }}
            tcpSocket:
              port: {{ $probed }}
            {{- else }}
            httpGet:
              path: /readyz
              port: {{ $probed }}
              scheme: HTTPS
            {{- end }}
            periodSeconds: 10
            timeoutSeconds: 5
          resources:
            requests:
              cpu: {{ $values.resources.cpu }}
              memory: {{ $values.resources.memory }}
            limits:
              memory: 2Gi
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
          volumeMounts:
            - name: tmp
              mountPath: /tmp
            {{- with .agent }}
            {{- include "drachma.folders" . | nindent 12 }}
            {{- end }}
            {{- range .mounts }}
            - name: {{ .name }}
              mountPath: {{ .path }}
              readOnly: true
            {{- end }}
        {{- with .agent }}
        {{- if .driverImage }}
        - name: driver
          image: {{ .driverImage }}
          args: [run]
          {{- include "drachma.environment" . | nindent 10 }}
          resources:
            requests:
              cpu: 50m
              memory: 64Mi
            limits:
              memory: 512Mi
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
          volumeMounts:
            - name: tmp
              mountPath: /tmp
            {{- include "drachma.folders" . | nindent 12 }}
        {{- end }}
        {{- end }}
      volumes:
        - name: tmp
          emptyDir:
            sizeLimit: 16Mi
        {{- with .agent }}
        {{- range .folders }}
        - name: {{ .name }}
          emptyDir:
            sizeLimit: 256Mi
        {{- end }}
        {{- end }}
        {{- range .mounts }}
        - name: {{ .name }}
          {{- if .secret }}
          secret:
            secretName: {{ .secret }}
          {{- else }}
          configMap:
            name: {{ .configMap }}
          {{- end }}
        {{- end }}
{{- if not .agent }}
{{- with .port }}
---
apiVersion: v1
kind: Service
metadata:
  {{- include "drachma.metadata" $component | nindent 2 }}
spec:
  selector:
    {{- include "drachma.labels" $component | nindent 4 }}
  {{- if .keepsClients }}
  sessionAffinity: ClientIP
  {{- end }}
  ports:
    - name: {{ .name }}
      port: 443
      targetPort: {{ .name }}
{{- end }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "drachma.metadata" . | nindent 2 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "drachma.labels" . | nindent 6 }}
{{- end }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "drachma.metadata" . | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "drachma.labels" . | nindent 6 }}
  policyTypes: [Ingress]
  ingress:
    - ports:
        {{- range $ports }}
        - port: {{ .number }}
          protocol: TCP
        {{- end }}
{{- end }}
