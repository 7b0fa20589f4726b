"""Request bodies: from bytes to a document of the kind of the path.

Upstream's 400s refuse bodies that are not JSON or YAML, documents of another kind or version, values of the wrong type,
and, under ``fieldValidation=Strict``, unknown or repeated fields (under ``Warn`` these become warnings).
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from drachma import errors
from drachma.api import codec, meta
from drachma.api.types import model
from drachma.claims import podsources
from drachma.server import mediatypes, status
from drachma.server.calls import options
from drachma.server.decoding import jsonsyntax, protobuf, yamlsyntax
from drachma.server.schema import decodeerrors, unknownfields
from drachma.server.surface import apisurface, resources
from drachma.validation import fielderror
from drachma.validation.path import Path
from drachma.values import quotation

SCHEME: Final = "pkg/api/legacyscheme/scheme.go:30"
"""Upstream's name for its table of kinds, which its messages contain."""

_TYPE_META: Final = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
)
_SUMMARY: Final = 30
_FIRST_ALPHA: Final = ("resource.k8s.io/v1alpha2", "ResourceClaim")
NO_TYPE: Final = "couldn't get version/kind"
"""Upstream's message about a body whose apiVersion and kind cannot be read."""

_StructT = TypeVar("_StructT", bound=msgspec.Struct)


class Target(NamedTuple):
    """Expected kind and version of a body. ``surface`` has all other kinds."""

    surface: apisurface.ApiSurface
    resource: resources.Resource
    kind: str
    api_version: str
    schema: model.Object


class Decoded(NamedTuple):
    """Document of a client with apiVersion and kind set, and the problems that strict validation refuses."""

    document: dict[str, Any]
    problems: Sequence[str]


def target(surface: apisurface.ApiSurface, resource: resources.Resource, *, version: str) -> Target:
    """Return the target of a write to the resource itself or its status."""
    return Target(surface, resource, resource.kind, resource.api_version(version), resource.schema(version))


def target_below(surface: apisurface.ApiSurface, resource: resources.Resource, below: resources.Subresource) -> Target:
    """Return the target of a write to a subresource that has a kind of its own."""
    assert below.schema is not None, "every kind has a schema"
    return Target(surface, resource, below.kind, below.api_version, below.schema)


def read(
    data: bytes,
    media_type: str,
    *,
    body_target: Target,
    validation: options.FieldValidation,
    also: Sequence[str] = (),
) -> Decoded:
    """Read the document in a body. Its kind and apiVersion must be those of the path, or ``also`` accepted here."""
    is_checked = validation != "Ignore"
    problems: Sequence[str] = ()
    if media_type == mediatypes.YAML:
        document, problems = _read_yaml(data, body_target)
    elif media_type == mediatypes.PROTOBUF:
        document = _read_protobuf(data, body_target)
    else:
        document, problems = _read_json(data, body_target, is_checked=is_checked)
    if document.get("apiVersion") in also:
        document["apiVersion"] = body_target.api_version
    _check_type(document, body_target, data)
    if has_sources(data, body_target.surface, body_target.resource):
        document = podsources.lift_sources(document)
    if is_checked:
        unknown = unknownfields.unknown_fields(document, body_target.schema)
        problems = [*unknown, *problems]
        return Decoded(document, problems)
    return Decoded(document, ())


def has_sources(data: bytes, surface: apisurface.ApiSurface, resource: resources.Resource) -> bool:
    """Return True if a body may have pods in the form of v1alpha2: where that is served, for upstream's kinds."""
    is_possible = b"resourceClaims" in data and b"source" in data and not resource.traits.is_custom
    return is_possible and surface.find_kind(*_FIRST_ALPHA) is not None


def enforce(decoded: Decoded, *, body_target: Target, validation: options.FieldValidation) -> Sequence[str]:
    """Return the warnings about a document; under Strict raise a 400 instead. Call it after the document is decoded."""
    if decoded.problems and validation == "Strict":
        raise unfit(body_target, f"strict decoding error: {', '.join(decoded.problems)}")
    return decoded.problems


def decode(document: dict[str, Any], types: model.Object) -> meta.Object:
    """Return the object in its v1 form; a DecodeError names the first value of a wrong type, in Go's words."""
    try:
        return codec.decode(document)
    except errors.DecodeError as error:
        problem = decodeerrors.explain(document, types)
        raise errors.DecodeError(problem or str(error)) from None


def checked(document: dict[str, Any], types: model.Object) -> dict[str, Any]:
    """Return the document if its values have the types of a schema; otherwise raise a DecodeError in Go's words."""
    problem = decodeerrors.explain(document, types)
    if problem:
        raise errors.DecodeError(problem)
    return document


def convert(document: dict[str, Any], model: type[_StructT]) -> _StructT:
    """Convert a document to a struct; a DecodeError says which value does not fit."""
    try:
        return msgspec.convert(document, model)
    except msgspec.ValidationError as error:
        raise errors.DecodeError(str(error)) from None


def unfit(body_target: Target, problem: str) -> status.StatusError:
    """Return the 400 for a document that cannot be handled as its kind."""
    return status.unfit(body_target.kind, body_target.api_version.rpartition("/")[2], problem)


