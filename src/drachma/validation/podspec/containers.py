"""Rules for the containers of a pod: those that run, those that run before, and those added for debugging."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from drachma.validation import fielderror, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.validation.podspec import choices, environment, handlers, mounts, resources, security

_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
_RESTART_POLICIES: Final = ("Always", "Never", "OnFailure")
_RESTART_ACTIONS: Final = ("Restart", "RestartAllContainers")
_EXIT_OPERATORS: Final = ("In", "NotIn")
_RESIZED: Final = ("cpu", "memory")
_RESIZE_POLICIES: Final = ("NotRequired", "RestartContainer")
_MOST_RULES: Final = 20
_MOST_EXIT_CODES: Final = 255
_DEBUGGED: Final = ("lifecycle", "livenessProbe", "ports", "readinessProbe", "startupProbe")
"""What containers for debugging cannot have, besides resources."""


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What the rules for a container need to know of its pod."""

    volumes: mounts.Volumes
    claims: Sequence[str]
    grace: int | None
    restart_policy: str
    uses_host_users: bool


def check(containers: Sequence[Mapping[str, Any]], at: Path, *, pod: Surroundings) -> Errors:
    """The containers that the pod is for; there must be one."""
    if not containers:
        yield fielderror.required(at)
        return
    seen: set[str] = set()
    for position, container in enumerate(containers):
        path, name = at.item(position), container.get("name", "")
        yield from _common(container, path, pod=pod)
        if name in seen:
            yield fielderror.duplicate(path.child("name"), name)
        seen.add(name)
        yield from handlers.check(container, path, grace=pod.grace)
        yield from _restart(container, path)
    yield from _host_ports(enumerate(containers), at)


def check_initial(
    containers: Sequence[Mapping[str, Any]], at: Path, *, others: Sequence[Mapping[str, Any]], pod: Surroundings
) -> Errors:
    """The containers that run first; those that always restart go on beside the others."""
    seen = {container.get("name", "") for container in others}
    for position, container in enumerate(containers):
        path, name = at.item(position), container.get("name", "")
        yield from _common(container, path, pod=pod)
        yield from _restart(container, path)
        if name in seen:
            yield fielderror.duplicate(path.child("name"), name)
        elif name:
            seen.add(name)
        # Upstream looks at one container at a time here, and counts from zero for each.
        yield from _host_ports([(0, container)], at)
        if container.get("restartPolicy") == "Always":
            yield from handlers.check(container, path, grace=pod.grace)
            continue
        yield from handlers.check_absent(container, path)
        for index, policy in enumerate(container.get("resizePolicy") or ()):
            if policy.get("restartPolicy") == "RestartContainer":
                detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                where = path.child("resizePolicy").item(index).child("restartPolicy")
                yield fielderror.invalid(where, rendering.named("RestartContainer"), detail)


def check_debugging(
    containers: Sequence[Mapping[str, Any]], at: Path, *, others: Sequence[Mapping[str, Any]], pod: Surroundings
) -> Errors:
    """Ephemeral containers, which take a look at the others."""
    targets = {container.get("name", "") for container in others}
    seen = set(targets)
    for position, container in enumerate(containers):
        path, name = at.item(position), container.get("name", "")
        yield from _common(container, path, pod=pod)
        yield from check_image(container, path)
        if name in seen:
            yield fielderror.duplicate(path.child("name"), name)
        seen.add(name)
        target = container.get("targetContainerName", "")
        if target and target not in targets:
            yield fielderror.not_found(path.child("targetContainerName"), target)
        is_greedy = any((container.get("resources") or {}).values())
        for field in sorted([*_DEBUGGED, *(["resources"] if is_greedy else [])]):
            if container.get(field):
                yield fielderror.forbidden(path.child(field), "cannot be set for an Ephemeral Container")


def check_image(container: Mapping[str, Any], at: Path) -> Errors:
    """The name of an image in a pod; templates are not so strict."""
    image = container.get("image", "")
    if image.strip() != image:
        yield fielderror.invalid(at.child("image"), image, "must not have leading or trailing whitespace")


