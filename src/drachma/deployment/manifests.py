"""Objects of a deployment: namespace, account, permissions, Deployment or DaemonSet, budget, network policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from drachma.deployment.components import PORT, Component, Mount, Port, Rule

Document = dict[str, Any]

_RBAC: Final = "rbac.authorization.k8s.io"
_AUTHENTICATION_READER: Final = "extension-apiserver-authentication-reader"
_USER: Final = 65532
_HARDENED: Final = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a deployment that all components share."""

    image: str
    namespace: str = "drachma-system"
    replicas: int = 2
    cpu: str = "250m"
    memory: str = "256Mi"


def documents(components: Iterable[Component], settings: Settings) -> list[Document]:
    """Return all objects, in an order in which they can be applied."""
    return [_namespace(settings), *(each for component in components for each in _component(component, settings))]


def _namespace(settings: Settings) -> Document:
    labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": settings.namespace, "labels": labels}}


def _component(component: Component, settings: Settings) -> Iterator[Document]:
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(component, settings)}
    for role in component.roles:
        yield _cluster_binding(component, settings, role=role)
    if component.rules:
        name = _full_name(component)
        yield {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name, "labels": _labels(component)},
            "rules": [_rule(each) for each in component.rules],
        }
        yield _cluster_binding(component, settings, role=name)
    if component.has_status_page:
        # The status page has the API server decide who may read metrics.
        yield _cluster_binding(component, settings, role="system:auth-delegator")
        yield _binding(component, settings, role=_AUTHENTICATION_READER, namespace="kube-system")
    if component.lease:
        yield from _lease_permissions(component, settings)
    for document in component.documents:
        yield {**document, "metadata": {**document["metadata"], "labels": _labels(component)}}
    if component.agent is not None:
        yield _daemon_set(component, settings)
    else:
        yield _deployment(component, settings)
        if component.port is not None:
            yield _service(component, settings, port=component.port)
        yield _disruption_budget(component, settings)
    yield _network_policy(component, settings)


def _lease_permissions(component: Component, settings: Settings) -> Iterator[Document]:
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    namespace = _lease_namespace(component, settings)
    yield {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "Role",
        "metadata": {**_metadata(component, settings), "namespace": namespace},
        "rules": [
            {**leases, "verbs": ["create"]},
            {**leases, "resourceNames": [component.lease], "verbs": ["get", "update"]},
        ],
    }
    yield _binding(component, settings, role=_full_name(component), namespace=namespace)


def _lease_namespace(component: Component, settings: Settings) -> str:
    return component.lease_namespace or settings.namespace


def _full_name(component: Component) -> str:
    return f"drachma-{component.name}"


def _labels(component: Component) -> dict[str, str]:
    return {"app.kubernetes.io/name": "drachma", "app.kubernetes.io/component": component.name}


def _metadata(component: Component, settings: Settings) -> Document:
    return {"name": _full_name(component), "namespace": settings.namespace, "labels": _labels(component)}


def _rule(rule: Rule) -> Document:
    return {"apiGroups": list(rule.groups), "resources": list(rule.resources), "verbs": list(rule.verbs)}


def _subjects(component: Component, settings: Settings) -> list[Document]:
    return [{"kind": "ServiceAccount", "name": _full_name(component), "namespace": settings.namespace}]


def _cluster_binding(component: Component, settings: Settings, *, role: str) -> Document:
    own = _full_name(component)
    name = own if role == own else f"{own}-{role.removeprefix('system:').replace(':', '-')}"
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name, "labels": _labels(component)},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": _subjects(component, settings),
    }


def _binding(component: Component, settings: Settings, *, role: str, namespace: str) -> Document:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": _full_name(component), "namespace": namespace, "labels": _labels(component)},
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": role},
        "subjects": _subjects(component, settings),
    }


def _deployment(component: Component, settings: Settings) -> Document:
    labels = _labels(component)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(component, settings),
        "spec": {
            "replicas": settings.replicas if component.lease else 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _pod(component, settings)},
        },
    }


def _daemon_set(component: Component, settings: Settings) -> Document:
    labels = _labels(component)
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": _metadata(component, settings),
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _pod(component, settings)},
        },
    }


