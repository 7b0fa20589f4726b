"""Volumes of a pod as its node reads them, as far as agents serve them."""

from __future__ import annotations

import msgspec

from drachma.api.struct import Int32, Int64, Struct
from drachma.node.podview.containers import FieldSelector, ResourceFieldSelector


class KeyToPath(Struct, frozen=True, kw_only=True):
    """File that a key becomes."""

    key: str = ""
    path: str = ""
    mode: Int32 | None = None


class ClaimVolume(Struct, frozen=True, kw_only=True):
    """Volume of a PersistentVolumeClaim."""

    claim_name: str = ""
    read_only: bool = False


class EmptyDirVolume(Struct, frozen=True, kw_only=True):
    """Directory with the lifetime of the pod."""


class HostPathVolume(Struct, frozen=True, kw_only=True):
    """File or directory of the machine."""

    path: str = ""
    type: str = ""


class KeysVolume(Struct, frozen=True, kw_only=True):
    """Keys of a ConfigMap as files."""

    name: str = ""
    items: tuple[KeyToPath, ...] = ()
    default_mode: Int32 = 0o644
    optional: bool = False


class SecretVolume(Struct, frozen=True, kw_only=True):
    """Keys of a Secret as files."""

    secret_name: str = ""
    items: tuple[KeyToPath, ...] = ()
    default_mode: Int32 = 0o644
    optional: bool = False


class DownwardFile(Struct, frozen=True, kw_only=True):
    """Field of the pod as a file."""

    path: str = ""
    field_ref: FieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    mode: Int32 | None = None


class DownwardVolume(Struct, frozen=True, kw_only=True):
    """Fields of the pod as files."""

    items: tuple[DownwardFile, ...] = ()
    default_mode: Int32 = 0o644


class TokenFile(Struct, frozen=True, kw_only=True):
    """Token of the pod's service account as a file."""

    path: str = ""
    audience: str = ""
    expiration_seconds: Int64 = 3600


class Projection(Struct, frozen=True, kw_only=True):
    """Source of a projected volume."""

    config_map: KeysVolume | None = None
    secret: KeysVolume | None = None
    downward_api: DownwardVolume | None = msgspec.field(default=None, name="downwardAPI")
    service_account_token: TokenFile | None = None


class ProjectedVolume(Struct, frozen=True, kw_only=True):
    """Files of several sources in one directory."""

    sources: tuple[Projection, ...] = ()
    default_mode: Int32 = 0o644


class Volume(Struct, frozen=True, kw_only=True):
    """Volume of a pod. A volume of a kind that agents do not serve has none of these sources."""

    name: str = ""
    empty_dir: EmptyDirVolume | None = None
    host_path: HostPathVolume | None = None
    config_map: KeysVolume | None = None
    secret: SecretVolume | None = None
    downward_api: DownwardVolume | None = msgspec.field(default=None, name="downwardAPI")
    projected: ProjectedVolume | None = None
    persistent_volume_claim: ClaimVolume | None = None