def _common(container: Mapping[str, Any], at: Path, *, pod: Surroundings) -> Errors:
    yield from choices.label(container.get("name", ""), at.child("name"))
    if not container.get("image"):
        yield fielderror.required(at.child("image"))
    policy = container.get("terminationMessagePolicy", "")
    if policy != "File":
        yield from choices.one_of(policy, at.child("terminationMessagePolicy"), _MESSAGE_POLICIES)
    if container.get("ports"):
        yield from _ports(container["ports"], at.child("ports"))
    if container.get("env"):
        yield from environment.check(container["env"], at.child("env"))
    if container.get("envFrom"):
        yield from environment.check_all_of(container["envFrom"], at.child("envFrom"))
    if container.get("volumeMounts") or container.get("volumeDevices"):
        yield from mounts.check(container, at, volumes=pod.volumes)
    yield from choices.one_of(container.get("imagePullPolicy", ""), at.child("imagePullPolicy"), _PULL_POLICIES)
    if container.get("resources"):
        yield from resources.check_container(container["resources"], at.child("resources"), known=pod.claims)
    if container.get("resizePolicy"):
        yield from _resizing(container["resizePolicy"], at.child("resizePolicy"), restart_policy=pod.restart_policy)
    if container.get("securityContext"):
        path = at.child("securityContext")
        yield from security.check_container(container["securityContext"], path, uses_host_users=pod.uses_host_users)


def _ports(ports: Sequence[Mapping[str, Any]], at: Path) -> Errors:
    seen = set()
    for position, port in enumerate(ports):
        path, name = at.item(position), port.get("name", "")
        if name:
            problems = choices.port_name_problems(name)
            yield from fielderror.problems(path.child("name"), name, problems)
            if not problems and name in seen:
                yield fielderror.duplicate(path.child("name"), name)
            seen.add(name)
        if not port.get("containerPort"):
            yield fielderror.required(path.child("containerPort"))
        else:
            yield from choices.port(port["containerPort"], path.child("containerPort"))
        if port.get("hostPort"):
            yield from choices.port(port["hostPort"], path.child("hostPort"))
        yield from choices.one_of(port.get("protocol", ""), path.child("protocol"), _PROTOCOLS)


def _host_ports(
    containers: Iterator[tuple[int, Mapping[str, Any]]] | list[tuple[int, Mapping[str, Any]]], at: Path
) -> Errors:
    seen = set()
    for position, container in containers:
        for index, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            shown = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if shown in seen:
                yield fielderror.duplicate(at.item(position).child("ports").item(index).child("hostPort"), shown)
            seen.add(shown)


def _restart(container: Mapping[str, Any], at: Path) -> Errors:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or ()
    if policy is None and not rules:
        return
    if policy is None:
        detail = "must specify restartPolicy when restart rules are used"
        yield fielderror.required(at.child("restartPolicy"), detail)
    elif policy not in _RESTART_POLICIES:
        yield fielderror.not_supported(at.child("restartPolicy"), rendering.named(policy), _RESTART_POLICIES)
    if len(rules) > _MOST_RULES:
        yield fielderror.too_many(at.child("restartPolicyRules"), len(rules), _MOST_RULES)
    for position, rule in enumerate(rules):
        path, codes = at.child("restartPolicyRules").item(position), rule.get("exitCodes")
        if rule.get("action", "") not in _RESTART_ACTIONS:
            shown = rendering.named(rule.get("action", ""))
            yield fielderror.not_supported(path.child("action"), shown, _RESTART_ACTIONS)
        if codes is None:
            yield fielderror.required(path.child("exitCodes"), "must be specified")
            continue
        if codes.get("operator", "") not in _EXIT_OPERATORS:
            shown = rendering.named(codes.get("operator", ""))
            yield fielderror.not_supported(path.child("exitCodes", "operator"), shown, _EXIT_OPERATORS)
        if len(codes.get("values") or ()) > _MOST_EXIT_CODES:
            where = path.child("exitCodes", "values")
            yield fielderror.too_many(where, len(codes["values"]), _MOST_EXIT_CODES)


def _resizing(policies: Sequence[Mapping[str, Any]], at: Path, *, restart_policy: str) -> Errors:
    seen = set()
    for position, policy in enumerate(policies):
        name, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if name in seen:
            yield fielderror.duplicate(at.item(position), rendering.named(name))
        seen.add(name)
        yield from choices.one_of(name, at, _RESIZED)
        yield from choices.one_of(restart, at, _RESIZE_POLICIES)
        if restart_policy == "Never" and restart != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            yield fielderror.invalid(at, rendering.named(restart), detail)
