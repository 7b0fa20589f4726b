"""Request bodies: from bytes to a document of the kind that the path stands for.

Refused with upstream's 400s: what is not JSON or YAML, a document of another kind or version, values of the wrong
type, and under ``fieldValidation=Strict`` fields that are unknown or written twice (under ``Warn`` these become
warnings).
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from drachma import errors
from drachma.api import codec, meta
from drachma.claims import podsources
from drachma.server import mediatypes, schema, status
from drachma.server.calls import options
from drachma.server.decoding import jsonsyntax, protobuf, yamlsyntax
from drachma.server.schema import decodeerrors, unknownfields
from drachma.server.surface import apisurface, resources
from drachma.validation import fielderror
from drachma.validation.path import Path
from drachma.values import quotation

SCHEME: Final = "pkg/api/legacyscheme/scheme.go:30"
"""Upstream's name for its table of kinds, which its messages mention."""

_TYPE_META: Final = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
)
_SUMMARY: Final = 30
_FIRST_ALPHA: Final = ("resource.k8s.io/v1alpha2", "ResourceClaim")
NO_TYPE: Final = "couldn't get version/kind"
"""What upstream says of a body whose apiVersion and kind cannot be read."""

_StructT = TypeVar("_StructT", bound=msgspec.Struct)


class Target(NamedTuple):
    """What a body must be: the kind, and the version of the path. ``surface`` knows what else there is."""

    surface: apisurface.ApiSurface
    resource: resources.Resource
    kind: str
    api_version: str
    schema: schema.Object


class Given(NamedTuple):
    """A document as the client sent it, with apiVersion and kind filled in, and what strictness has against it."""

    document: dict[str, Any]
    problems: Sequence[str]


def target(surface: apisurface.ApiSurface, resource: resources.Resource, *, version: str) -> Target:
    """The target of a write to the resource itself or its status."""
    return Target(surface, resource, resource.kind, resource.api_version(version), resource.schema(version))


def target_below(surface: apisurface.ApiSurface, resource: resources.Resource, below: resources.Subresource) -> Target:
    """The target of a write to a subresource that has a kind of its own."""
    assert below.schema is not None, "a kind has a type"
    return Target(surface, resource, below.kind, below.api_version, below.schema)


def read(
    data: bytes,
    media_type: str,
    *,
    wanted: Target,
    validation: options.FieldValidation,
    also: Sequence[str] = (),
) -> Given:
    """The document in a body, once its apiVersion (or one ``also`` read here) and kind are what the path stands for."""
    is_checked = validation != "Ignore"
    problems: Sequence[str] = ()
    if media_type == mediatypes.YAML:
        document, problems = _read_yaml(data, wanted)
    elif media_type == mediatypes.PROTOBUF:
        document = _read_protobuf(data, wanted)
    else:
        document, problems = _read_json(data, wanted, is_checked=is_checked)
    if document.get("apiVersion") in also:
        document["apiVersion"] = wanted.api_version
    _check_type(document, wanted, data)
    if has_sources(data, wanted.surface, wanted.resource):
        document = podsources.lifted(document)
    if is_checked:
        unknown = unknownfields.unknown_fields(document, wanted.schema)
        problems = [*unknown, *problems]
        return Given(document, problems)
    return Given(document, ())


def has_sources(data: bytes, surface: apisurface.ApiSurface, resource: resources.Resource) -> bool:
    """Whether a body may have pods of the time of v1alpha2: where that is served, and in upstream's kinds."""
    is_possible = b"resourceClaims" in data and b"source" in data and not resource.traits.is_custom
    return is_possible and surface.of_kind(*_FIRST_ALPHA) is not None


def enforce(given: Given, *, wanted: Target, validation: options.FieldValidation) -> Sequence[str]:
    """The warnings that a document earns; under Strict a 400 in their place. To be called once it is decoded."""
    if given.problems and validation == "Strict":
        raise unfit(wanted, f"strict decoding error: {', '.join(given.problems)}")
    return given.problems


def decode(document: dict[str, Any], types: schema.Object) -> meta.Object:
    """The object in its v1 form; a DecodeError names the first value of a wrong type, in Go's words."""
    try:
        return codec.decode(document)
    except errors.DecodeError as error:
        problem = decodeerrors.explain(document, types)
        raise errors.DecodeError(problem or str(error)) from None


def checked(document: dict[str, Any], types: schema.Object) -> dict[str, Any]:
    """The same document, if its values have the types of a schema; else a DecodeError in Go's words."""
    problem = decodeerrors.explain(document, types)
    if problem:
        raise errors.DecodeError(problem)
    return document


def convert(document: dict[str, Any], model: type[_StructT]) -> _StructT:
    """A document as a struct of which it is an instance; a DecodeError says where it is not."""
    try:
        return msgspec.convert(document, model)
    except msgspec.ValidationError as error:
        raise errors.DecodeError(str(error)) from None


def unfit(wanted: Target, problem: str) -> status.StatusError:
    """A document that cannot be handled as its kind."""
    version = wanted.api_version.rpartition("/")[2]
    return status.bad_request(f'{wanted.kind} in version "{version}" cannot be handled as a {wanted.kind}: {problem}')


