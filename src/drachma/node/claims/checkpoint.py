"""Checkpoint of prepared claims across restarts, in the kubelet's format.

A kubelet can continue from an agent's checkpoint and the other way round. A kubelet refuses to start with a damaged
checkpoint. An agent puts it aside and rebuilds the records from the pods.
"""

from __future__ import annotations

import itertools
import pathlib
import zlib
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.node.claims.preparedclaims import Device, DriverState, Key, PreparedClaim, PreparedClaims
from drachma.nodewire import regularfile, wholefile

NAME: Final = "dra_manager_state"
API_VERSION: Final = "checkpoint.dra.kubelet.k8s.io/v1"
_KIND: Final = "DRACheckpoint"
_SIZE_LIMIT: Final = 64 * 1024 * 1024


class _Device(msgspec.Struct):
    pool: str = msgspec.field(name="PoolName", default="")
    device: str = msgspec.field(name="DeviceName", default="")
    share: str | None = msgspec.field(name="ShareID", default=None)
    requests: tuple[str, ...] | None = msgspec.field(name="RequestNames", default=None)
    cdi: tuple[str, ...] | None = msgspec.field(name="CDIDeviceIDs", default=None)


class _Driver(msgspec.Struct):
    devices: list[_Device] | None = msgspec.field(name="Devices", default=None)
    skips: tuple[str, ...] = msgspec.field(name="skipNodeOperations", default=())


class _Claim(msgspec.Struct):
    uid: str = msgspec.field(name="ClaimUID", default="")
    name: str = msgspec.field(name="ClaimName", default="")
    namespace: str = msgspec.field(name="Namespace", default="")
    pods: dict[str, Any] | None = msgspec.field(name="PodUIDs", default=None)
    drivers: dict[str, _Driver] | None = msgspec.field(name="DriverState", default=None)


class _Data(msgspec.Struct):
    kind: str = ""
    api_version: str = msgspec.field(name="apiVersion", default="")
    claims: list[_Claim] | None = msgspec.field(name="ClaimInfoStateList", default=None)


class _File(msgspec.Struct):
    data: str = msgspec.field(name="Data")
    checksum: int = msgspec.field(name="Checksum")


def encode(claims: PreparedClaims | None) -> bytes:
    """Return the content of the file. None gives the content of an agent that has never had a claim."""
    entries = None if claims is None else [_entry(record) for record in claims]
    data = _json({"kind": _KIND, "apiVersion": API_VERSION, "ClaimInfoStateList": entries})
    return _json({"Data": data.decode(), "Checksum": zlib.crc32(data)})


def decode(content: bytes) -> PreparedClaims:
    """Return the claims in a file. All of them count as not prepared.

    Raises:
        errors.DecodeError: the file is damaged, or its format is unknown.
    """
    try:
        file = msgspec.json.decode(content, type=_File)
        data = msgspec.json.decode(file.data, type=_Data)
    except msgspec.DecodeError as error:
        raise errors.DecodeError(f"not a checkpoint: {error}") from None
    if zlib.crc32(file.data.encode()) != file.checksum:
        raise errors.DecodeError("checkpoint is corrupted: its checksum does not fit")
    if (data.kind, data.api_version) != (_KIND, API_VERSION):
        raise errors.DecodeError(f"unsupported checkpoint: {data.kind or '-'} of {data.api_version or '-'}")
    return PreparedClaims(_record(entry) for entry in data.claims or ())


class Checkpoint:
    """Checkpoint file in the directory of an agent."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.path: Final = directory / NAME

    def load(self) -> tuple[PreparedClaims, str]:
        """Return the stored claims. A damaged file is put aside, and the returned text describes the damage."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            content = regularfile.read(self.path, _SIZE_LIMIT + 1, follows_links=False)
            if len(content) > _SIZE_LIMIT:
                raise errors.DecodeError(f"not a checkpoint: larger than {_SIZE_LIMIT} bytes")
            return decode(content), ""
        except FileNotFoundError:
            self._write(encode(None))
            return PreparedClaims(), ""
        except (errors.DecodeError, regularfile.NotRegularError) as error:
            aside = self._put_aside()
            self._write(encode(None))
            return (
                PreparedClaims(),
                f"{self.path}: {error.strerror if isinstance(error, OSError) else error}; put aside as {aside.name}",
            )

    def save(self, claims: PreparedClaims) -> None:
        """Write all claims. After a crash the file has either the old content or the new.

        Raises:
            errors.NodeError: the file cannot be written, for example because the disk is full.
        """
        try:
            self._write(encode(claims))
        except OSError as error:
            raise errors.NodeError(f"write checkpoint {self.path}: {error.strerror or error}") from error

    def _put_aside(self) -> pathlib.Path:
        candidates = (self.path.with_name(f"{NAME}.damaged-{number}") for number in itertools.count(1))
        aside = next(path for path in candidates if not path.exists())
        self.path.rename(aside)
        return aside

    def _write(self, content: bytes) -> None:
        wholefile.write(self.path, content, mode=0o600)


def _entry(record: PreparedClaim) -> dict[str, Any]:
    return {
        "ClaimUID": record.uid,
        "ClaimName": record.key.name,
        "Namespace": record.key.namespace,
        "PodUIDs": {uid: {} for uid in sorted(record.pods)},
        "DriverState": {driver: state_entry(record.drivers[driver]) for driver in sorted(record.drivers)},
    }


def state_entry(state: DriverState) -> dict[str, Any]:
    """Return a driver's part in a claim in the format of the file."""
    devices = [
        {
            "PoolName": device.pool_name,
            "DeviceName": device.device_name,
            "ShareID": device.share_id,
            "RequestNames": device.request_names or None,
            "CDIDeviceIDs": device.cdi_device_ids or None,
        }
        for device in state.devices
    ]
    entry: dict[str, Any] = {"Devices": devices or None}
    return {**entry, "skipNodeOperations": state.skips} if state.skips else entry


def _record(entry: _Claim) -> PreparedClaim:
    return PreparedClaim(
        uid=entry.uid,
        key=Key(entry.namespace, entry.name),
        pods=frozenset(entry.pods or ()),
        drivers={driver: _driver_state(state) for driver, state in (entry.drivers or {}).items()},
    )


def _driver_state(state: _Driver) -> DriverState:
    devices = tuple(
        Device(
            pool_name=device.pool,
            device_name=device.device,
            share_id=device.share,
            request_names=device.requests or (),
            cdi_device_ids=device.cdi or (),
        )
        for device in state.devices or ()
    )
    return DriverState(devices, state.skips)


def _json(content: Any) -> bytes:
    """Encode JSON as Go does, with characters escaped that have a meaning in HTML."""
    text = msgspec.json.encode(content).decode()
    for character, code in (("<", "003c"), (">", "003e"), ("&", "0026"), ("\u2028", "2028"), ("\u2029", "2029")):
        text = text.replace(character, f"\\u{code}")
    return text.encode()
