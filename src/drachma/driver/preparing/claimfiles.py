"""The files of a prepared claim: what container runtimes need, and what containers can read about their devices.

There is one CDI file for all devices of a claim, and, where the driver wants it, for each request a file of metadata
(KEP-5304) with a CDI file that mounts it. All are named after the claim's uid, so that nothing has to be remembered to
find them again.
"""

from __future__ import annotations

import hashlib
import pathlib
import shutil
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from drachma.driver import devices
from drachma.driver.claim import AllocatedDevice, Claim
from drachma.driver.edits import Edits, Prepared
from drachma.driver.plugin.contract import ClaimReference, PreparedDevice
from drachma.nodewire import wholefile
from drachma.nodewire.cdi import files, names, spec

_CLASS: Final = "claim"
_METADATA_CLASS: Final = "metadata"
_METADATA_FOLDER: Final = "dra-device-metadata"
_METADATA_VERSIONS: Final = ("metadata.resource.k8s.io/v1beta1", "metadata.resource.k8s.io/v1alpha1")
_CONTAINER_FOLDER: Final = pathlib.PurePosixPath("/var/run/kubernetes.io/dra-device-attributes")
_POD_CLAIM: Final = "resource.kubernetes.io/pod-claim-name"


class ClaimFiles:
    """The files of one driver."""

    def __init__(self, driver: str, *, cdi: pathlib.Path, data: pathlib.Path, has_metadata: bool) -> None:
        self._driver: Final = driver
        self._cdi: Final = cdi
        self._data: Final = data
        self._has_metadata: Final = has_metadata

    def write(
        self, claim: Claim, answers: Mapping[AllocatedDevice, Edits | Prepared]
    ) -> tuple[tuple[PreparedDevice, ...], dict[str, str]]:
        """Writes all files of a claim; the devices as node agents hear of them, and digests of files by path.

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
        if described:
            content[self._claim_path(claim.uid)] = files.encode(spec.Spec(kind=kind, devices=tuple(described)))
        if self._has_metadata:
            self._describe(claim, results, ids, content)
        for path, text in content.items():
            wholefile.write(path, text)
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
        return prepared, {str(path): _digest(text) for path, text in content.items()}

    def are_there(self, digests: Mapping[str, str]) -> bool:
        """Whether files are as they were written."""
        try:
            return all(_digest(pathlib.Path(path).read_bytes()) == digest for path, digest in digests.items())
        except OSError:
            return False

    def remove(self, reference: ClaimReference) -> None:
        """Removes all files of a claim that are there."""
        files.remove(self._claim_path(reference.uid))
        for path in self._cdi.glob(f"{self._driver}_{_METADATA_CLASS}_{reference.uid}_*.json"):
            files.remove(path)
        shutil.rmtree(self._metadata_folder(reference), ignore_errors=True)

    def _claim_path(self, uid: str) -> pathlib.Path:
        return self._cdi / files.file_name(f"{self._driver}/{_CLASS}", transient=uid)

    # Metadata

    def _metadata_folder(self, reference: ClaimReference) -> pathlib.Path:
        return self._data / _METADATA_FOLDER / f"{reference.namespace}_{reference.name}"

    def _describe(
        self,
        claim: Claim,
        results: Mapping[AllocatedDevice, Prepared],
        ids: Mapping[AllocatedDevice, list[str]],
        content: dict[pathlib.Path, bytes],
    ) -> None:
        """Adds what is told about the devices of each request; its first device brings the file into containers."""
        by_request: dict[str, list[AllocatedDevice]] = {}
        for device in claim.devices:
            by_request.setdefault(device.request.partition("/")[0], []).append(device)
        for request, own in by_request.items():
            path = self._metadata_folder(claim.reference) / request / "metadata.json"
            content[path] = self._metadata(claim, own, results)
            name = f"{claim.uid}_{request}"
            mount = spec.Mount(
                host_path=str(path),
                container_path=str(self._container_path(claim, request)),
                options=("ro", "bind"),
            )
            mounting = spec.Device(name=name, container_edits=Edits(mounts=(mount,)))
            cdi_path = self._cdi / f"{self._driver}_{_METADATA_CLASS}_{claim.uid}_{request}.json"
            content[cdi_path] = files.encode(spec.Spec(kind=f"{self._driver}/{_METADATA_CLASS}", devices=(mounting,)))
            ids[own[0]].append(str(names.QualifiedName(self._driver, _METADATA_CLASS, name)))

    def _container_path(self, claim: Claim, request: str) -> pathlib.PurePosixPath:
        pod_claim = claim.document.metadata.annotations.get(_POD_CLAIM)
        place = ("resourceclaimtemplates", pod_claim) if pod_claim else ("resourceclaims", claim.reference.name)
        return _CONTAINER_FOLDER.joinpath(*place, request, f"{self._driver}-metadata.json")

    def _metadata(
        self, claim: Claim, own: Iterable[AllocatedDevice], results: Mapping[AllocatedDevice, Prepared]
    ) -> bytes:
        """The same in all versions, the newest first: readers take the first that they know."""
        own = list(own)
        body: dict[str, Any] = {
            "kind": "DeviceMetadata",
            "metadata": {
                "name": claim.reference.name,
                "namespace": claim.reference.namespace,
                "uid": claim.uid,
                "generation": 1,
            },
        }
        if pod_claim := claim.document.metadata.annotations.get(_POD_CLAIM):
            body["podClaimName"] = pod_claim
        described = [self._described(device, results[device]) for device in own]
        body["requests"] = [{"name": own[0].request, "devices": described}]
        return b"".join(
            msgspec.json.format(msgspec.json.encode({"apiVersion": version, **body})) + b"\n"
            for version in _METADATA_VERSIONS
        )

    def _described(self, device: AllocatedDevice, result: Prepared) -> dict[str, Any]:
        described: dict[str, Any] = {"driver": self._driver, "pool": device.pool, "name": device.name}
        if result.attributes:
            described["attributes"] = msgspec.to_builtins(
                {name: devices.attribute(value) for name, value in result.attributes.items()}
            )
        if result.network_data is not None:
            described["networkData"] = dict(result.network_data)
        return described


def _prepared(answer: Edits | Prepared) -> Prepared:
    return answer if isinstance(answer, Prepared) else Prepared(edits=answer)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
