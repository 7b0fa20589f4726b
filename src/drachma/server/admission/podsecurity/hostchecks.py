"""Checks of access to the host: its namespaces, ports, processes, /proc and directories."""

from collections.abc import Iterator
from typing import Final

from drachma.server.admission.podsecurity.podviews import (
    Document,
    PodView,
    Violation,
    choose_number,
    name_containers,
    name_setters,
    quote_all,
    security_of,
)

_HOST_NAMESPACES: Final = ("hostNetwork", "hostPID", "hostIPC")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_LIFECYCLE_HOOKS: Final = ("postStart", "preStop")
_HANDLERS: Final = ("httpGet", "tcpSocket")
_RESTRICTED_VOLUMES: Final = (
    *("hostPath", "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "nfs", "iscsi", "glusterfs", "rbd"),
    *("flexVolume", "cinder", "cephfs", "flocker", "fc", "azureFile", "vsphereVolume", "quobyte", "azureDisk"),
    *("photonPersistentDisk", "portworxVolume", "scaleIO", "storageos"),
)
"""Volume types that the restricted level refuses, in the order in which one of them names the type."""

_UNRESTRICTED_VOLUMES: Final = (
    *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected"),
    "secret",
)


def check_host_namespaces(pod: PodView) -> Violation | None:
    """Refuse namespaces of the host."""
    fields = [f"{field}=true" for field in _HOST_NAMESPACES if pod.spec.get(field)]
    return Violation("host namespaces", ", ".join(fields)) if fields else None


def check_host_ports(pod: PodView) -> Violation | None:
    """Refuse ports of the host."""
    names = pod.names_where(lambda container: any(_host_ports(container)))
    if not names:
        return None
    ports = sorted({port for container in pod.containers for port in _host_ports(container)})
    verb = choose_number(len(names), "uses", "use")
    noun = choose_number(len(ports), "hostPort", "hostPorts")
    return Violation("hostPort", f"{name_containers(names)} {verb} {noun} {', '.join(ports)}")


def check_probe_hosts(pod: PodView) -> Violation | None:
    """Refuse hosts in probes and lifecycle hooks: the kubelet connects to them."""
    names = sorted(set(pod.names_where(lambda container: any(_probe_hosts(container)))))
    if not names:
        return None
    hosts = sorted({host for container in pod.containers for host in _probe_hosts(container)})
    verb = choose_number(len(names), "uses", "use")
    noun = choose_number(len(hosts), "probe or lifecycle host", "probe or lifecycle hosts")
    return Violation("probe or lifecycle host", f"{name_containers(names)} {verb} {noun} {quote_all(hosts)}")


def check_host_process(pod: PodView) -> Violation | None:
    """Refuse Windows containers that are processes of the host."""
    names = pod.names_where(lambda container: _is_host_process(security_of(container)))
    setters = name_setters(names, is_pod=_is_host_process(pod.security))
    if not setters:
        return None
    return Violation("hostProcess", f"{setters} must not set securityContext.windowsOptions.hostProcess=true")


def check_proc_mount(pod: PodView) -> Violation | None:
    """Refuse a /proc without the usual masks."""
    names = pod.names_where(lambda container: bool(_unmasked_mount(container)))
    if not names:
        return None
    mounts = quote_all(sorted(set(filter(None, map(_unmasked_mount, pod.containers)))))
    return Violation("procMount", f"{name_containers(names)} must not set securityContext.procMount to {mounts}")


def check_host_path(pod: PodView) -> Violation | None:
    """Refuse directories of the host as volumes."""
    names = [volume.get("name", "") for volume in pod.spec.get("volumes") or () if volume.get("hostPath") is not None]
    if not names:
        return None
    return Violation("hostPath volumes", f"{choose_number(len(names), 'volume', 'volumes')} {quote_all(names)}")


def check_volume_types(pod: PodView) -> Violation | None:
    """Refuse volume types that are not for users of a namespace."""
    volumes = [volume for volume in pod.spec.get("volumes") or () if not _has_any(volume, _UNRESTRICTED_VOLUMES)]
    if not volumes:
        return None
    names = [volume.get("name", "") for volume in volumes]
    types = sorted({_volume_type(volume) for volume in volumes})
    noun = choose_number(len(names), "volume", "volumes")
    verb = choose_number(len(names), "uses", "use")
    type_noun = choose_number(len(types), "restricted volume type", "restricted volume types")
    return Violation("restricted volume types", f"{noun} {quote_all(names)} {verb} {type_noun} {quote_all(types)}")


def _host_ports(container: Document) -> Iterator[str]:
    for port in container.get("ports") or ():
        if port.get("hostPort"):
            yield str(port["hostPort"])


def _probe_hosts(container: Document) -> Iterator[str]:
    lifecycle: Document = container.get("lifecycle") or {}
    actions = [*(container.get(field) for field in _PROBES), *(lifecycle.get(field) for field in _LIFECYCLE_HOOKS)]
    for action in filter(None, actions):
        for handler in _HANDLERS:
            host = (action.get(handler) or {}).get("host")
            if host:
                yield host


def _is_host_process(security: Document) -> bool:
    return bool((security.get("windowsOptions") or {}).get("hostProcess"))


def _unmasked_mount(container: Document) -> str:
    mount = security_of(container).get("procMount")
    return "" if mount in (None, "Default") else str(mount)


def _has_any(volume: Document, types: tuple[str, ...]) -> bool:
    return any(volume.get(each) is not None for each in types)


def _volume_type(volume: Document) -> str:
    return next((each for each in _RESTRICTED_VOLUMES if volume.get(each) is not None), "unknown")
