"""Rules for a pod spec as a whole, in upstream's order, for pods and for the templates of workloads.

Specs are documents with defaults and in normal form: no nulls but those that the server writes, quantities canonical.
A spec is decided by itself; what depends on the metadata of a pod is in :mod:`.pod`.
"""

from collections.abc import Mapping
from typing import Any, Final

from drachma.validation import fielderror, formats, metadata, rendering
from drachma.validation.fielderror import Errors, FieldError
from drachma.validation.path import Path
from drachma.validation.podspec import (
    affinity,
    choices,
    claims,
    containers,
    naming,
    resources,
    security,
    tolerations,
    volumes,
)

_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
_SYSTEMS: Final = ("linux", "windows")
_LONGEST_DEADLINE: Final = 2**31 - 1


def check(spec: Mapping[str, Any], at: Path, *, is_pod: bool, is_mirror: bool = False) -> list[FieldError]:
    """All that is wrong with a pod spec.

    ``is_pod`` tells a pod from a template; ``is_mirror`` tells a pod that stands for one that kubelet runs by itself.
    """
    found = [
        *_contents(spec, at, is_mirror=is_mirror),
        *_host_network(spec, at, is_pod=is_pod),
        *choices.one_of(spec.get("restartPolicy", ""), at.child("restartPolicy"), _RESTART_POLICIES),
        *choices.one_of(spec.get("dnsPolicy", ""), at.child("dnsPolicy"), _DNS_POLICIES),
        *_placement(spec, at),
        *naming.check(spec, at),
    ]
    if spec.get("nodeName"):
        found += formats.node_name(spec["nodeName"], at.child("nodeName"))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None:
        found += choices.in_range(deadline, at.child("activeDeadlineSeconds"), least=1, most=_LONGEST_DEADLINE)
    found += naming.check_host(spec, at)
    if spec.get("tolerations"):
        found += tolerations.check(spec["tolerations"], at.child("tolerations"))
    found += _rest(spec, at)
    return found


def _contents(spec: Mapping[str, Any], at: Path, *, is_mirror: bool) -> Errors:
    """Volumes, claims and containers."""
    pod_claims = spec.get("resourceClaims") or ()
    own, first = spec.get("containers") or (), spec.get("initContainers") or ()
    known_volumes = {}
    if spec.get("volumes"):
        yield from volumes.check(spec["volumes"], at.child("volumes"))
        known_volumes = volumes.good(spec["volumes"], at)
    if pod_claims and is_mirror:
        yield fielderror.forbidden(_NOWHERE, "static pods do not support resource claims")
    elif pod_claims:
        yield from claims.check(pod_claims, at.child("resourceClaims"))
    pod = containers.Surroundings(
        volumes=known_volumes,
        claims=claims.names_of(pod_claims),
        grace=spec.get("terminationGracePeriodSeconds"),
        restart_policy=spec.get("restartPolicy", ""),
        uses_host_users=spec.get("hostUsers") is not False,
    )
    yield from containers.check(own, at.child("containers"), pod=pod)
    if first:
        yield from containers.check_initial(first, at.child("initContainers"), others=own, pod=pod)
    if spec.get("ephemeralContainers"):
        path = at.child("ephemeralContainers")
        yield from containers.check_debugging(spec["ephemeralContainers"], path, others=[*own, *first], pod=pod)
    if spec.get("resources") is not None:
        yield from resources.check_pod(spec, at.child("resources"), known=pod.claims)


_NOWHERE: Final = Path("[]")
"""How upstream prints a path without a name."""


def _host_network(spec: Mapping[str, Any], at: Path, *, is_pod: bool) -> Errors:
    if not spec.get("hostNetwork"):
        return
    for position, container in enumerate(spec.get("containers") or ()):
        for index, port in enumerate(container.get("ports") or ()):
            on_host, inside = port.get("hostPort", 0), port.get("containerPort", 0)
            if on_host != inside and (is_pod or on_host):
                path = at.child("containers").item(position).child("ports").item(index).child("hostPort")
                yield fielderror.invalid(path, on_host, "must match `containerPort` when `hostNetwork` is true")


