"""Metadata files about the devices of a request (KEP-5304), as upstream's helper writes them.

Each request of a claim has a file on the machine, and a CDI file that mounts it into containers. What devices are like
may be known only when containers exist (the addresses of a network card): then the file is written again, with the next
generation.
"""

from __future__ import annotations

import glob
import json
import pathlib
import shutil
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from drachma import errors
from drachma.driver import devices
from drachma.driver.claim import AllocatedDevice, Claim
from drachma.driver.edits import DeviceMetadata, Edits, Prepared
from drachma.driver.plugin.contract import ClaimReference
from drachma.nodewire.cdi import files, names, spec

_CLASS: Final = "metadata"
_FOLDER: Final = "dra-device-metadata"
_VERSIONS: Final = ("metadata.resource.k8s.io/v1beta1", "metadata.resource.k8s.io/v1alpha1")
_CONTAINER_FOLDER: Final = pathlib.PurePosixPath("/var/run/kubernetes.io/dra-device-attributes")
_POD_CLAIM: Final = "resource.kubernetes.io/pod-claim-name"


class RequestMetadata(NamedTuple):
    """The files of one request, and the CDI device that mounts what they say; ``bearer`` brings it into containers."""

    bearer: AllocatedDevice
    cdi_id: str
    path: pathlib.Path
    text: bytes
    cdi_path: pathlib.Path
    cdi_text: bytes


class MetadataFiles:
    """The files of one driver: below ``data`` those for containers."""

    def __init__(self, driver: str, *, cdi: pathlib.Path, data: pathlib.Path) -> None:
        self._driver: Final = driver
        self._cdi: Final = cdi
        self._data: Final = data

    def compose(self, claim: Claim, results: Mapping[AllocatedDevice, Prepared]) -> list[RequestMetadata]:
        """Return the metadata of each request. The first device of a request carries it."""
        by_request: dict[str, list[AllocatedDevice]] = {}
        for device in claim.devices:
            by_request.setdefault(_base(device.request), []).append(device)
        return [self._request_metadata(claim, request, own, results) for request, own in by_request.items()]

    def _request_metadata(
        self,
        claim: Claim,
        request: str,
        own: Sequence[AllocatedDevice],
        results: Mapping[AllocatedDevice, Prepared],
    ) -> RequestMetadata:
        path = self._path(claim.reference, request)
        pod_claim = claim.document.metadata.annotations.get(_POD_CLAIM)
        place = ("resourceclaimtemplates", pod_claim) if pod_claim else ("resourceclaims", claim.reference.name)
        mount = spec.Mount(
            host_path=str(path),
            container_path=str(_CONTAINER_FOLDER.joinpath(*place, request, f"{self._driver}-metadata.json")),
            options=("ro", "bind"),
        )
        name = f"{claim.uid}_{request}"
        mounting = spec.Device(name=name, container_edits=Edits(mounts=(mount,)))
        body: dict[str, Any] = {
            "kind": "DeviceMetadata",
            "metadata": {
                "name": claim.reference.name,
                "namespace": claim.reference.namespace,
                "uid": claim.uid,
                "generation": 1,
            },
        }
        if pod_claim:
            body["podClaimName"] = pod_claim
        described = [
            self._described(
                device.pool,
                device.name,
                attributes=results[device].attributes,
                network_data=results[device].network_data,
            )
            for device in own
        ]
        body["requests"] = [{"name": own[0].request, "devices": described}]
        return RequestMetadata(
            bearer=own[0],
            cdi_id=str(names.QualifiedName(self._driver, _CLASS, name)),
            path=path,
            text=_encode(body),
            cdi_path=self._cdi / f"{self._driver}_{_CLASS}_{claim.uid}_{request}.json",
            cdi_text=files.encode(spec.Spec(kind=f"{self._driver}/{_CLASS}", devices=(mounting,))),
        )

    def update(self, reference: ClaimReference, request: str, devices: Iterable[DeviceMetadata]) -> None:
        """Tells something else about devices of a request; about its other devices it says what it said.

        Raises:
            errors.DriverError: the request is not prepared, or has no such device.
            OSError: the file cannot be written.
        """
        path = self._path(reference, _base(request))
        subject = f"claim {reference}, request {request!r}"
        try:
            body = _read(path)
        except FileNotFoundError:
            raise errors.DriverError(f"{subject}: nothing is told about it: it is not prepared") from None
        except ValueError as error:
            raise errors.DriverError(f"{subject}: {path}: {error}") from error
        if body["metadata"].get("uid") != reference.uid:
            raise errors.DriverError(f"{subject}: the claim of uid {reference.uid} is not prepared")
        (own,) = body["requests"]
        by_device = {(each["pool"], each["name"]): each for each in own["devices"]}
        for each in devices:
            if (each.pool, each.device) not in by_device:
                raise errors.DriverError(f"{subject}: has no device {each.pool}/{each.device}")
            by_device[each.pool, each.device] = self._described(
                each.pool, each.device, attributes=each.attributes, network_data=each.network_data
            )
        body["metadata"]["generation"] += 1
        body["requests"] = [{"name": own["name"], "devices": list(by_device.values())}]
        write(path, _encode(body))

    def remove(self, reference: ClaimReference) -> None:
        """Removes all files of a claim that are there."""
        for path in self._cdi.glob(f"{self._driver}_{_CLASS}_{glob.escape(reference.uid)}_*.json"):
            files.remove(path)
        shutil.rmtree(self._folder(reference), ignore_errors=True)

    def _folder(self, reference: ClaimReference) -> pathlib.Path:
        return self._data / _FOLDER / f"{reference.namespace}_{reference.name}"

    def _path(self, reference: ClaimReference, request: str) -> pathlib.Path:
        return self._folder(reference) / request / "metadata.json"

    def _described(
        self,
        pool: str,
        name: str,
        *,
        attributes: Mapping[str, bool | int | str],
        network_data: Mapping[str, object] | None,
    ) -> dict[str, Any]:
        described: dict[str, Any] = {"driver": self._driver, "pool": pool, "name": name}
        if attributes:
            described["attributes"] = msgspec.to_builtins(
                {key: devices.attribute(value) for key, value in attributes.items()}
            )
        if network_data is not None:
            described["networkData"] = dict(network_data)
        return described


def write(path: pathlib.Path, text: bytes) -> None:
    """Writes a file in place: containers have it mounted, and would not see one that takes the place of another."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)


def is_whole(path: pathlib.Path) -> bool:
    """Return True if a file is there and can be read; what it says may have changed since it was first written."""
    try:
        _read(path)
    except (OSError, ValueError):
        return False
    return True


def _base(request: str) -> str:
    return request.partition("/")[0]


def _encode(body: Mapping[str, Any]) -> bytes:
    """Encode the metadata in all versions, the newest first. Readers take the first that they know."""
    return b"".join(
        msgspec.json.format(msgspec.json.encode({"apiVersion": version, **body})) + b"\n" for version in _VERSIONS
    )


def _read(path: pathlib.Path) -> dict[str, Any]:
    """Return the newest version in a file. Raises ValueError for a file of another kind."""
    body, _ = json.JSONDecoder().raw_decode(path.read_text(encoding="utf-8"))
    if not isinstance(body, dict) or body.pop("apiVersion", None) != _VERSIONS[0] or "requests" not in body:
        raise ValueError(f"no DeviceMetadata of {_VERSIONS[0]}")
    return body
