"""Field ownership of writes: who a request writes as, and what it leaves in ``metadata.managedFields``.

A phase of every ordinary write asks it, and the patch verb for server-side apply. Ownership is recorded in
the version that the client spoke, so objects are converted to it where it differs from the stored one.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from drachma import errors
from drachma.bounds import memory
from drachma.server.calls import options
from drachma.server.ownership import apply, managedfields, managers
from drachma.server.surface.strategy import Served, Write

_NAME_BYTES: Final = 128


def created(document: dict[str, Any], write: Write, *, wanted: options.WriteOptions) -> Sequence[dict[str, Any]]:
    """The entries of a new document: the writer owns all of it."""
    return managedfields.entries_after_create(
        write.served.strategy.serve(document, write.version),
        manager=wanted.field_manager or _agent(write.user_agent),
        kind=write.served.derive(_kind, write.version, write.subresource),
        now=write.now,
        interner=write.served.interner,
    )


def drop_unreadable(metadata: dict[str, Any], old: Mapping[str, Any]) -> None:
    """Puts the entries of the stored object in place of entries that a client sent and nobody can make sense of.

    A single empty entry means the same as none at all: ownership begins anew.
    """
    sent = metadata.get("managedFields")
    if not sent:
        return
    known = old.get("managedFields")
    if sent == known:
        return
    if sent == [{}]:
        metadata["managedFields"] = []
        return
    try:
        managedfields.decode(sent)
    except errors.InvalidValueError:
        if known:
            metadata["managedFields"] = known
        else:
            del metadata["managedFields"]


def updated(
    document: dict[str, Any],
    old: Mapping[str, Any],
    write: Write,
    *,
    wanted: options.WriteOptions,
    within: Collection[str] = (),
) -> Sequence[dict[str, Any]]:
    """The entries of a changed document: what changes belongs to the writer. It is ``within`` these fields, if any."""
    return managedfields.entries_after_update(
        write.served.strategy.serve(old, write.version),
        write.served.strategy.serve(document, write.version),
        within=within,
        manager=wanted.field_manager or _agent(write.user_agent),
        kind=write.served.derive(_kind, write.version, write.subresource),
        now=write.now,
        interner=write.served.interner,
    )


def restated(
    document: dict[str, Any],
    old: Mapping[str, Any],
    write: Write,
    *,
    wanted: options.WriteOptions,
    within: Collection[str],
) -> Sequence[dict[str, Any]]:
    """The same for a change of a subresource that changes metadata, too, as a write to the whole object does."""
    return managedfields.entries_after_state(
        write.served.strategy.serve(old, write.version),
        write.served.strategy.serve(document, write.version),
        within=within,
        manager=wanted.field_manager or _agent(write.user_agent),
        kind=write.served.derive(_kind, write.version, write.subresource),
        whole=write.served.derive(_kind, write.version, ""),
        now=write.now,
        interner=write.served.interner,
    )


def applied(
    live: Mapping[str, Any] | None,
    configuration: dict[str, Any],
    write: Write,
    *,
    wanted: options.WriteOptions,
) -> dict[str, Any]:
    """What server-side apply makes of the live document, in the version of the request."""
    return apply.apply(
        None if live is None else dict(live),
        configuration,
        manager=wanted.field_manager,
        kind=write.served.derive(_kind, write.version, write.subresource),
        now=write.now,
        is_forced=wanted.force,
    )


def _kind(served: Served, version: str, subresource: str) -> managers.Kind:
    resource, strategy = served.resource, served.strategy

    def convert(document: dict[str, Any], api_version: str) -> dict[str, Any]:
        group, _, other = api_version.rpartition("/")
        if group != resource.group or other not in resource.versions:
            raise LookupError(api_version)
        return dict(strategy.convert(document, other))

    return managers.Kind.of(resource, version, convert=convert, subresource=subresource)


@memory.remember(entries=256, longest=1024)
def _agent(user_agent: str) -> str:
    """A manager's name from a User-Agent header: what comes before the first slash, printable and not too long."""
    name = "".join(character for character in user_agent.partition("/")[0] if character.isprintable())
    return name.encode()[:_NAME_BYTES].decode(errors="ignore")
