"""Rules for requests for certificates."""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final

from drachma.validation import fielderror, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, STATUS

_USAGES: Final = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip
_SHORTEST: Final = 600
_REQUEST: Final = re.compile(
    rb"-----BEGIN (?:NEW )?CERTIFICATE REQUEST-----.+-----END (?:NEW )?CERTIFICATE REQUEST-----", re.DOTALL
)
_SIGNER: Final = re.compile(r"[a-z0-9.-]+\.[a-z0-9.-]+/[A-Za-z0-9.:_-]+")
_ONE_OF_TWO: Final = ("Approved", "Denied")


def check(spec: Mapping[str, Any]) -> Errors:
    """The spec of a request."""
    if not _REQUEST.search(_decoded(spec.get("request", ""))):
        shown = rendering.wire(spec.get("request", ""))
        yield fielderror.invalid(SPEC.child("request"), shown, "PEM block type must be CERTIFICATE REQUEST")
    usages, at = spec.get("usages") or (), SPEC.child("usages")
    if not usages:
        yield fielderror.required(at)
    seen: set[str] = set()
    for position, usage in enumerate(usages):
        if usage not in _USAGES:
            yield fielderror.not_supported(at.item(position), rendering.named(usage), _USAGES)
        if usage in seen:
            yield fielderror.duplicate(at.item(position), rendering.named(usage))
        seen.add(usage)
    signer = spec.get("signerName", "")
    if not signer:
        yield fielderror.required(SPEC.child("signerName"))
    elif not _SIGNER.fullmatch(signer):
        detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        yield fielderror.invalid(SPEC.child("signerName"), signer, detail)
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < _SHORTEST:
        detail = "may not specify a duration less than 600 seconds (10 minutes)"
        yield fielderror.invalid(SPEC.child("expirationSeconds"), seconds, detail)


def check_status(status: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """What has become of a request; who has approved or denied one cannot take that back."""
    at = STATUS.child("conditions")
    conditions = status.get("conditions") or ()
    seen: set[str] = set()
    for position, condition in enumerate(conditions):
        word = condition.get("type", "")
        if not word:
            yield fielderror.required(at.item(position).child("type"))
        if word in (*_ONE_OF_TWO, "Failed") and condition.get("status") != "True":
            shown = rendering.named(condition.get("status") or "")
            yield fielderror.not_supported(at.item(position).child("status"), shown, ("True",))
        other = next((each for each in _ONE_OF_TWO if word in _ONE_OF_TWO and each != word), None)
        if other in seen:
            detail = "Approved and Denied conditions are mutually exclusive"
            yield fielderror.invalid(at.item(position).child("type"), rendering.named(word), detail)
        if word in seen:
            yield fielderror.duplicate(at.item(position).child("type"), rendering.named(word))
        seen.add(word)
    for condition in old.get("conditions") or ():
        if condition.get("type") in (*_ONE_OF_TWO, "Failed") and condition.get("type") not in seen:
            detail = f"updates may not remove a condition of type {rendering.named(condition['type'])}"
            yield fielderror.forbidden(at, detail)
    if old.get("certificate") and status.get("certificate") != old["certificate"]:
        yield fielderror.forbidden(STATUS.child("certificate"), "updates may not set certificate content to another")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
