"""Defaults for what a pod runs, in pods and in the templates of workloads: what clients and components see of them."""

from collections.abc import Iterator
from typing import Any, Final

from drachma.validation.podspec import resources
from drachma.values import imagename, names

Document = dict[str, Any]

GRACE_SECONDS: Final = 30
_FILE_MODE: Final = 0o644
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_VOLUMES_WITH_MODE: Final = ("configMap", "downwardAPI", "projected", "secret")
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")


def default(spec: Document) -> None:
    """Fills in the defaults of a pod spec, in place."""
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
    """What has a limit and no request is requested up to its limit; only in pods, not in templates."""
    for container in containers(spec):
        limits = (container.get("resources") or {}).get("limits")
        if limits:
            wanted = container["resources"]
            wanted["requests"] = {**limits, **(wanted.get("requests") or {})}


def default_whole(spec: Document) -> None:
    """What a pod asks for as a whole, as far as its containers and its limits decide it; only in new pods."""
    whole = spec.get("resources")
    if not whole or not (whole.get("limits") or whole.get("requests")):
        return
    requests, limits = dict(whole.get("requests") or {}), dict(whole.get("limits") or {})
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
        **whole,
        **({"limits": limits} if limits else {}),
        **({"requests": requests} if requests else {}),
    }


def containers(spec: Document) -> Iterator[Document]:
    """All containers of a pod: the ones that run first, the ones that run, the ones for debugging."""
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
