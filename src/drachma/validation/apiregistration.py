"""Rules for APIService."""

import base64
import binascii
from typing import Final

from drachma.validation import constraints, fielderror, kindrules, rulenotation
from drachma.validation.fielderror import Errors
from drachma.validation.path import METADATA, Document, Path
from drachma.values import names, quotation

_GROUP_WITHOUT_NAME: Final = "only v1 may have an empty group and it better be legacy kube"

_version: Final = constraints.text(names.dns1035_label)
_priority_of_group: Final = constraints.between(1, 20_000, "must be positive and less than 20000")
_priority_of_version: Final = constraints.between(1, 1_000, "must be positive and less than 1000")
_service_port: Final = constraints.between(1, 65_535, "port is not valid: must be between 1 and 65535, inclusive")


def _check_name(content: Document, at: Path, metadata: Document) -> Errors:
    spec = content.get("spec") or {}
    want, name = f"{spec.get('version', '')}.{spec.get('group', '')}", metadata.get("name", "")
    if name and not names.path_segment_name(name) and name != want:
        detail = f'must be `spec.version+"."+spec.group`: {quotation.quote(want)}'
        yield fielderror.invalid(METADATA.child("name"), name, detail)


def _check_group(spec: Document, at: Path) -> Errors:
    group = spec.get("group", "")
    if not group and spec.get("version") != "v1":
        yield fielderror.required(at.child("group"), _GROUP_WITHOUT_NAME)
    if group:
        for problem in names.dns1123_subdomain(group):
            yield fielderror.invalid(at.child("group"), group, problem)


def _check_trust(spec: Document, at: Path) -> Errors:
    """Check who vouches for the server: a local group needs no authority, and another either one or none."""
    bundle, is_insecure = spec.get("caBundle") or "", bool(spec.get("insecureSkipTLSVerify"))
    if spec.get("service") is not None:
        if is_insecure and bundle:
            detail = "may not be true if caBundle is present"
            yield fielderror.invalid(at.child("insecureSkipTLSVerify"), is_insecure, detail)
        return
    if bundle:
        detail = "local APIServices may not have a caBundle"
        yield fielderror.invalid(at.child("caBundle"), f"{_size(bundle)} bytes", detail)
    if is_insecure:
        detail = "local APIServices may not have insecureSkipTLSVerify"
        yield fielderror.invalid(at.child("insecureSkipTLSVerify"), is_insecure, detail)


def _size(text: str) -> int:
    try:
        return len(base64.b64decode(text))
    except binascii.Error:
        return len(text)


KINDS: Final = kindrules.read(rulenotation.load("apiregistration", globals()))
