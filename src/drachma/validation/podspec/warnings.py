"""Warnings about new pods that are valid but probably wrong."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from drachma.validation import collection
from drachma.validation.path import SPEC, Path
from drachma.validation.podspec import affinity, apparmor
from drachma.values import quantity, quotation

_RETIRED: Final = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_RETIRED_ANNOTATIONS: Final = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_PORT: Final[tuple[tuple[str, str, str | int], ...]] = (
    ("Name", "name", ""), ("HostPort", "hostPort", 0), ("ContainerPort", "containerPort", 0),
    ("Protocol", "protocol", ""), ("HostIP", "hostIP", ""),
)  # fmt: skip
_SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/"
_NO_SELECTOR: Final = "a null labelSelector results in matching no pod"


def find(spec: Mapping[str, Any], at: Path, *, annotations: Mapping[str, str], notes: Path) -> Iterator[str]:
    """Yield the warnings about a spec at ``at``, and about its annotations at ``notes``."""
    for position, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        if constraint.get("labelSelector") is None:
            yield f"{at.child('topologySpreadConstraints').item(position).child('labelSelector')}: {_NO_SELECTOR}"
    for key, message in _RETIRED_ANNOTATIONS.items():
        if key in annotations:
            yield f"{notes.key(key)}: {message}"
    for position, volume in enumerate(spec.get("volumes") or ()):
        for field, message in _RETIRED.items():
            if volume.get(field) is not None:
                display = "storageOS" if field == "storageos" else field
                yield f"{at.child('volumes').item(position).child(display)}: {message}"
    yield from _repeated(spec, at, field="hostAliases", key="ip")
    yield from _repeated(spec, at, field="imagePullSecrets", key="name")
    for position, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            yield f'{at.child("imagePullSecrets").item(position).child("name")}: invalid empty name ""'
    containers = list(_containers(spec, at))
    if annotations:
        yield from _profiles(spec, [container for container, _ in containers], annotations, at=at, notes=notes)
    for container, path in containers:
        if container.get("resources"):
            yield from _fractions(container["resources"], path.child("resources"))
        if len(container.get("env") or ()) > 1:
            yield from _hidden(container["env"], path.child("env"))
    if any(container.get("ports") for container, _ in containers):
        yield from _ports(containers)
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        detail = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{at.child('terminationGracePeriodSeconds')}: {detail}"
    if spec.get("affinity"):
        yield from _terms(spec["affinity"], at.child("affinity"))


def _profiles(
    spec: Mapping[str, Any],
    containers: Sequence[Mapping[str, Any]],
    annotations: Mapping[str, str],
    *,
    at: Path,
    notes: Path,
) -> Iterator[str]:
    """Yield annotations that name profiles in the place of fields. Pods get fields for those of AppArmor."""
    is_template = at != SPEC
    for owner, key in ((spec, _SECCOMP_POD), *((each, f"{_SECCOMP}{each.get('name', '')}") for each in containers)):
        if key in annotations and (owner.get("securityContext") or {}).get("seccompProfile") is None:
            yield f'{notes.key(key)}: non-functional in v1.27+; use the "seccompProfile" field instead'
        if is_template and owner is not spec:
            for name in apparmor.warn_of_annotations(annotations, owner, spec=spec):
                yield f"{notes.key(name)}: {apparmor.DEPRECATION}"


def _containers(spec: Mapping[str, Any], at: Path) -> Iterator[tuple[Mapping[str, Any], Path]]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for position, container in enumerate(spec.get(field) or ()):
            yield container, at.child(field).item(position)


def _repeated(spec: Mapping[str, Any], at: Path, *, field: str, key: str) -> Iterator[str]:
    for place, _, value, is_repeated in collection.walk_items(spec.get(field) or (), at.child(field), field=key):
        if is_repeated:
            yield f"{place.child(key)}: duplicate {key} {quotation.quote(value)}"


def _fractions(resources: Mapping[str, Any], at: Path) -> Iterator[str]:
    for name in ("memory", "ephemeral-storage"):
        for field in ("limits", "requests"):
            text = (resources.get(field) or {}).get(name)
            if text is not None and text.endswith("m") and quantity.Quantity.parse(text).milli_value() % 1000:
                display = quotation.quote(text)
                yield f"{at.child(field).key(name)}: fractional byte value {display} is invalid, must be an integer"


def _hidden(variables: Any, at: Path) -> Iterator[str]:
    for place, variable, name, is_repeated in collection.walk_items(variables, at):
        value, reference = variable.get("value", ""), f"$({name})"
        extends = variable.get("valueFrom") is None and value != reference and reference in value
        if is_repeated and not extends:
            display = quotation.quote(name)
            yield f"{place}: hides previous definition of {display}, which may be dropped when using apply"


def _ports(containers: list[tuple[Mapping[str, Any], Path]]) -> Iterator[str]:
    every = [
        (port, path.child("ports").item(position))
        for container, path in containers
        for position, port in enumerate(container.get("ports") or ())
    ]
    previous: dict[tuple[int, str], list[tuple[Mapping[str, Any], Path]]] = {}
    for port, path in every:
        if port.get("hostIP") and not port.get("hostPort"):
            display = " ".join(f"{go}:{port.get(wire, empty)}" for go, wire, empty in _PORT)
            yield f"{path}: hostIP set without hostPort: {{{display}}}"
        same_ports = previous.setdefault((port.get("containerPort", 0), port.get("protocol", "")), [])
        for earlier_port, where in same_ports:
            relation = _relation(port, earlier_port)
            if relation:
                yield f"{path}: {relation} port definition with {where}"
        same_ports.append((port, path))
    first_paths: dict[str, Path] = {}
    for port, path in every:
        name = port.get("name", "")
        if name in first_paths:
            first = first_paths[name]
            yield (
                f"{path}: duplicate port name {quotation.quote(name)} with {first}, services and probes that select "
                f"ports by name will use {first}"
            )
        elif name:
            first_paths[name] = path


def _relation(port: Mapping[str, Any], earlier_port: Mapping[str, Any]) -> str:
    (address, number), (address2, number2) = (
        (each.get("hostIP", ""), each.get("hostPort", 0)) for each in (port, earlier_port)
    )
    if (address, number) == (address2, number2):
        return "duplicate"
    if not number or not number2:
        return "overlapping"
    return "dangerously ambiguous" if number == number2 and bool(address) != bool(address2) else ""


def _terms(constraints: Mapping[str, Any], at: Path) -> Iterator[str]:
    for field in ("podAffinity", "podAntiAffinity"):
        own = constraints.get(field) or {}
        for position, term in enumerate(own.get(affinity.REQUIRED) or ()):
            if term.get("labelSelector") is None:
                yield f"{at.child(field, affinity.REQUIRED).item(position).child('labelSelector')}: {_NO_SELECTOR}"
        for position, weighted in enumerate(own.get(affinity.PREFERRED) or ()):
            if (weighted.get("podAffinityTerm") or {}).get("labelSelector") is None:
                path = at.child(field, affinity.PREFERRED).item(position).child("podAffinityTerm", "labelSelector")
                yield f"{path}: {_NO_SELECTOR}"
