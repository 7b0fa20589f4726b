"""Defaults and rules for what a pod runs, in pods and in the templates of workloads.

Upstream's defaults, as far as they are part of what clients and components see. The rules are the ones without which
a pod could not be scheduled or run; kubelet's finer ones are not repeated here.
"""

from collections.abc import Iterator
from typing import Any, Final

from drachma.validation import fielderror, formats
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path

Document = dict[str, Any]

GRACE_SECONDS: Final = 30
_FILE_MODE: Final = 0o644
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_VOLUMES_WITH_MODE: Final = ("configMap", "downwardAPI", "projected", "secret")
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
_RESTART_POLICIES: Final = ("Always", "Never", "OnFailure")
_DNS_POLICIES: Final = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")


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
            resources = container["resources"]
            resources["requests"] = {**limits, **(resources.get("requests") or {})}


def containers(spec: Document) -> Iterator[Document]:
    """All containers of a pod: the ones that run first, the ones that run, the ones for debugging."""
    for field in _CONTAINERS:
        yield from spec.get(field) or ()


def check(spec: Document, at: Path) -> Errors:
    """What is wrong with a pod spec."""
    if not spec.get("containers"):
        yield fielderror.required(at.child("containers"))
    seen: set[str] = set()
    for field in ("initContainers", "containers"):
        for position, container in enumerate(spec.get(field) or ()):
            yield from _check_container(container, at.child(field).item(position), seen=seen)
    restart = spec.get("restartPolicy", "")
    if restart not in _RESTART_POLICIES:
        yield fielderror.not_supported(at.child("restartPolicy"), restart, _RESTART_POLICIES)
    policy = spec.get("dnsPolicy", "")
    if policy not in _DNS_POLICIES:
        yield fielderror.not_supported(at.child("dnsPolicy"), policy, _DNS_POLICIES)
    grace = spec.get("terminationGracePeriodSeconds", GRACE_SECONDS)
    if grace < 0:
        yield fielderror.invalid(at.child("terminationGracePeriodSeconds"), grace, _NOT_NEGATIVE)
    for key, value in (spec.get("nodeSelector") or {}).items():
        yield from formats.label_key(key, at.child("nodeSelector"))
        yield from formats.label_value(value, at.child("nodeSelector"))
    if spec.get("nodeName"):
        yield from formats.node_name(spec["nodeName"], at.child("nodeName"))


_NOT_NEGATIVE: Final = "must be greater than or equal to 0"


def _check_container(container: Document, at: Path, *, seen: set[str]) -> Errors:
    name = container.get("name", "")
    if not name:
        yield fielderror.required(at.child("name"))
    else:
        yield from formats.short_name(name, at.child("name"))
    if name and name in seen:
        yield fielderror.duplicate(at.child("name"), name)
    seen.add(name)
    image = container.get("image", "")
    if not image:
        yield fielderror.required(at.child("image"))
    elif image.strip() != image:
        yield fielderror.invalid(at.child("image"), image, "must not have leading or trailing whitespace")


def _default_container(container: Document) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = "Always" if _is_latest(container.get("image", "")) else "IfNotPresent"
    for field, value in (("terminationMessagePath", "/dev/termination-log"), ("terminationMessagePolicy", "File")):
        if not container.get(field):
            container[field] = value
    for port in container.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference is not None and not reference.get("apiVersion"):
            reference["apiVersion"] = "v1"
    for field in _PROBES:
        if container.get(field):
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
    for source in (volume.get("projected") or {}).get("sources") or ():
        token = source.get("serviceAccountToken")
        if token is not None:
            token.setdefault("expirationSeconds", 3600)


def _is_latest(image: str) -> bool:
    """Whether an image has no tag or digest of its own, or the tag that moves."""
    if "@" in image:
        return False
    tag = image.rpartition("/")[2].partition(":")[2]
    return tag in ("", "latest")
