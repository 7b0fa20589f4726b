"""Answers of a driver's webhook to admission reviews. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from drachma import errors
from drachma.driver import opaqueconfig
from drachma.driver.claim import ConfigSource
from drachma.driver.driver import Driver

API_VERSION: Final = "admission.k8s.io/v1"
_GROUP_VERSION: Final = "resource.k8s.io/v1"

Document = Mapping[str, Any]

_PATHS: Final = {
    "ResourceClaim": (("spec", "devices", "config"), ConfigSource.CLAIM),
    "ResourceClaimTemplate": (("spec", "spec", "devices", "config"), ConfigSource.CLAIM),
    "DeviceClass": (("spec", "config"), ConfigSource.CLASS),
}
"""Where each kind has configuration, and who wrote it."""


def answer(driver: type[Driver], review: Any) -> Document:
    """Return the AdmissionReview that answers another one.

    Raises:
        errors.DecodeError: it is not a review of a claim, a template or a class of resource.k8s.io/v1.
    """
    request = _request(review)
    problems = list(_problems(driver, request))
    response: dict[str, Any] = {"uid": request.get("uid", ""), "allowed": not problems}
    if problems:
        response["status"] = {"code": 422, "reason": "Invalid", "message": "; ".join(problems)}
    return {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}


def _problems(driver: type[Driver], request: Document) -> Iterator[str]:
    """Yield a message for each entry that is invalid. Entries that an update leaves alone are not checked again."""
    path, source = _PATHS[request["object"]["kind"]]
    before = [entry for _, entry in _entries(request.get("oldObject"), path)]
    for number, entry in _entries(request["object"], path):
        opaque = entry.get("opaque")
        if entry in before or not isinstance(opaque, Mapping) or opaque.get("driver") != driver.name:
            continue
        place = f"{'.'.join(path)}[{number}].opaque.parameters"
        try:
            opaqueconfig.convert(opaque.get("parameters"), driver.config, driver=driver.name, source=source)
        except errors.DriverError as error:
            yield f"{place}: {str(error).removeprefix('parameters: ')}"


def _entries(document: Any, path: tuple[str, ...]) -> list[tuple[int, Document]]:
    for name in path:
        document = document.get(name) if isinstance(document, Mapping) else None
    entries = document if isinstance(document, list) else []
    return [(number, entry) for number, entry in enumerate(entries) if isinstance(entry, Mapping)]


def _request(review: Any) -> Document:
    request = review.get("request") if isinstance(review, Mapping) else None
    if not isinstance(request, Mapping) or review.get("apiVersion") != API_VERSION:
        raise errors.DecodeError(f"expected an AdmissionReview of {API_VERSION} with a request")
    document = request.get("object")
    if not isinstance(document, Mapping) or document.get("apiVersion") != _GROUP_VERSION:
        raise errors.DecodeError(f"request.object: expected an object of {_GROUP_VERSION}")
    if document.get("kind") not in _PATHS:
        raise errors.DecodeError(f"request.object: kind {document.get('kind')!r}: expected {', '.join(_PATHS)}")
    return request
