"""Rules for the containers of a pod: containers, init containers and ephemeral containers, with their handlers."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from drachma.validation import collection, constraints, fielderror, rendering, rulenotation
from drachma.validation.fielderror import Errors, FieldError
from drachma.validation.path import Document, Path
from drachma.validation.podspec import mounts, resources

_is_resizable: Final = constraints.one_of("cpu", "memory")
_is_resize_policy: Final = constraints.one_of("NotRequired", "RestartContainer")
_header_name: Final = constraints.matches(
    re.compile(r"[-A-Za-z0-9]+"),
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for "
    "validation is '[-A-Za-z0-9]+')",
)


class Pod(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a pod that the rules for its containers need."""

    volumes: mounts.Volumes
    claims: Sequence[str]
    grace: int | None
    restart_policy: str
    uses_host_users: bool


def check(containers: Sequence[Document], at: Path, *, pod: Pod) -> Errors:
    """Yield the errors of the containers of a pod; there must be one."""
    if not containers:
        yield fielderror.required(at)
        return
    for place, container, name, is_repeated in collection.walk_items(containers, at):
        yield from _TYPES["Container"](container, place, pod)
        if is_repeated:
            yield fielderror.duplicate(place.child("name"), name)
        yield from _TYPES["ProbedContainer"](container, place, pod)
        yield from _TYPES["RestartedContainer"](container, place)
    yield from _check_host_ports(enumerate(containers), at)


def check_init(containers: Sequence[Document], at: Path, *, siblings: Sequence[Document], pod: Pod) -> Errors:
    """Yield the errors of init containers; those that always restart are sidecars."""
    previous = {container.get("name", "") for container in siblings}
    for position, container in enumerate(containers):
        place, name = at.item(position), container.get("name", "")
        yield from _TYPES["Container"](container, place, pod)
        yield from _TYPES["RestartedContainer"](container, place)
        if name in previous:
            yield fielderror.duplicate(place.child("name"), name)
        elif name:
            previous.add(name)
        # Upstream checks one container at a time here, and counts from zero for each.
        yield from _check_host_ports([(0, container)], at)
        if container.get("restartPolicy") == "Always":
            yield from _TYPES["ProbedContainer"](container, place, pod)
        else:
            yield from _TYPES["EndingContainer"](container, place)


def check_ephemeral(containers: Sequence[Document], at: Path, *, siblings: Sequence[Document], pod: Pod) -> Errors:
    """Yield the errors of ephemeral containers."""
    targets = {container.get("name", "") for container in siblings}
    for place, container, name, is_repeated in collection.walk_items(containers, at, earlier_names=targets):
        yield from _TYPES["Container"](container, place, pod)
        yield from check_image(container, place)
        if is_repeated:
            yield fielderror.duplicate(place.child("name"), name)
        target = container.get("targetContainerName", "")
        if target and target not in targets:
            yield fielderror.not_found(place.child("targetContainerName"), target)
        yield from _TYPES["EphemeralContainer"](container, place)


def check_image(container: Document, at: Path) -> Errors:
    """Yield an error if the image of a container of a pod has spaces around it; templates may have them."""
    image = container.get("image", "")
    if image.strip() != image:
        yield fielderror.invalid(at.child("image"), image, "must not have leading or trailing whitespace")


# Fields of containers


def _ports(ports: Sequence[Document], at: Path) -> Errors:
    for place, port, name, is_repeated in collection.walk_items(ports, at):
        if name:
            problems = constraints.port_name_problems(name)
            yield from fielderror.problems(place.child("name"), name, problems)
            if not problems and is_repeated:
                yield fielderror.duplicate(place.child("name"), name)
        yield from _TYPES["ContainerPort"](port, place)


def _check_host_ports(containers: Iterable[tuple[int, Document]], at: Path) -> Errors:
    previous = set()
    for position, container in containers:
        for index, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            display = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if display in previous:
                yield fielderror.duplicate(at.item(position).child("ports").item(index).child("hostPort"), display)
            previous.add(display)


def _check_mounts(container: Document, at: Path, pod: Pod) -> Iterable[FieldError]:
    if container.get("volumeMounts") or container.get("volumeDevices"):
        return mounts.check(container, at, volumes=pod.volumes)
    return ()


def _container_resources(requirements: Document, at: Path, pod: Pod) -> Errors:
    return resources.check_container(requirements, at, claims=pod.claims)


def _resize_policies(policies: Sequence[Document], at: Path, pod: Pod) -> Errors:
    for place, policy, name, is_repeated in collection.walk_items(policies, at, field="resourceName"):
        restart = policy.get("restartPolicy", "")
        if is_repeated:
            yield fielderror.duplicate(place, rendering.named(name))
        yield from _is_resizable(name, at) if name else [fielderror.required(at)]
        yield from _is_resize_policy(restart, at) if restart else [fielderror.required(at)]
        if pod.restart_policy == "Never" and restart != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            yield fielderror.invalid(at, rendering.named(restart), detail)


# Probes and hooks


def _check_sleep(action: Document, at: Path, pod: Pod) -> Errors:
    seconds = action.get("seconds", 0)
    if pod.grace is not None and not 0 <= seconds <= pod.grace:
        detail = f"must be non-negative and less than terminationGracePeriodSeconds ({pod.grace})"
        yield fielderror.invalid(at, seconds, detail)


_TYPES: Final = rulenotation.load("podspec/containers", globals())
