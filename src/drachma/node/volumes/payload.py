"""What is in a volume that is made of config maps, secrets, tokens or the pod's own fields: files by their paths."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

import msgspec

from drachma import errors
from drachma.node import downward
from drachma.node.runningpod import DownwardVolume, KeyToPath, ProjectedVolume, RunningPod, TokenFile, Volume
from drachma.node.sources import Keys, Sources
from drachma.values import quantity


class File(NamedTuple):
    """The content of a file, and its permission bits."""

    data: bytes
    mode: int


Payload: TypeAlias = dict[str, File]


class Token(NamedTuple):
    """A token that was had, and when the next one is."""

    text: str
    until: dt.datetime


class Tokens:
    """The tokens of a pod, each asked for anew when four fifths of its time are over."""

    def __init__(self) -> None:
        self._kept: dict[TokenFile, Token] = {}

    async def get(self, of: RunningPod, wanted: TokenFile, sources: Sources, *, now: dt.datetime) -> str:
        """A token that is still good for a while.

        Raises:
            errors.NodeError: it cannot be had now, and there is none from before.
        """
        kept = self._kept.get(wanted)
        if kept is not None and now < kept.until:
            return kept.text
        text, expires = await sources.token(
            of.spec.service_account_name or "default",
            audience=wanted.audience,
            seconds=wanted.expiration_seconds,
            pod=of.metadata,
        )
        end = msgspec.convert(expires, dt.datetime)
        self._kept[wanted] = Token(text, now + (end - now) * 4 / 5)
        return text


async def build(
    of: RunningPod,
    volume: Volume,
    sources: Sources,
    *,
    tokens: Tokens,
    allocatable: Mapping[str, quantity.Quantity],
    now: dt.datetime,
) -> Payload | None:
    """The files of a volume; None for one that is no such volume.

    Raises:
        errors.NodeError: something that it is made of is not there, or has not what it takes.
    """
    if volume.config_map is not None:
        kind = volume.config_map
        keys = await sources.config_map(kind.name, optional=kind.optional)
        return _of_keys(keys, kind.items, kind.default_mode, optional=kind.optional)
    if volume.secret is not None:
        secret = volume.secret
        keys = await sources.secret(secret.secret_name, optional=secret.optional)
        return _of_keys(keys, secret.items, secret.default_mode, optional=secret.optional)
    if volume.downward_api is not None:
        return _of_fields(of, volume.downward_api, volume.downward_api.default_mode, allocatable)
    if volume.projected is not None:
        return await _projected(of, volume.projected, sources, tokens=tokens, allocatable=allocatable, now=now)
    return None


async def _projected(
    of: RunningPod,
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
            files |= _of_keys(keys, part.items, volume.default_mode, optional=part.optional)
        elif each.secret is not None:
            part = each.secret
            keys = await sources.secret(part.name, optional=part.optional)
            files |= _of_keys(keys, part.items, volume.default_mode, optional=part.optional)
        elif each.downward_api is not None:
            files |= _of_fields(of, each.downward_api, volume.default_mode, allocatable)
        elif each.service_account_token is not None:
            token = await tokens.get(of, each.service_account_token, sources, now=now)
            files[each.service_account_token.path] = File(token.encode(), volume.default_mode)
        else:
            raise errors.NodeError(f'volume of pod "{of.metadata.name}": a projected source of this kind is not served')
    return files


def _of_keys(keys: Keys | None, items: Iterable[KeyToPath], mode: int, *, optional: bool) -> Payload:
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


def _of_fields(
    of: RunningPod, volume: DownwardVolume, mode: int, allocatable: Mapping[str, quantity.Quantity]
) -> Payload:
    files: Payload = {}
    for item in volume.items:
        text = ""
        if item.field_ref is not None:
            text = downward.field(of, item.field_ref.field_path)
        elif item.resource_field_ref is not None:
            text = downward.resource(of, item.resource_field_ref, container="", allocatable=allocatable)
        files[item.path] = File(text.encode(), mode if item.mode is None else item.mode)
    return files
