"""Defaults of pod specs, in pods and in the templates of workloads."""

from collections.abc import Iterator
from typing import Any, Final

from drachma.validation.podspec import resources
from drachma.values import imagename, names

Document = dict[str, Any]

DEFAULT_ACCOUNT: Final = "default"
GRACE_SECONDS: Final = 30
_TOLERATION_SECONDS: Final = 300
_TOLERATED_KEYS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_FILE_MODE: Final = 0o644
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_VOLUMES_WITH_MODE: Final = ("configMap", "downwardAPI", "projected", "secret")
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")


def default(spec: Document) -> None:
    """Set the defaults of a pod spec, in place."""
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for field, value in (
        ("restartPolicy", "Always"),
        ("terminationGracePeriodSeconds", GRACE_SECONDS),
        ("dnsPolicy", "ClusterFirst"),
        ("schedulerName", "default-scheduler"),
    ):
        if spec.get(field) in (None, ""):
            spec[field] = value
    spec.setdefault("securityContext", {})
    for container in containers(spec):
        _default_container(container)
    for volume in spec.get("volumes") or ():
        _default_volume(volume)


def default_requests(spec: Document) -> None:
    """Set requests of containers to their limits where absent, in place; only for pods, not for templates."""
    for container in containers(spec):
        limits = (container.get("resources") or {}).get("limits")
        if limits:
            container_resources = container["resources"]
            container_resources["requests"] = {**limits, **(container_resources.get("requests") or {})}


def default_pod_resources(spec: Document) -> None:
    """Set pod-level requests and limits that follow from containers and limits, in place; only for new pods."""
    pod_resources = spec.get("resources")
    if not pod_resources or not (pod_resources.get("limits") or pod_resources.get("requests")):
        return
    requests, limits = dict(pod_resources.get("requests") or {}), dict(pod_resources.get("limits") or {})
    for name, amount in resources.aggregate(spec, "limits").items():
        if names.is_huge_page_resource(name) and name not in requests:
            limits.setdefault(name, str(amount))
    if limits:
        for name, amount in resources.aggregate(spec, "requests").items():
            if name in resources.POD_LEVEL:
                requests.setdefault(name, str(amount))
        for name, limit in limits.items():
            if name in resources.POD_LEVEL or names.is_huge_page_resource(name):
                requests.setdefault(name, limit)
    spec["resources"] = {
        **pod_resources,
        **({"limits": limits} if limits else {}),
        **({"requests": requests} if requests else {}),
    }


def with_account(spec: Document) -> Document:
    """Return the spec with the account that pods have by default, unless it names one."""
    if spec.get("serviceAccountName"):
        return spec
    return {**spec, "serviceAccountName": DEFAULT_ACCOUNT, "serviceAccount": DEFAULT_ACCOUNT}


def with_tolerations(spec: Document) -> Document:
    """Return the spec with tolerations of nodes that are not ready or unreachable, unless it tolerates them itself."""
    own: list[Document] = list(spec.get("tolerations") or ())
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATION_SECONDS}
        for key in _TOLERATED_KEYS
        if not any(_tolerates(each, key) for each in own)
    ]
    return {**spec, "tolerations": own + added} if added else spec


def _tolerates(toleration: Document, key: str) -> bool:
    return toleration.get("key", "") in (key, "") and toleration.get("effect", "") in ("NoExecute", "")


def containers(spec: Document) -> Iterator[Document]:
    """Yield all containers of a pod: init, regular and ephemeral containers."""
    for field in _CONTAINERS:
        yield from spec.get(field) or ()


def _default_container(container: Document) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = _pull_policy(container.get("image", ""))
    for field, value in (("terminationMessagePath", "/dev/termination-log"), ("terminationMessagePolicy", "File")):
        if not container.get(field):
            container[field] = value
    for port in container.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
    for variable in container.get("env") or ():
        _default_reference((variable.get("valueFrom") or {}).get("fieldRef"))
    for field in _PROBES:
        if container.get(field) is not None:
            _default_probe(container[field])


def _default_probe(probe: Document) -> None:
    for field, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        if not probe.get(field):
            probe[field] = value
    get = probe.get("httpGet")
    if get is not None:
        get["path"] = get.get("path") or "/"
        get["scheme"] = get.get("scheme") or "HTTP"


def _default_volume(volume: Document) -> None:
    if not any(field != "name" for field in volume):
        volume["emptyDir"] = {}
    for field in _VOLUMES_WITH_MODE:
        source = volume.get(field)
        if isinstance(source, dict):
            source.setdefault("defaultMode", _FILE_MODE)
    if volume.get("hostPath") is not None:
        volume["hostPath"].setdefault("type", "")
    image = volume.get("image")
    if image is not None and not image.get("pullPolicy"):
        image["pullPolicy"] = _pull_policy(image.get("reference", ""))
    _default_files(volume.get("downwardAPI") or {})
    for source in (volume.get("projected") or {}).get("sources") or ():
        _default_files(source.get("downwardAPI") or {})
        token = source.get("serviceAccountToken")
        if token is not None:
            token.setdefault("expirationSeconds", 3600)


def _default_files(source: Document) -> None:
    for item in source.get("items") or ():
        _default_reference(item.get("fieldRef"))


def _default_reference(reference: Document | None) -> None:
    if reference is not None and not reference.get("apiVersion"):
        reference["apiVersion"] = "v1"


def _pull_policy(image: str) -> str:
    return "Always" if imagename.tag(image) == imagename.LATEST else "IfNotPresent"
