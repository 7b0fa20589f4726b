"""Objects that pods read from the API server when they start and while they run: ConfigMaps, Secrets, tokens, volumes.

A source serves one pod at one time. It reads each object once, however often the pod names it.
"""

from __future__ import annotations

import base64
import binascii
import pathlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api import configmap, meta, persistentvolume, persistentvolumeclaim, secret
from drachma.api.struct import ABSENT_MAP
from drachma.client import Client, target


class Keys(msgspec.Struct, frozen=True):
    """Keys of a ConfigMap or Secret."""

    kind: str
    namespace: str
    name: str
    data: Mapping[str, bytes]

    def value(self, key: str) -> bytes:
        """Return the value of a key.

        Raises:
            errors.NodeError: the key does not exist.
        """
        if key not in self.data:
            raise errors.NodeError(f"couldn't find key {key} in {self.kind} {self.namespace}/{self.name}")
        return self.data[key]


class _ConfigMap(configmap.ConfigMap, frozen=True, kw_only=True):
    """ConfigMap with binary data."""

    binary_data: Mapping[str, str] = ABSENT_MAP


_CONFIG_MAPS: Final = target.view_of(target.of(configmap.ConfigMap), _ConfigMap)


class Sources:
    """Sources of a pod of a namespace."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._objects: dict[tuple[str, str], Keys | None] = {}

    async def config_map(self, name: str, *, optional: bool = False) -> Keys | None:
        """Return the keys of a ConfigMap, or None if an optional one does not exist.

        Raises:
            errors.NodeError: the ConfigMap does not exist, or cannot be read now.
        """
        return await self._keys("ConfigMap", name, optional=optional)

    async def secret(self, name: str, *, optional: bool = False) -> Keys | None:
        """Return the keys of a Secret, like config_map()."""
        return await self._keys("Secret", name, optional=optional)

    async def _keys(self, kind: str, name: str, *, optional: bool) -> Keys | None:
        key = (kind, name)
        if key not in self._objects:
            self._objects[key] = await self._read(kind, name)
        keys = self._objects[key]
        if keys is None and not optional:
            raise errors.NodeError(f'{kind.lower()} "{name}" not found')
        return keys

    async def _read(self, kind: str, name: str) -> Keys | None:
        data: dict[str, bytes]
        try:
            if kind == "Secret":
                stored_secret = await self._client.get(secret.Secret, name, namespace=self._namespace)
                data = {key: _decode(value) for key, value in stored_secret.data.items()}
            else:
                config_map = await self._client.get(_CONFIG_MAPS, name, namespace=self._namespace)
                data = {key: value.encode() for key, value in config_map.data.items()}
                data |= {key: _decode(value) for key, value in config_map.binary_data.items()}
        except errors.ObjectNotFoundError:
            return None
        except (errors.RefusedError, errors.UnreachableError) as error:
            raise errors.NodeError(str(error)) from error
        return Keys(kind, self._namespace, name, data)

    async def volume_path(self, claim: str) -> pathlib.Path:
        """Return the path on this machine of the volume that a claim is bound to.

        Raises:
            errors.NodeError: the claim is not bound yet, or agents do not serve the kind of its volume.
        """
        try:
            bound = await self._client.get(
                persistentvolumeclaim.PersistentVolumeClaim, claim, namespace=self._namespace
            )
            if not bound.spec.volume_name:
                raise errors.NodeError(f'PVC "{claim}" is not bound')
            volume = await self._client.get_document(persistentvolume.PersistentVolume, bound.spec.volume_name)
        except (errors.RefusedError, errors.UnreachableError) as error:
            raise errors.NodeError(str(error)) from error
        for kind in ("local", "hostPath"):
            if kind in volume["spec"]:
                return pathlib.Path(volume["spec"][kind]["path"])
        raise errors.NodeError(
            f"persistent volume {bound.spec.volume_name}: volumes of this kind are not served by this agent"
        )

    async def token(self, account: str, *, audience: str, seconds: int, pod: meta.ObjectMeta) -> tuple[str, str]:
        """Return a token of a service account that is bound to a pod, and its expiry time.

        Raises:
            errors.NodeError: the token cannot be requested now.
        """
        spec: dict[str, Any] = {
            "audiences": [audience] if audience else [],
            "expirationSeconds": seconds,
            "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid},
        }
        try:
            status = await self._client.request_token(self._namespace, account, spec=spec)
        except (errors.RefusedError, errors.UnreachableError) as error:
            raise errors.NodeError(f"failed to fetch token: {error}") from error
        return str(status["token"]), str(status["expirationTimestamp"])


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise errors.NodeError(f"a value is not base64: {error}") from error
