"""The files of a prepared claim: what container runtimes need, and what containers can read about their devices.

There is one CDI file for all devices of a claim, and, where the driver wants it, for each request a file of metadata
(:mod:`drachma.driver.preparing.metadatafiles`) with a CDI file that mounts it. All are named after the claim, so that
nothing has to be remembered to find them again.
"""

from __future__ import annotations

import hashlib
import pathlib
from collections.abc import Iterable, Mapping
from typing import Final

from drachma import errors
from drachma.driver.claim import AllocatedDevice, Claim
from drachma.driver.edits import DeviceMetadata, Edits, Prepared
from drachma.driver.plugin.contract import ClaimReference, PreparedDevice
from drachma.driver.preparing import metadatafiles
from drachma.nodewire import wholefile
from drachma.nodewire.cdi import files, names, spec

_CLASS: Final = "claim"
_ANY: Final = ""
"""Marker instead of a digest, for a file that may be rewritten while it is in use."""


class ClaimFiles:
    """The files of one driver."""

    def __init__(self, driver: str, *, cdi: pathlib.Path, data: pathlib.Path, has_metadata: bool) -> None:
        self._driver: Final = driver
        self._cdi: Final = cdi
        self._metadata: Final = metadatafiles.MetadataFiles(driver, cdi=cdi, data=data)
        self._has_metadata: Final = has_metadata

    def write(
        self, claim: Claim, answers: Mapping[AllocatedDevice, Edits | Prepared]
    ) -> tuple[tuple[PreparedDevice, ...], dict[str, str]]:
        """Write all files of a claim. Return the devices for node agents, and digests of files by path.

        Raises:
            errors.InvalidValueError: edits cannot be written as CDI.
            OSError: a file cannot be written.
        """
        results = {device: _prepared(answers[device]) if device in answers else Prepared() for device in claim.devices}
        kind = f"{self._driver}/{_CLASS}"
        ids: dict[AllocatedDevice, list[str]] = {}
        described = []
        for number, (device, result) in enumerate(results.items()):
            ids[device] = []
            if result.edits != spec.NO_EDITS:
                # A name that begins with a letter can be said in the oldest version of the interface.
                name = f"claim-{claim.uid}-{number}"
                described.append(spec.Device(name=name, container_edits=result.edits))
                ids[device].append(str(names.QualifiedName(self._driver, _CLASS, name)))
        content: dict[pathlib.Path, bytes] = {}
        digests: dict[str, str] = {}
        if described:
            content[self._claim_path(claim.uid)] = files.encode(spec.Spec(kind=kind, devices=tuple(described)))
        if self._has_metadata:
            for request in self._metadata.compose(claim, results):
                content[request.cdi_path] = request.cdi_text
                ids[request.bearer].append(request.cdi_id)
                metadatafiles.write(request.path, request.text)
                digests[str(request.path)] = _ANY
        for path, text in content.items():
            # After a crash of the machine nothing counts as prepared, and all files are written again.
            wholefile.write(path, text, durability=wholefile.Durability.PROCESS)
            digests[str(path)] = _digest(text)
        prepared = tuple(
            PreparedDevice(
                requests=(device.request,),
                pool=device.pool,
                device=device.name,
                cdi_device_ids=tuple(ids[device]),
                share_id=device.share_id,
            )
            for device in claim.devices
        )
        return prepared, digests

    def are_there(self, digests: Mapping[str, str]) -> bool:
        """Return True if files are as they were written, or, where that may change, whether they are there."""
        return all(_is_there(pathlib.Path(path), digest) for path, digest in digests.items())

    def update_metadata(self, reference: ClaimReference, request: str, devices: Iterable[DeviceMetadata]) -> None:
        """Tells containers something else about devices of a request.

        Raises:
            errors.DriverError: the driver tells nothing about devices, the request is not prepared, or it has no such
                device.
            OSError: the file cannot be written.
        """
        if not self._has_metadata:
            raise errors.DriverError(f"driver {self._driver}: writes_metadata is not set: containers are told nothing")
        self._metadata.update(reference, request, devices)

    def remove(self, reference: ClaimReference) -> None:
        """Removes all files of a claim that are there.

        Raises:
            errors.DriverError: no claim can have such a name; it would lead to files of others.
        """
        if any(letter in part for part in reference for letter in "/\0"):
            raise errors.DriverError(f"claim {reference}, uid {reference.uid!r}: has no files: names have no '/'")
        files.remove(self._claim_path(reference.uid))
        self._metadata.remove(reference)

    def _claim_path(self, uid: str) -> pathlib.Path:
        return self._cdi / files.file_name(f"{self._driver}/{_CLASS}", transient=uid)


def _prepared(answer: Edits | Prepared) -> Prepared:
    return answer if isinstance(answer, Prepared) else Prepared(edits=answer)


def _is_there(path: pathlib.Path, digest: str) -> bool:
    if digest == _ANY:
        return metadatafiles.is_whole(path)
    try:
        return _digest(path.read_bytes()) == digest
    except OSError:
        return False


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
