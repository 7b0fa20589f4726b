"""Content negotiation: the form of an answer (JSON or YAML; whole object, Table or metadata only), and of a body.

The application negotiates once per request. Forms that cannot be given or read are refused with upstream's 406 and 415,
which come in two kinds: a route refuses media types that it does not know at all (:func:`admit`), and its handler
refuses the rest of the headers. Protobuf is read and not written; clients that prefer it also accept JSON.
"""

import enum
import functools
import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from drachma.server import mediatypes, status

_TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_CONTENT_TYPE: Final = re.compile(
    rf"\s*(?P<media>{_TOKEN}(?:/{_TOKEN})?)\s*(?:;\s*{_TOKEN}\s*=\s*(?:{_TOKEN}|\"(?:[^\"\\]|\\.)*\")\s*)*;?\s*"
)
_META_VERSIONS: Final = ("v1", "v1beta1")
_PRETTY_AGENTS: Final = ("curl", "Wget", "Mozilla/5.0")


class Form(enum.Enum):
    """Representation of an object in the answer."""

    OBJECT = "object"
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"
    METADATA_LIST = "PartialObjectMetadataList"


class Output(msgspec.Struct, frozen=True):
    """Form of an answer; ``meta_version`` is that of ``meta.k8s.io`` for all but whole objects."""

    media_type: str = mediatypes.JSON
    form: Form = Form.OBJECT
    meta_version: str = "v1"
    is_pretty: bool = False

    @property
    def is_plain(self) -> bool:
        """True if stored bytes can be sent as they are."""
        return self is PLAIN or (self.media_type == mediatypes.JSON and self.form is Form.OBJECT and not self.is_pretty)


PLAIN: Final = Output()


class Clause(msgspec.Struct, frozen=True):
    """One media type of an Accept header."""

    type: str
    subtype: str
    quality: float
    parameters: Mapping[str, str]


_COMMON_LENGTH: Final = 1024
"""Characters of headers that are cached."""


def output(accept: str, user_agent: str = "", *, pretty: str = "") -> Output:
    """Return the first form that the client prefers and the server has; a 406 if there is none."""
    is_common = len(accept) + len(user_agent) + len(pretty) <= _COMMON_LENGTH
    return (_common_output if is_common else _output)(accept, user_agent, pretty)


def _output(accept: str, user_agent: str, pretty: str) -> Output:
    form = _choose(accept)
    if form is None:
        raise status.not_acceptable(mediatypes.TEXT_TYPES if mediatypes.PROTOBUF in accept else mediatypes.BODY_TYPES)
    is_pretty = form.is_pretty or _is_pretty(pretty, user_agent)
    return msgspec.structs.replace(form, is_pretty=is_pretty) if is_pretty else form


_common_output: Final = functools.lru_cache(maxsize=256)(_output)


def refusal_output(accept: str, user_agent: str = "", *, pretty: str = "") -> Output:
    """Return the form of a Status that refuses: never a Table, and JSON if no accepted form can be given."""
    plain = [part for part in accept.split(",") if not {"as", "g", "v"} & _clause(part).parameters.keys()]
    form = _choose(",".join(plain)) or PLAIN
    is_pretty = form.is_pretty or _is_pretty(pretty, user_agent)
    return msgspec.structs.replace(form, is_pretty=is_pretty) if is_pretty else form


def admit(accept: str, available: tuple[str, ...]) -> None:
    """Raise a 406 if a route has none of the media types of an Accept header; only ``*/*`` matches others."""
    if accept and accept != mediatypes.JSON and not {"*/*", *available} & _bare(accept):
        raise status.not_acceptable_route(available)


def admit_body(content_type: str, consumed: tuple[str, ...]) -> None:
    """Raise a 415 if a route reads none of the media types of a Content-Type header."""
    if not _bare(content_type) & set(consumed):
        raise status.unsupported_by_route()


def _bare(header: str) -> set[str]:
    """Return the media types of a header, without their parameters."""
    return {part.partition(";")[0].strip(" ") for part in header.split(",")}


def accepts(accept: str) -> Sequence[Clause]:
    """Return the clauses of an Accept header, the most preferred first; equally preferred ones stay in order."""
    clauses = [_clause(part) for part in accept.split(",") if part.strip()]
    return sorted(clauses, key=lambda clause: (-clause.quality, clause.type == "*", clause.subtype == "*"))


def body_type(content_type: str) -> str:
    """Return the media type of an object in a request body; a 415 if it is not supported."""
    if not content_type or content_type == mediatypes.JSON:
        return mediatypes.JSON
    match = _CONTENT_TYPE.fullmatch(content_type)
    media_type = match["media"].lower() if match else ""
    if media_type not in mediatypes.BODY_TYPES:
        raise status.unsupported_media_type(mediatypes.BODY_TYPES)
    return media_type


def patch_type(content_type: str, served: tuple[str, ...] = mediatypes.PATCH_TYPES) -> str:
    """Return the media type of a patch; a 415 if it is not supported."""
    media_type = content_type.partition(";")[0] if content_type.find(";") > 0 else content_type
    if media_type not in served:
        raise status.unsupported_media_type(served)
    return media_type


def _choose(accept: str) -> Output | None:
    if not accept:
        return PLAIN
    for clause in accepts(accept):
        for media_type in mediatypes.TEXT_TYPES:
            subtype = media_type.partition("/")[2]
            if clause.type not in ("*", "application") or clause.subtype not in ("*", subtype):
                continue
            if clause.type == "*" and clause.subtype != "*":
                continue
            form = _parse_transformation(media_type, clause.parameters)
            if form is not None:
                return form
    return None


def _parse_transformation(media_type: str, parameters: Mapping[str, str]) -> Output | None:
    if parameters.get("stream", "watch") not in ("", "watch") or parameters.get("sv", "v1") not in ("", "v1"):
        return None
    is_pretty = parameters.get("pretty") == "1"
    if not {"as", "g", "v"} & parameters.keys():
        return Output(media_type, is_pretty=is_pretty) if media_type != mediatypes.JSON or is_pretty else PLAIN
    version = parameters.get("v", "")
    if parameters.get("g", "") != "meta.k8s.io" or version not in _META_VERSIONS:
        return None
    try:
        form = Form(parameters.get("as", ""))
    except ValueError:
        return None
    return None if form is Form.OBJECT else Output(media_type, form, version, is_pretty=is_pretty)


def _clause(part: str) -> Clause:
    media_type, *parameters_text = part.split(";")
    kind, _, subtype = media_type.strip().partition("/")
    parameters: dict[str, str] = {}
    quality = 1.0
    for item in parameters_text:
        name, _, value = item.partition("=")
        name, value = name.strip(), value.strip()
        if name != "q":
            parameters[name] = value
            continue
        try:
            quality = float(value)
        except ValueError:
            quality = 1.0
    return Clause(kind, subtype or ("*" if kind == "*" else ""), quality, parameters)


def _is_pretty(pretty: str, user_agent: str) -> bool:
    if pretty:
        return pretty in ("1", "t", "T", "true", "TRUE", "True")
    return user_agent.startswith(_PRETTY_AGENTS)