def not_an_object(value: Any) -> str:
    """Go's words for a body that is something else than an object."""
    return f"json: cannot unmarshal {decodeerrors.describe(value)} into Go value of type {_TYPE_META}"


def not_text(value: Any, field: str) -> str:
    """Go's words for an apiVersion or kind that is no text."""
    return f"json: cannot unmarshal {decodeerrors.describe(value)} into Go struct field .{field} of type string"


def _read_json(data: bytes, wanted: Target, *, is_checked: bool) -> tuple[dict[str, Any], list[str]]:
    try:
        document = jsonsyntax.read(data)
    except errors.DecodeError as error:
        raise _unrecognized(data, wanted, f"{NO_TYPE}; json parse error: {error}") from None
    if not isinstance(document, dict):
        if document is None:
            # Go reads null as an object without fields.
            return {}, []
        raise _unrecognized(data, wanted, f"{NO_TYPE}; json parse error: {not_an_object(document)}")
    problems: list[str] = []
    if is_checked and jsonsyntax.may_repeat_keys(data, document):
        problems = [f"duplicate field {quotation.quote(path)}" for path in jsonsyntax.repeated_keys(data)]
    return document, problems


def _read_protobuf(data: bytes, wanted: Target) -> dict[str, Any]:
    try:
        return protobuf.decode(data, wanted.surface.schema)
    except errors.DecodeError as error:
        raise _unrecognized(data, wanted, str(error)) from None


def _read_yaml(data: bytes, wanted: Target) -> tuple[dict[str, Any], Sequence[str]]:
    try:
        content, problems = yamlsyntax.read(data)
    except errors.DecodeError as error:
        raise _unrecognized(data, wanted, f"yaml: {error}") from None
    if not isinstance(content, dict):
        raise _unrecognized(data, wanted, f"{NO_TYPE}; json parse error: {not_an_object(content)}")
    return content, problems


def _check_type(document: dict[str, Any], wanted: Target, data: bytes) -> None:
    """Fills in apiVersion and kind where they are absent, and refuses others."""
    if document.get("apiVersion") == wanted.api_version and document.get("kind") == wanted.kind:
        return
    for field in ("apiVersion", "kind"):
        value = document.get(field)
        if value is not None and not isinstance(value, str):
            raise _unrecognized(data, wanted, f"{NO_TYPE}; json parse error: {not_text(value, field)}")
    api_version = document.get("apiVersion") or wanted.api_version
    if wanted.resource.traits.is_custom and not document.get("kind"):
        raise _unrecognized(data, wanted, f"Object 'Kind' is missing in '{data.decode(errors='replace')}'")
    kind = document.get("kind") or wanted.kind
    if api_version.count("/") > 1:
        raise _unrecognized(data, wanted, f"unexpected GroupVersion string: {api_version}")
    if kind != wanted.kind or api_version != wanted.api_version:
        _refuse_type(api_version, kind, wanted, name=_name(document))
    document["apiVersion"], document["kind"] = api_version, kind


def _name(document: dict[str, Any]) -> str:
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else ""
    return name if isinstance(name, str) else ""


def _refuse_type(api_version: str, kind: str, wanted: Target, *, name: str) -> None:
    version = api_version.rpartition("/")[2]
    known = wanted.surface.of_kind(api_version, kind)
    if wanted.resource.traits.is_custom and api_version == wanted.api_version:
        # Upstream reads objects of custom kinds as whatever they say they are, and looks at their kind afterwards.
        causes = [fielderror.invalid(Path("kind"), kind, f"must be {wanted.kind}")]
        raise status.invalid(kind, name, group=wanted.resource.group, causes=causes)
    if known is None and not wanted.resource.traits.is_custom:
        problem = f'no kind "{kind}" is registered for version "{api_version}" in scheme "{SCHEME}"'
    elif wanted.resource.traits.is_custom or (known is wanted.resource and kind == wanted.kind):
        expected = f"does not match the expected API version ({wanted.api_version})"
        raise status.bad_request(f"the API version in the data ({api_version}) {expected}")
    else:
        problem = f"converting ({version}.{kind}) to ({_package(wanted)}.{wanted.kind}): unknown conversion"
    raise status.bad_request(f'{kind} in version "{version}" cannot be handled as a {wanted.kind}: {problem}')


def _package(wanted: Target) -> str:
    """Go's package for the internal types of a group."""
    return wanted.resource.group.partition(".")[0] or "core"


def _unrecognized(data: bytes, wanted: Target, problem: str) -> status.StatusError:
    summary = _summarize(data)
    return status.bad_request(
        f"the object provided is unrecognized (must be of type {wanted.kind}): {problem} ({summary})"
    )


def _summarize(data: bytes) -> str:
    if not data:
        return "<empty>"
    more = " ..." if len(data) > _SUMMARY else ""
    if data[:1] == b"{":
        return data[:_SUMMARY].decode(errors="replace") + more
    return data[:_SUMMARY].hex() + more
