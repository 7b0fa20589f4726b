"""Content of volumes of ConfigMaps, Secrets, tokens and downward API fields: files by their paths."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

import msgspec

from drachma import errors
from drachma.node.podview.pod import PodView
from drachma.node.podview.volumes import DownwardVolume, KeyToPath, ProjectedVolume, TokenFile, Volume
from drachma.node.setup import downward
from drachma.node.setup.sources import Keys, Sources
from drachma.values import quantity


class File(NamedTuple):
    """Content and permission bits of a file."""

    data: bytes
    mode: int


Payload: TypeAlias = dict[str, File]


class Token(NamedTuple):
    """A token, and the time to request the next one."""

    text: str
    until: dt.datetime


class Tokens:
    """Tokens of a pod. Each is requested again after four fifths of its lifetime."""

    def __init__(self) -> None:
        self._tokens: dict[TokenFile, Token] = {}

    async def get(self, pod: PodView, file: TokenFile, sources: Sources, *, now: dt.datetime) -> str:
        """Return a valid token for a file.

        Raises:
            errors.NodeError: a new token is needed and cannot be requested now.
        """
        token = self._tokens.get(file)
        if token is not None and now < token.until:
            return token.text
        text, expires = await sources.token(
            pod.spec.service_account_name or "default",
            audience=file.audience,
            seconds=file.expiration_seconds,
            pod=pod.metadata,
        )
        end = msgspec.convert(expires, dt.datetime)
        self._tokens[file] = Token(text, now + (end - now) * 4 / 5)
        return text


async def build(
    pod: PodView,
    volume: Volume,
    sources: Sources,
    *,
    tokens: Tokens,
    allocatable: Mapping[str, quantity.Quantity],
    now: dt.datetime,
) -> Payload | None:
    """Return the files of a volume, or None if it is of another kind.

    Raises:
        errors.NodeError: a source or a key in it does not exist.
    """
    if volume.config_map is not None:
        kind = volume.config_map
        keys = await sources.config_map(kind.name, optional=kind.optional)
        return _key_files(keys, kind.items, kind.default_mode, optional=kind.optional)
    if volume.secret is not None:
        secret = volume.secret
        keys = await sources.secret(secret.secret_name, optional=secret.optional)
        return _key_files(keys, secret.items, secret.default_mode, optional=secret.optional)
    if volume.downward_api is not None:
        return _field_files(pod, volume.downward_api, volume.downward_api.default_mode, allocatable)
    if volume.projected is not None:
        return await _projected(pod, volume.projected, sources, tokens=tokens, allocatable=allocatable, now=now)
    return None


async def _projected(
    pod: PodView,
    volume: ProjectedVolume,
    sources: Sources,
    *,
    tokens: Tokens,
    allocatable: Mapping[str, quantity.Quantity],
    now: dt.datetime,
) -> Payload:
    files: Payload = {}
    for each in volume.sources:
        if each.config_map is not None:
            part = each.config_map
            keys = await sources.config_map(part.name, optional=part.optional)
            files |= _key_files(keys, part.items, volume.default_mode, optional=part.optional)
        elif each.secret is not None:
            part = each.secret
            keys = await sources.secret(part.name, optional=part.optional)
            files |= _key_files(keys, part.items, volume.default_mode, optional=part.optional)
        elif each.downward_api is not None:
            files |= _field_files(pod, each.downward_api, volume.default_mode, allocatable)
        elif each.service_account_token is not None:
            token = await tokens.get(pod, each.service_account_token, sources, now=now)
            files[each.service_account_token.path] = File(token.encode(), volume.default_mode)
        else:
            raise errors.NodeError(
                f'volume of pod "{pod.metadata.name}": a projected source of this kind is not served'
            )
    return files


def _key_files(keys: Keys | None, items: Iterable[KeyToPath], mode: int, *, optional: bool) -> Payload:
    if keys is None:
        return {}
    if not items:
        return {key: File(value, mode) for key, value in keys.data.items()}
    files: Payload = {}
    for item in items:
        if item.key not in keys.data:
            if optional:
                continue
            raise errors.NodeError(f"references non-existent {keys.kind.lower()} key: {item.key}")
        files[item.path] = File(keys.data[item.key], mode if item.mode is None else item.mode)
    return files


def _field_files(
    pod: PodView, volume: DownwardVolume, mode: int, allocatable: Mapping[str, quantity.Quantity]
) -> Payload:
    files: Payload = {}
    for item in volume.items:
        text = ""
        if item.field_ref is not None:
            text = downward.field(pod, item.field_ref.field_path)
        elif item.resource_field_ref is not None:
            text = downward.resource(pod, item.resource_field_ref, container="", allocatable=allocatable)
        files[item.path] = File(text.encode(), mode if item.mode is None else item.mode)
    return files