def _pod(component: Component, settings: Settings) -> Document:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": _labels(component)}}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {
        "serviceAccountName": _full_name(component),
        **({"priorityClassName": "system-cluster-critical"} if component.is_critical else {}),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        **(
            {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}}
            if component.agent is None
            else {}
        ),
        "containers": [_container(component, settings), *_drivers(component)],
        "volumes": [
            {"name": "tmp", "emptyDir": {"sizeLimit": "16Mi"}},
            *({"name": name, "emptyDir": {"sizeLimit": "256Mi"}} for name, _ in _folders(component)),
            *map(_volume, component.mounts),
        ],
    }


def _folders(component: Component) -> tuple[tuple[str, str], ...]:
    return component.agent.folders if component.agent is not None else ()


def _folder_mounts(component: Component) -> list[Document]:
    return [{"name": name, "mountPath": path} for name, path in _folders(component)]


def _environment(component: Component) -> Document:
    """Return the variables of an agent and its driver; a field of the pod has a dot in its name."""
    if component.agent is None:
        return {}
    variables = [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": value}}}
        if value.startswith("spec.")
        else {"name": name, "value": value}
        for name, value in component.agent.variables
    ]
    return {"env": variables}


def _drivers(component: Component) -> Iterator[Document]:
    """Yield the container of the driver that an agent calls."""
    if component.agent is None or not component.agent.driver_image:
        return
    yield {
        "name": "driver",
        "image": component.agent.driver_image,
        "args": ["run"],
        **_environment(component),
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": _HARDENED,
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, *_folder_mounts(component)],
    }


def _volume(mount: Mount) -> Document:
    if mount.secret:
        return {"name": mount.name, "secret": {"secretName": mount.secret}}
    return {"name": mount.name, "configMap": {"name": mount.config_map}}


def _container(component: Component, settings: Settings) -> Document:
    own = [f"--secure-address=0.0.0.0:{PORT}"] if component.has_status_page else []
    if component.lease:
        own = [
            f"--leader-elect-resource-name={component.lease}",
            f"--leader-elect-resource-namespace={_lease_namespace(component, settings)}",
            *own,
        ]
    return {
        "name": component.name,
        "image": settings.image,
        "args": [*component.arguments, *own],
        **_environment(component),
        "ports": [{"name": name, "containerPort": number} for name, number in _ports(component).items()],
        "livenessProbe": {**_probe(component, "/livez"), "initialDelaySeconds": 10, "failureThreshold": 6},
        "readinessProbe": _probe(component, "/readyz"),
        "resources": {
            "requests": {"cpu": settings.cpu, "memory": settings.memory},
            "limits": {"memory": "2Gi"},
        },
        "securityContext": _HARDENED,
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"},
            *_folder_mounts(component),
            *({"name": each.name, "mountPath": each.path, "readOnly": True} for each in component.mounts),
        ],
    }


def _ports(component: Component) -> dict[str, int]:
    status = {"status": PORT} if component.has_status_page else {}
    return {**status, **({component.port.name: component.port.number} if component.port is not None else {})}


def _probe(component: Component, path: str) -> Document:
    port = next(iter(_ports(component)))
    if component.agent is not None:
        # What an agent serves is for the API server alone, so that a probe sees no more than that it listens.
        return {"tcpSocket": {"port": port}, "periodSeconds": 10, "timeoutSeconds": 5}
    return {"httpGet": {"path": path, "port": port, "scheme": "HTTPS"}, "periodSeconds": 10, "timeoutSeconds": 5}


def _service(component: Component, settings: Settings, *, port: Port) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(component, settings),
        "spec": {
            "selector": _labels(component),
            **({"sessionAffinity": "ClientIP"} if port.keeps_clients else {}),
            "ports": [{"name": port.name, "port": 443, "targetPort": port.name}],
        },
    }


def _disruption_budget(component: Component, settings: Settings) -> Document:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(component, settings),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": _labels(component)}},
    }


def _network_policy(component: Component, settings: Settings) -> Document:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _metadata(component, settings),
        "spec": {
            "podSelector": {"matchLabels": _labels(component)},
            "policyTypes": ["Ingress"],
            "ingress": [{"ports": [{"port": number, "protocol": "TCP"} for number in _ports(component).values()]}],
        },
    }
