"""Field ownership of writes: who a request writes as, and what it leaves in ``metadata.managedFields``.

The registry asks it at the end of every ordinary write, the patch verb for server-side apply. Ownership is recorded in
the version that the client spoke, so objects are converted to it where it differs from the stored one.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from drachma.server import apply, fieldset, managedfields, options, ownership, schema
from drachma.server.strategy import Strategy, Write

_NAME_BYTES: Final = 128

_REMEMBERED: Final = 1024
_NOBODYS: Final = frozenset(
    {"name", "namespace", "uid", "creationTimestamp", "generation", "resourceVersion", "ownerReferences"}
)
_known: dict[tuple[str, str, bytes], dict[str, Any]] = {}

_STATUS: Final = fieldset.of_paths([("f:status",)])
_ALL_BUT_STATUS: Final = fieldset.of_paths(
    [
        ("f:spec",),
        ("f:metadata", "f:labels"),
        ("f:metadata", "f:annotations"),
        ("f:metadata", "f:finalizers"),
        ("f:metadata", "f:ownerReferences"),
        ("f:metadata", "f:deletionTimestamp"),
    ]
)


def created(
    document: dict[str, Any], write: Write, *, strategy: Strategy, wanted: options.WriteOptions
) -> dict[str, Any]:
    """A new document with its first owner, who owns all of it.

    What that is only depends on which fields there are, and most new objects are like others before; so it is
    remembered for objects of the same form. References to owners are apart from that: each names another one.
    """
    metadata = document["metadata"]
    references = metadata.get("ownerReferences", ())
    if "managedFields" in metadata or not all(reference.get("uid") for reference in references):
        return _recorded(document, None, write, strategy=strategy, wanted=wanted)
    likeness = _likeness(document, write)
    entry = _known.get(likeness)
    if entry is None:
        apart = {name: value for name, value in metadata.items() if name != "ownerReferences"}
        recorded = _recorded({**document, "metadata": apart}, None, write, strategy=strategy, wanted=wanted)
        entries = recorded["metadata"].get("managedFields", ())
        if len(entries) != 1:
            return _recorded(document, None, write, strategy=strategy, wanted=wanted)
        if len(_known) >= _REMEMBERED:
            _known.clear()
        entry = _known[likeness] = entries[0]
    manager = wanted.field_manager or _agent(write.user_agent) or "unknown"
    own = {**entry, "manager": manager, "time": managedfields.timestamp(write.now)}
    if references:
        own["fieldsV1"] = fieldset.encode(fieldset.union(own["fieldsV1"], _references(references)))
    return {**document, "metadata": {**metadata, "managedFields": [own]}}


def updated(
    document: dict[str, Any],
    old: Mapping[str, Any],
    write: Write,
    *,
    strategy: Strategy,
    wanted: options.WriteOptions,
) -> dict[str, Any]:
    """A changed document whose changes belong to the writer; one that only differs in times is left as it was."""
    recorded = _recorded(document, old, write, strategy=strategy, wanted=wanted)
    return settled(recorded, old)


def settled(document: dict[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """A changed document, with its old times where nothing else has changed, so that there is nothing to write."""
    return managedfields.keep_times(dict(old), document)


def applied(
    live: Mapping[str, Any] | None,
    configuration: dict[str, Any],
    write: Write,
    *,
    strategy: Strategy,
    wanted: options.WriteOptions,
) -> dict[str, Any]:
    """What server-side apply makes of the live document, in the version of the request."""
    return apply.apply(
        None if live is None else dict(live),
        configuration,
        manager=wanted.field_manager,
        kind=_kind(write, strategy),
        now=write.now,
        is_forced=wanted.force,
    )


def _recorded(
    document: dict[str, Any],
    old: Mapping[str, Any] | None,
    write: Write,
    *,
    strategy: Strategy,
    wanted: options.WriteOptions,
) -> dict[str, Any]:
    recorded = managedfields.record_update(
        None if old is None else dict(strategy.serve(old, write.version)),
        dict(strategy.serve(document, write.version)),
        manager=wanted.field_manager or _agent(write.user_agent),
        kind=_kind(write, strategy),
        now=write.now,
    )
    metadata = dict(document["metadata"])
    entries = recorded["metadata"].get("managedFields")
    if entries:
        metadata["managedFields"] = entries
    else:
        metadata.pop("managedFields", None)
    return {**document, "metadata": metadata}


def _kind(write: Write, strategy: Strategy) -> ownership.Kind:
    resource = write.resource

    def convert(document: dict[str, Any], api_version: str) -> dict[str, Any]:
        group, _, version = api_version.rpartition("/")
        if group != resource.group or version not in resource.versions:
            raise LookupError(api_version)
        return dict(strategy.convert(document, version))

    resets = _ALL_BUT_STATUS if write.subresource else _STATUS
    if resource.subresource("status") is None:
        resets = fieldset.EMPTY
    return ownership.Kind(write.api_version, resource.kind, convert, write.subresource, resets)


def _likeness(document: Mapping[str, Any], write: Write) -> tuple[str, str, bytes]:
    """What two new objects have in common whose first owner owns the same fields."""
    metadata = {name: value for name, value in document["metadata"].items() if name not in _NOBODYS}
    for name in ("labels", "annotations"):
        if name in metadata:
            metadata[name] = list(metadata[name])
    form: dict[str, Any] = {**document, "metadata": metadata}
    if document["apiVersion"] == write.api_version:
        form = _form(form, schema.empty(schema.of(write.api_version, write.resource.kind)))
    return write.api_version, write.resource.kind, msgspec.json.encode(form)


def _form(document: dict[str, Any], empty: dict[str, Any]) -> dict[str, Any]:
    """A document with its values near the top left out; but a value that every new object has is nobody's."""
    return {
        name: _members(value, empty.get(name)) if isinstance(value, dict) else _mark(value, name, empty)
        for name, value in document.items()
    }


def _members(value: dict[str, Any], empty: Any) -> dict[str, Any]:
    known = empty if isinstance(empty, dict) else {}
    return {name: _mark(member, name, known) for name, member in value.items()}


def _mark(value: Any, name: str, empty: dict[str, Any]) -> Any:
    return value if isinstance(value, dict | list) or value is None or value == empty.get(name) else 1


def _references(references: list[dict[str, Any]]) -> fieldset.FieldSet:
    """The fields that references to owners are: the list, and each by the identity of whom it names."""
    items: fieldset.FieldSet = {fieldset.item({"uid": reference["uid"]}): {} for reference in references}
    return {"f:metadata": {"f:ownerReferences": {".": {}, **items}}}


def _agent(user_agent: str) -> str:
    """A manager's name from a User-Agent header: what comes before the first slash, printable and not too long."""
    name = "".join(character for character in user_agent.partition("/")[0] if character.isprintable())
    return name.encode()[:_NAME_BYTES].decode(errors="ignore")
