"""Findings of the doctor: what is wrong, how bad it is, the evidence, and the repair."""

from __future__ import annotations

import enum
import json
import shlex
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from drachma.api import meta
from drachma.claims import identity


class Severity(enum.StrEnum):
    """Severity of a finding, the worst first."""

    CRITICAL = "critical"
    """Devices are used by workloads that do not own them."""
    ERROR = "error"
    """Something cannot work until it is repaired."""
    WARNING = "warning"
    """Something will probably not work, or wastes devices."""
    INFO = "info"

    @property
    def rank(self) -> int:
        """Position among severities, 0 for the worst."""
        return tuple(Severity).index(self)


class Verb(enum.StrEnum):
    """Request that a repair makes."""

    DELETE = "delete"
    PATCH = "patch"


class Repair(msgspec.Struct, frozen=True, kw_only=True):
    """One request that removes the cause. It names the version that was examined, so it never hits a newer one."""

    verb: Verb
    resource: str
    """Plural name with group, as kubectl takes it."""
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    subresource: str = ""
    patch: Mapping[str, Any] = {}

    @property
    def command(self) -> str:
        """Command of kubectl that makes the request."""
        words = ["kubectl", self.verb, self.resource, self.name]
        words += ["-n", self.namespace] if self.namespace else []
        words += ["--subresource", self.subresource] if self.subresource else []
        words += ["--type", "merge", "-p", json.dumps(self.patch)] if self.verb is Verb.PATCH else []
        return shlex.join(words)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong."""

    check: str
    """Name of the check, for scripts."""
    severity: Severity
    subject: str
    """Kind and name of the object."""
    message: str
    evidence: tuple[str, ...] = ()
    advice: str = ""
    """What a person should do, if there is no safe request."""
    repair: Repair | None = None

    @property
    def order(self) -> tuple[int, str, str]:
        """Sort key: the worst first."""
        return self.severity.rank, self.check, self.subject


_RESOURCES: Final = {
    "Pod": "pods",
    "ResourceClaim": "resourceclaims.resource.k8s.io",
    "ResourceSlice": "resourceslices.resource.k8s.io",
}


def subject_of(object_: meta.Object) -> str:
    """Return kind and name of an object, for messages."""
    return f"{type(object_).__name__} {identity.label(object_.metadata)}"


def delete(object_: meta.Object) -> Repair:
    """Return the deletion of an object, if it is still the examined one."""
    return _repair(object_, Verb.DELETE)


def patch(object_: meta.Object, content: Mapping[str, Any], *, subresource: str = "") -> Repair:
    """Return a merge patch of an object, if it has not changed since it was examined."""
    return _repair(object_, Verb.PATCH, content=content, subresource=subresource)


def _repair(
    object_: meta.Object, verb: Verb, *, content: Mapping[str, Any] | None = None, subresource: str = ""
) -> Repair:
    metadata = object_.metadata
    return Repair(
        verb=verb,
        resource=_RESOURCES[type(object_).__name__],
        name=metadata.name,
        namespace=metadata.namespace,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
        subresource=subresource,
        patch=content or {},
    )
