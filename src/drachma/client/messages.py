"""Messages between the API server's process and the processes of its components.

A message is a msgpack array whose first element is its tag. :mod:`drachma.client.frames` carries messages over a
socket, :mod:`drachma.client.remote` sends requests, and :mod:`drachma.process.door` answers them. Requests have
numbers, so many can be under way, and their answers come in any order.

Objects travel as the JSON that the store keeps. Typed bodies of writes travel as JSON too and are typed again on
arrival, so that the server takes the same path for them as for those of components in its own process.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import structs

from drachma.api import codec, hooks, meta
from drachma.client import local, target, transactions

# Requests


class _Message(msgspec.Struct, array_like=True, frozen=True):
    pass


class _Numbered(_Message, frozen=True):
    """Message about a request, with the number of the request."""

    number: int


class _Question(_Numbered, frozen=True):
    """Request of a component, which acts as a user."""

    user: str


class WireWrite(_Message, frozen=True):
    """One write. Exactly one of the bodies is set; ``status`` is the object of a status change with its new status."""

    verb: str
    place: local.Place
    query: Mapping[str, tuple[str, ...]]
    media_type: str
    text: bytes | None = None
    typed: bytes | None = None
    document: dict[str, Any] | None = None
    status: bytes | None = None
    finalizers: tuple[str, ...] | None = None
    fields: tuple[str, ...] = ()


class Get(_Question, tag=1, frozen=True):
    """Read of one object; ``is_document`` asks for the version of the place."""

    place: local.Place
    is_document: bool


class List(_Question, tag=2, frozen=True):
    """Read of a list, or of a page of one."""

    place: local.Place
    query: Mapping[str, tuple[str, ...]]


class Watch(_Question, tag=3, frozen=True):
    """Start of a watch, whose events have the number of this request."""

    place: local.Place
    query: Mapping[str, tuple[str, ...]]


class Consume(_Numbered, tag=4, frozen=True):
    """Permission to send more batches of a watch, after the component has handled as many."""

    batches: int


class Unwatch(_Numbered, tag=5, frozen=True):
    """End of a watch."""


class Write(_Question, tag=6, frozen=True):
    """One write; ``is_document`` asks for the answer in the version of the place."""

    write: WireWrite
    is_document: bool


class Commit(_Question, tag=7, frozen=True):
    """Several writes, of which all happen or none."""

    writes: tuple[WireWrite, ...]


class Resources(_Question, tag=8, frozen=True):
    """Question for the served resources."""


class OpenApi(_Question, tag=9, frozen=True):
    """Question for the OpenAPI document of a group version."""

    group: str
    version: str


# Reports of a component's process about itself


class Ready(_Message, tag=20, frozen=True):
    """The informers have synchronised, and the components work."""


class Failed(_Message, tag=21, frozen=True):
    """The components cannot start, for a reason that the user has to remove."""

    text: str


class Family(_Message, frozen=True):
    """One family of metrics; samples have a name, labels and a value."""

    name: str
    documentation: str
    type: str
    unit: str
    samples: tuple[tuple[str, dict[str, str], float], ...]


class Measures(_Message, tag=22, frozen=True):
    """Current metrics of the process."""

    families: tuple[Family, ...]


class EndpointCertificate(_Message, tag=23, frozen=True):
    """Certificate (PEM) of the node endpoints that the process serves."""

    certificate: bytes


class EndpointAddress(_Message, tag=24, frozen=True):
    """Address of a node that the process serves; an empty host withdraws it."""

    node: str
    host: str
    port: int


# Answers


class Object(_Numbered, tag=40, frozen=True):
    """One object as JSON."""

    data: bytes


class Objects(_Numbered, tag=41, frozen=True):
    """Objects after a commit, as JSON."""

    data: tuple[bytes, ...]


class Page(_Numbered, tag=42, frozen=True):
    """A list, or a part of one; see ``local.Page``."""

    data: tuple[bytes, ...]
    revision: int
    token: str
    remaining: int | None


class Watching(_Numbered, tag=43, frozen=True):
    """The watch is open."""


class Events(_Numbered, tag=44, frozen=True):
    """The next events of a watch: types and objects. Without any, the watch has ended."""

    events: tuple[tuple[str, bytes], ...]


class ServedResource(_Message, frozen=True):
    """One resource; see ``target.metadata_of``."""

    group: str
    versions: tuple[str, ...]
    plural: str
    kind: str
    namespaced: bool


class ServedResources(_Numbered, tag=45, frozen=True):
    """All served resources."""

    resources: tuple[ServedResource, ...]


class Text(_Numbered, tag=46, frozen=True):
    """A document that may be missing."""

    data: bytes | None


class Refused(_Numbered, tag=47, frozen=True):
    """Refusal of a request, or end of a watch by an error. ``position`` is that of the refused write of a commit."""

    document: dict[str, Any]
    position: int | None = None


Report: TypeAlias = Ready | Failed | Measures | EndpointCertificate | EndpointAddress
Question: TypeAlias = Get | List | Watch | Write | Commit | Resources | OpenApi
Request: TypeAlias = Question | Consume | Unwatch | Report
Answer: TypeAlias = Object | Objects | Page | Watching | Events | ServedResources | Text | Refused


def _encode_special(value: Any) -> Any:
    """Return an absent text, list or mapping, which has a type of its own, as an empty one."""
    match value:
        case str():
            return str(value)
        case tuple():
            return list(value)
        case Mapping():
            return dict(value)
    return hooks.encode(value)


encode: Final = msgspec.msgpack.Encoder(enc_hook=_encode_special).encode
decode_request: Final = msgspec.msgpack.Decoder(Request).decode
decode_answer: Final = msgspec.msgpack.Decoder(Answer).decode


def pack(write: local.Write) -> WireWrite:
    """Return a write as it travels."""
    verb, place, body, media_type = write.verb, write.place, write.body, write.media_type
    texts = {name: tuple(values) for name, values in write.query.items()}
    match body:
        case bytes():
            return WireWrite(verb, place, texts, media_type, text=body)
        case transactions.StatusChange(base, status, finalizers, fields):
            # Only the identity of the object matters if single fields are merged into its stored status.
            subject: Any = type(base)(metadata=base.metadata) if fields else base
            changed = codec.encode_json(structs.replace(subject, status=status))
            return WireWrite(verb, place, texts, media_type, status=changed, finalizers=finalizers, fields=fields)
        case meta.Object():
            return WireWrite(verb, place, texts, media_type, typed=codec.encode_json(body))
        case _:
            return WireWrite(verb, place, texts, media_type, document=body)


def unpack(wire: WireWrite) -> local.Write:
    """Return a write that has arrived. Raises errors.DecodeError if its body is not of a known kind."""
    body: local.Body
    if wire.text is not None:
        body = wire.text
    elif wire.typed is not None:
        body = codec.decode_json(wire.typed)
    elif wire.status is not None:
        changed: Any = codec.decode_json(wire.status)
        body = transactions.StatusChange(changed, changed.status, wire.finalizers, wire.fields)
    else:
        body = wire.document or {}
    return local.Write(wire.verb, wire.place, body, wire.query, wire.media_type)


def pack_resource(resource: target.Target[meta.Object]) -> ServedResource:
    """Return a resource as it travels."""
    return ServedResource(
        resource.group, resource.versions, resource.plural, resource.kind, namespaced=resource.namespaced
    )


def unpack_resource(wire: ServedResource) -> target.Target[meta.Object]:
    """Return a resource that has arrived."""
    return target.metadata_of(
        wire.group,
        wire.versions[0],
        plural=wire.plural,
        kind=wire.kind,
        namespaced=wire.namespaced,
        other_versions=wire.versions[1:],
    )
