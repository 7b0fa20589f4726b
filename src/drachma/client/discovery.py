"""Discovery: the version to use for a kind, and all resources of a server.

The version for a kind is asked for once and kept. The list of all resources is read again each time, because users
define and delete kinds.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api import meta
from drachma.client import target, transport

_NEEDED: Final = frozenset({"delete", "list", "watch"})
_UNAVAILABLE: Final = 503


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class _Resource(_Part, frozen=True, kw_only=True):
    name: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...] = ()
    storage_version_hash: str = ""


class _ResourceList(_Part, frozen=True, kw_only=True):
    resources: tuple[_Resource, ...] = ()


class _Version(_Part, frozen=True, kw_only=True):
    version: str


class _Group(_Part, frozen=True, kw_only=True):
    name: str
    versions: tuple[_Version, ...] = ()
    preferred_version: _Version | None = None


class _GroupList(_Part, frozen=True, kw_only=True):
    groups: tuple[_Group, ...] = ()


class _CoreVersions(_Part, frozen=True, kw_only=True):
    versions: tuple[str, ...] = ()


class _ServerVersion(_Part, frozen=True, kw_only=True):
    git_version: str = ""


class Discovery:
    """Cached answers of one server."""

    def __init__(self, sender: transport.Transport) -> None:
        self._transport: Final = sender
        self._served: Final[dict[tuple[str, str], tuple[_Resource, ...]]] = {}
        self._versions: Final[dict[tuple[str, str], str]] = {}
        self._lock: Final = asyncio.Lock()

    async def version(self, resource: target.Target[Any]) -> str:
        """Return the first of a target's versions that the server has. Raises ObjectNotFoundError if it has none."""
        if len(resource.versions) == 1:
            return resource.versions[0]
        choice = self._versions.get((resource.group, resource.plural))
        if choice is not None:
            return choice
        async with self._lock:
            for version in resource.versions:
                resources = await self._resources(resource.group, version)
                if any(served.name == resource.plural for served in resources):
                    return self._versions.setdefault((resource.group, resource.plural), version)
            # Not cached: the server may get the version later, for example when it is upgraded.
            for version in resource.versions:
                self._served.pop((resource.group, version), None)
        versions = ", ".join(resource.api_version(version) for version in resource.versions)
        message = f"{resource.qualified}: the server has it in none of {versions}"
        raise errors.ObjectNotFoundError(
            {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": "NotFound"}
            | {"code": 404}
        )

    async def resources(self, *, needs_all: bool = True) -> Sequence[target.Target[meta.Object]]:
        """Return all resources that can be listed, watched and deleted, each with the version that the server prefers
        and its other versions.

        Without ``needs_all``, versions whose extension API server does not answer are left out.
        """
        core = await self._ask("/api", _CoreVersions)
        groups = [_Group(name="", versions=tuple(_Version(version=version) for version in core.versions))]
        groups += (await self._ask("/apis", _GroupList)).groups
        # Versions of one resource are stored as one. A name may also stand for different things in two versions.
        versions: dict[tuple[str, str, str], list[str]] = {}
        preferred: dict[tuple[str, str, str], _Resource] = {}
        async with self._lock:
            self._served.clear()
            for group in groups:
                # A sort keeps the server's order but for the preferred version, which comes first.
                for version in sorted(group.versions, key=lambda each: each != group.preferred_version):
                    try:
                        served = await self._resources(group.name, version.version)
                    except errors.RefusedError as error:
                        if needs_all or error.code != _UNAVAILABLE:
                            raise
                        continue
                    for resource in served:
                        if "/" not in resource.name and _NEEDED.issubset(resource.verbs):
                            key = (group.name, resource.name, resource.storage_version_hash)
                            versions.setdefault(key, []).append(version.version)
                            preferred.setdefault(key, resource)
        return tuple(_target(key[0], versions[key], resource) for key, resource in preferred.items())

    async def server_version(self) -> str:
        """Return the version of the server, such as ``v1.37.1``."""
        answer: _ServerVersion = await self._ask("/version", _ServerVersion)
        return answer.git_version

    async def openapi(self, group: str, version: str) -> dict[str, Any] | None:
        """Return the OpenAPI document of a group version, read again each time, or None if it is not served."""
        place = f"apis/{group}/{version}" if group else f"api/{version}"
        try:
            document: dict[str, Any] = await self._ask(f"/openapi/v3/{place}", dict[str, Any])
        except errors.ObjectNotFoundError:
            return None
        return document

    async def _resources(self, group: str, version: str) -> tuple[_Resource, ...]:
        resources = self._served.get((group, version))
        if resources is None:
            path = f"/apis/{group}/{version}" if group else f"/api/{version}"
            try:
                resources = (await self._ask(path, _ResourceList)).resources
            except errors.ObjectNotFoundError:
                resources = ()
            self._served[group, version] = resources
        return resources

    async def _ask(self, path: str, answer: type[Any]) -> Any:
        data = await self._transport.send(transport.Request(method="GET", path=path, is_idempotent=True))
        try:
            return msgspec.json.decode(data, type=answer)
        except msgspec.DecodeError as error:
            raise errors.DecodeError(f"discovery at {path}: {error}") from None


def _target(group: str, versions: Sequence[str], resource: _Resource) -> target.Target[meta.Object]:
    return target.metadata_of(
        group,
        versions[0],
        plural=resource.name,
        kind=resource.kind,
        namespaced=resource.namespaced,
        other_versions=tuple(versions[1:]),
    )