def _placement(spec: Mapping[str, Any], at: Path) -> Errors:
    """Where a pod may run, and under which conditions."""
    if spec.get("nodeSelector"):
        yield from metadata.labels(spec["nodeSelector"], at.child("nodeSelector"))
    if spec.get("securityContext"):
        yield from security.check_pod(spec["securityContext"], at.child("securityContext"))
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield fielderror.invalid(at.child("shareProcessNamespace"), value=True, detail=detail)
    if spec.get("affinity"):
        yield from affinity.check(spec["affinity"], at.child("affinity"))
    yield from naming.check_dns(spec, at)
    for position, gate in enumerate(spec.get("readinessGates") or ()):
        path = at.child("readinessGates").item(position).child("conditionType")
        yield from choices.qualified_name(gate.get("conditionType", ""), path)
    if spec.get("schedulingGates"):
        yield from _gates(spec["schedulingGates"], at.child("schedulingGates"))
    if spec.get("topologySpreadConstraints"):
        path = at.child("topologySpreadConstraints")
        yield from affinity.check_spread(spec["topologySpreadConstraints"], path)
    if spec.get("hostUsers") is False:
        for field, shown in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
            if spec.get(field):
                yield fielderror.forbidden(at.child(shown), "when `hostUsers` is false")


def _gates(gates: Any, at: Path) -> Errors:
    seen = set()
    for position, gate in enumerate(gates):
        name = gate.get("name", "")
        yield from choices.qualified_name(name, at.item(position))
        if name in seen:
            yield fielderror.duplicate(at.item(position), name)
        seen.add(name)


def _rest(spec: Mapping[str, Any], at: Path) -> Errors:
    for position, alias in enumerate(spec.get("hostAliases") or ()):
        path = at.child("hostAliases").item(position)
        yield from choices.address(alias.get("ip", ""), path.child("ip"))
        for index, hostname in enumerate(alias.get("hostnames") or ()):
            yield from formats.long_name(hostname, path.child("hostnames").item(index))
    for field in ("priorityClassName", "runtimeClassName"):
        if spec.get(field):
            yield from formats.node_name(spec[field], at.child(field))
    if spec.get("preemptionPolicy") is not None:
        yield from choices.one_of(spec["preemptionPolicy"], at.child("preemptionPolicy"), _PREEMPTION_POLICIES)
    if spec.get("overhead"):
        yield from resources.check_overhead(spec["overhead"], at.child("overhead"))
    if spec.get("os") is not None:
        system = spec["os"].get("name", "")
        if not system:
            yield fielderror.required(at.child("os", "name"))
        elif system not in _SYSTEMS:
            yield fielderror.not_supported(at.child("os"), rendering.named(system), _SYSTEMS)
    yield from _file_keys(spec, at)


def _file_keys(spec: Mapping[str, Any], at: Path) -> Errors:
    """Variables that are read from a file, which must be in an empty directory of the pod."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for position, container in enumerate(spec.get(field) or ()):
            for index, variable in enumerate(container.get("env") or ()):
                reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
                if reference is None:
                    continue
                path = at.child(field).item(position).child("env").item(index).child("valueFrom", "fileKeyRef")
                yield from _file_key(reference.get("volumeName", ""), path.child("volumeName"), spec=spec)


def _file_key(name: str, at: Path, *, spec: Mapping[str, Any]) -> Errors:
    found = [volume for volume in spec.get("volumes") or () if volume.get("name", "") == name]
    if not found:
        yield fielderror.not_found(at, name)
    elif found[-1].get("emptyDir") is None:
        yield fielderror.invalid(at, name, "referenced volume must be of type emptyDir")