def not_an_object(value: Any) -> str:
    """Return Go's message about a body that is not an object."""
    return f"json: cannot unmarshal {decodeerrors.describe(value)} into Go value of type {_TYPE_META}"


def not_text(value: Any, field: str) -> str:
    """Return Go's message about an apiVersion or kind that is not a string."""
    return f"json: cannot unmarshal {decodeerrors.describe(value)} into Go struct field .{field} of type string"


def _read_json(data: bytes, body_target: Target, *, is_checked: bool) -> tuple[dict[str, Any], list[str]]:
    try:
        document = jsonsyntax.read(data)
    except errors.DecodeError as error:
        raise _unrecognized_error(data, body_target, f"{NO_TYPE}; json parse error: {error}") from None
    if not isinstance(document, dict):
        if document is None:
            # Go reads null as an object without fields.
            return {}, []
        raise _unrecognized_error(data, body_target, f"{NO_TYPE}; json parse error: {not_an_object(document)}")
    problems: list[str] = []
    if is_checked and jsonsyntax.may_repeat_keys(data, document):
        problems = [f"duplicate field {quotation.quote(path)}" for path in jsonsyntax.repeated_keys(data)]
    return document, problems


def _read_protobuf(data: bytes, body_target: Target) -> dict[str, Any]:
    try:
        return protobuf.decode(data, body_target.surface.schema)
    except errors.DecodeError as error:
        raise _unrecognized_error(data, body_target, str(error)) from None


def _read_yaml(data: bytes, body_target: Target) -> tuple[dict[str, Any], Sequence[str]]:
    try:
        content, problems = yamlsyntax.read(data)
    except errors.DecodeError as error:
        raise _unrecognized_error(data, body_target, f"yaml: {error}") from None
    if not isinstance(content, dict):
        raise _unrecognized_error(data, body_target, f"{NO_TYPE}; json parse error: {not_an_object(content)}")
    return content, problems


def _check_type(document: dict[str, Any], body_target: Target, data: bytes) -> None:
    """Set missing apiVersion and kind, and refuse wrong ones."""
    if document.get("apiVersion") == body_target.api_version and document.get("kind") == body_target.kind:
        return
    for field in ("apiVersion", "kind"):
        value = document.get(field)
        if value is not None and not isinstance(value, str):
            raise _unrecognized_error(data, body_target, f"{NO_TYPE}; json parse error: {not_text(value, field)}")
    api_version = document.get("apiVersion") or body_target.api_version
    if body_target.resource.traits.is_custom and not document.get("kind"):
        raise _unrecognized_error(data, body_target, f"Object 'Kind' is missing in '{data.decode(errors='replace')}'")
    kind = document.get("kind") or body_target.kind
    if api_version.count("/") > 1:
        raise _unrecognized_error(data, body_target, f"unexpected GroupVersion string: {api_version}")
    if kind != body_target.kind or api_version != body_target.api_version:
        _refuse_type(api_version, kind, body_target, name=_name(document))
    document["apiVersion"], document["kind"] = api_version, kind


def _name(document: dict[str, Any]) -> str:
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else ""
    return name if isinstance(name, str) else ""


def _refuse_type(api_version: str, kind: str, body_target: Target, *, name: str) -> None:
    version = api_version.rpartition("/")[2]
    actual = body_target.surface.find_kind(api_version, kind)
    if body_target.resource.traits.is_custom and api_version == body_target.api_version:
        # Upstream decodes objects of custom kinds by their own kind, and checks it afterwards.
        causes = [fielderror.invalid(Path("kind"), kind, f"must be {body_target.kind}")]
        raise status.invalid(kind, name, group=body_target.resource.group, causes=causes)
    if actual is None and not body_target.resource.traits.is_custom:
        problem = f'no kind "{kind}" is registered for version "{api_version}" in scheme "{SCHEME}"'
    elif body_target.resource.traits.is_custom or (actual is body_target.resource and kind == body_target.kind):
        mismatch = f"does not match the expected API version ({body_target.api_version})"
        raise status.bad_request(f"the API version in the data ({api_version}) {mismatch}")
    else:
        problem = f"converting ({version}.{kind}) to ({_package(body_target)}.{body_target.kind}): unknown conversion"
    raise status.bad_request(f'{kind} in version "{version}" cannot be handled as a {body_target.kind}: {problem}')


def _package(body_target: Target) -> str:
    """Return Go's package of the internal types of a group."""
    return body_target.resource.group.partition(".")[0] or "core"


def _unrecognized_error(data: bytes, body_target: Target, problem: str) -> status.StatusError:
    summary = _summarize(data)
    return status.bad_request(
        f"the object provided is unrecognized (must be of type {body_target.kind}): {problem} ({summary})"
    )


def _summarize(data: bytes) -> str:
    if not data:
        return "<empty>"
    more = " ..." if len(data) > _SUMMARY else ""
    if data[:1] == b"{":
        return data[:_SUMMARY].decode(errors="replace") + more
    return data[:_SUMMARY].hex() + more
