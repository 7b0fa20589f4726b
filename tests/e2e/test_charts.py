"""The objects of a DRA driver's chart, applied as a user would: as files, as a List, and again."""

import json

from tests.e2e.conftest import Kubectl

DRIVER = "gpu.charts.example.com"
CHART = f"""\
apiVersion: v1
kind: ServiceAccount
metadata:
  name: driver
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {DRIVER}
rules:
- apiGroups: ["resource.k8s.io"]
  resources: ["resourceclaims"]
  verbs: ["get"]
- apiGroups: [""]
  resources: ["nodes"]
  verbs: ["get"]
- apiGroups: ["resource.k8s.io"]
  resources: ["resourceslices"]
  verbs: ["get", "list", "watch", "create", "update", "patch", "delete"]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {DRIVER}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {DRIVER}
subjects:
- kind: ServiceAccount
  name: driver
  namespace: default
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata:
  name: {DRIVER}
spec:
  selectors:
  - cel:
      expression: device.driver == '{DRIVER}'
---
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: driver
  labels: &labels
    app.kubernetes.io/name: driver
spec:
  selector:
    matchLabels: *labels
  updateStrategy:
    type: RollingUpdate
  template:
    metadata:
      labels: *labels
    spec:
      serviceAccountName: driver
      priorityClassName: system-node-critical
      containers:
      - name: plugin
        image: registry.example/driver:v1
        command: ["driver"]
        env:
        - name: NODE_NAME
          valueFrom:
            fieldRef:
              fieldPath: spec.nodeName
        securityContext:
          privileged: true
        livenessProbe:
          grpc:
            port: 51515
            service: liveness
        volumeMounts:
        - name: plugins
          mountPath: /var/lib/kubelet/plugins
      volumes:
      - name: plugins
        hostPath:
          path: /var/lib/kubelet/plugins
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: slices.{DRIVER}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - apiGroups: ["resource.k8s.io"]
      apiVersions: ["v1"]
      operations: ["CREATE", "UPDATE", "DELETE"]
      resources: ["resourceslices"]
  matchConditions:
  - name: is-driver
    expression: request.userInfo.username == 'system:serviceaccount:default:driver'
  variables:
  - name: userNodeName
    expression: request.userInfo.extra[?'authentication.kubernetes.io/node-name'][0].orValue('')
  - name: objectNodeName
    expression: "(request.operation == 'DELETE' ? oldObject : object).spec.?nodeName.orValue('')"
  validations:
  - expression: variables.userNodeName != ''
    message: no node name in the token
  - expression: variables.userNodeName == variables.objectNodeName
    messageExpression: "'this user may not change slices of ' + variables.objectNodeName"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: slices.{DRIVER}
spec:
  policyName: slices.{DRIVER}
  validationActions: [Deny]
"""


def test_a_chart_is_applied_changed_and_deleted(kubectl: Kubectl) -> None:
    first = kubectl("apply", "-f", "-", stdin=CHART)
    assert [line.rpartition(" ")[2] for line in first.splitlines()] == ["created"] * 7
    again = kubectl("apply", "-f", "-", stdin=CHART)
    changed = [line.partition("/")[0] for line in again.splitlines() if not line.endswith(" unchanged")]
    # kubectl cannot see that the rules of a policy, a list that is replaced whole, lack nothing but defaults.
    assert changed == ["validatingadmissionpolicy.admissionregistration.k8s.io"]
    assert "DESIRED" in kubectl("get", "daemonsets")
    updated = kubectl("apply", "-f", "-", stdin=CHART.replace("driver:v1", "driver:v2"))
    assert "daemonset.apps/driver configured" in updated
    stored = json.loads(kubectl("get", "daemonset", "driver", "-o", "json"))
    assert stored["metadata"]["generation"] == 2
    assert stored["spec"]["updateStrategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    deleted = kubectl("delete", "-f", "-", stdin=CHART)
    assert len([line for line in deleted.splitlines() if "deleted" in line]) == 7


def test_a_list_is_applied(kubectl: Kubectl) -> None:
    items = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in ("a", "b")]
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    assert kubectl("apply", "-f", "-", stdin=listed).splitlines() == ["configmap/a created", "configmap/b created"]
    assert "configmap/a unchanged" in kubectl("apply", "-f", "-", stdin=listed)


def test_a_kind_that_is_not_served_is_named(kubectl: Kubectl) -> None:
    unknown = json.dumps({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "a"}})
    said = kubectl("apply", "-f", "-", stdin=unknown, fails=True)
    assert 'no matches for kind "Gadget" in version "example.com/v1"' in said


def test_a_service_and_a_cron_job(kubectl: Kubectl) -> None:
    kubectl("create", "service", "clusterip", "web", "--tcp=80:8080")
    shown = kubectl("get", "service", "web").splitlines()[1].split()
    assert shown[:2] == ["web", "ClusterIP"]
    assert shown[4] == "80/TCP"
    kubectl("create", "cronjob", "nightly", "--image=registry.example/job", "--schedule=0 3 * * *")
    assert "0 3 * * *" in kubectl("get", "cronjobs")
