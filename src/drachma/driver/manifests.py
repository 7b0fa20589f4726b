"""Manifests that a cluster needs to run a driver, made from its class, with as few permissions as possible.

A DaemonSet with an account that may read claims and write slices; a policy that holds each of its pods to the slices
of its own node, which roles cannot say; a DeviceClass for its devices. A driver with pools of a network gets a
Deployment and an account of its own for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from drachma.api import manifest
from drachma.driver.driver import Driver

_PORT: Final = 8080
_ROOT: Final = "/var/lib/kubelet"
_CDI: Final = "/var/run/cdi"

Document = dict[str, Any]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that the class does not have: its image, and the nodes it runs on."""

    image: str
    namespace: str = "kube-system"


def render(driver: type[Driver], settings: Settings) -> str:
    """Return all manifests as one YAML text."""
    return manifest.write_yaml(documents(driver, settings))


def documents(driver: type[Driver], settings: Settings) -> list[Document]:
    """Return all manifests, in the order in which they are to be applied."""
    manifests = [*_node_plugin(driver, settings), *_policy(driver, settings), _device_class(driver)]
    if driver.network_pools is not Driver.network_pools:
        manifests += _controller(driver, settings)
    return manifests


def _named(driver: type[Driver], kind: str, api: str, *, name: str, namespace: str = "") -> Document:
    metadata: Document = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    metadata["labels"] = {"app.kubernetes.io/name": _label(driver)}
    return {"apiVersion": api, "kind": kind, "metadata": metadata}


def _label(driver: type[Driver]) -> str:
    return driver.name.replace(".", "-")


# The node plugin


def _node_plugin(driver: type[Driver], settings: Settings) -> Iterator[Document]:
    name = _label(driver)
    rules = [
        {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"], "verbs": ["get"]},
        _slice_rule(),
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
    ]
    yield from _account(driver, settings, name=name, rules=rules)
    pod = {
        "serviceAccountName": name,
        "priorityClassName": "system-node-critical",
        "terminationGracePeriodSeconds": 60,
        "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
        "containers": [
            {
                "name": "driver",
                "image": settings.image,
                "args": ["run", f"--http-port={_PORT}", "--log-format=json"],
                "env": [
                    _downward("NODE_NAME", "spec.nodeName"),
                    _downward("POD_UID", "metadata.uid"),
                    {"name": "KUBELET_ROOT", "value": _ROOT},
                    {"name": "CDI_ROOT", "value": _CDI},
                ],
                "securityContext": {"privileged": True},
                **_probes(),
                "volumeMounts": [
                    {"name": "plugins", "mountPath": f"{_ROOT}/plugins"},
                    {"name": "registry", "mountPath": f"{_ROOT}/plugins_registry"},
                    {"name": "cdi", "mountPath": _CDI},
                    {"name": "dev", "mountPath": "/dev"},
                ],
            }
        ],
        "volumes": [
            _host_path("plugins", f"{_ROOT}/plugins"),
            _host_path("registry", f"{_ROOT}/plugins_registry"),
            _host_path("cdi", _CDI),
            {"name": "dev", "hostPath": {"path": "/dev", "type": "Directory"}},
        ],
    }
    daemon_set = _named(driver, "DaemonSet", "apps/v1", name=name, namespace=settings.namespace)
    daemon_set["spec"] = {
        "selector": {"matchLabels": {"app.kubernetes.io/name": name, "app.kubernetes.io/component": "node"}},
        # The new instance starts next to the old one, so that a driver runs at all times.
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "template": {
            "metadata": {"labels": {"app.kubernetes.io/name": name, "app.kubernetes.io/component": "node"}},
            "spec": pod,
        },
    }
    yield daemon_set


def _slice_rule() -> Document:
    verbs = ["get", "list", "watch", "create", "update", "delete"]
    return {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"], "verbs": verbs}


def _account(driver: type[Driver], settings: Settings, *, name: str, rules: list[Document]) -> Iterator[Document]:
    yield _named(driver, "ServiceAccount", "v1", name=name, namespace=settings.namespace)
    role = _named(driver, "ClusterRole", "rbac.authorization.k8s.io/v1", name=name)
    yield {**role, "rules": rules}
    binding = _named(driver, "ClusterRoleBinding", "rbac.authorization.k8s.io/v1", name=name)
    binding["roleRef"] = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    binding["subjects"] = [{"kind": "ServiceAccount", "name": name, "namespace": settings.namespace}]
    yield binding


def _downward(name: str, path: str) -> Document:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _host_path(name: str, path: str) -> Document:
    return {"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}}


def _probes() -> Document:
    return {
        "ports": [{"name": "http", "containerPort": _PORT}],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}, "periodSeconds": 5},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 20},
    }


# What roles cannot say


def _policy(driver: type[Driver], settings: Settings) -> Iterator[Document]:
    """Each pod of the DaemonSet to the slices of its own node and driver; tokens of pods say which node that is."""
    name = f"{_label(driver)}-own-node"
    user = f"system:serviceaccount:{settings.namespace}:{_label(driver)}"
    policy = _named(driver, "ValidatingAdmissionPolicy", "admissionregistration.k8s.io/v1", name=name)
    policy["spec"] = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": ["resource.k8s.io"],
                    # Slices of all versions: those that have another shape are refused.
                    "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE", "DELETE"],
                    "resources": ["resourceslices"],
                }
            ]
        },
        "matchConditions": [{"name": "is-this-driver", "expression": f"request.userInfo.username == {user!r}"}],
        "variables": [
            {
                "name": "node",
                "expression": "request.userInfo.extra[?'authentication.kubernetes.io/node-name'][0].orValue('')",
            },
            {"name": "slice", "expression": "request.operation == 'DELETE' ? oldObject : object"},
        ],
        "validations": [
            {"expression": "variables.node != ''", "message": "the token is not that of a pod on a node"},
            {
                "expression": "variables.slice.?spec.?nodeName.orValue('') == variables.node",
                "messageExpression": "'slices of node ' + variables.node + ' only'",
            },
            {
                "expression": f"variables.slice.?spec.?driver.orValue('') == {driver.name!r}",
                "message": f"slices of driver {driver.name} only",
            },
        ],
    }
    yield policy
    binding = _named(driver, "ValidatingAdmissionPolicyBinding", "admissionregistration.k8s.io/v1", name=name)
    binding["spec"] = {"policyName": name, "validationActions": ["Deny"]}
    yield binding


def _device_class(driver: type[Driver]) -> Document:
    device_class = _named(driver, "DeviceClass", "resource.k8s.io/v1", name=driver.name)
    device_class["spec"] = {"selectors": [{"cel": {"expression": f"device.driver == {driver.name!r}"}}]}
    return device_class


# Pools of a network


def _controller(driver: type[Driver], settings: Settings) -> Iterator[Document]:
    name = f"{_label(driver)}-controller"
    rules = [
        _slice_rule(),
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": [driver.name],
            "verbs": ["get", "update", "patch"],
        },
    ]
    yield from _account(driver, settings, name=name, rules=rules)
    labels = {"app.kubernetes.io/name": _label(driver), "app.kubernetes.io/component": "controller"}
    deployment = _named(driver, "Deployment", "apps/v1", name=name, namespace=settings.namespace)
    container = {
        "name": "controller",
        "image": settings.image,
        "args": ["controller", f"--http-port={_PORT}", "--log-format=json"],
        "env": [_downward("POD_NAMESPACE", "metadata.namespace")],
        **_probes(),
    }
    deployment["spec"] = {
        "replicas": 2,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"serviceAccountName": name, "containers": [container]},
        },
    }
    yield deployment
