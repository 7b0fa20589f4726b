"""Field ownership of writes: the manager of a request, and the managedFields after it.

Ownership is recorded in the version of the request, so objects are converted to it.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from drachma import errors
from drachma.bounds import memory
from drachma.server.calls import options
from drachma.server.ownership import apply, managedfields, managers
from drachma.server.surface.strategy import Served, Write

_NAME_BYTES: Final = 128


def entries_for_create(
    document: dict[str, Any], write: Write, *, write_options: options.WriteOptions
) -> Sequence[dict[str, Any]]:
    """Return the entries of a new document: the writer owns all of it."""
    return managedfields.entries_after_create(
        write.served.strategy.serve(document, write.version),
        manager=write_options.field_manager or _agent(write.user_agent),
        kind=write.served.derive(_kind, write.version, write.subresource),
        now=write.now,
        interner=write.served.interner,
    )


def drop_unreadable(metadata: dict[str, Any], old: Mapping[str, Any]) -> None:
    """Replace entries that cannot be parsed by those of the stored object.

    A single empty entry means the same as none: it resets ownership.
    """
    sent = metadata.get("managedFields")
    if not sent:
        return
    stored_entries = old.get("managedFields")
    if sent == stored_entries:
        return
    if sent == [{}]:
        metadata["managedFields"] = []
        return
    try:
        managedfields.decode(sent)
    except errors.InvalidValueError:
        if stored_entries:
            metadata["managedFields"] = stored_entries
        else:
            del metadata["managedFields"]


def entries_for_update(
    document: dict[str, Any],
    old: Mapping[str, Any],
    write: Write,
    *,
    write_options: options.WriteOptions,
    fields: Collection[str] = (),
) -> Sequence[dict[str, Any]]:
    """Return the entries of a changed document: the writer owns the changes. Only ``fields`` can differ, if given."""
    return managedfields.entries_after_update(
        write.served.strategy.serve(old, write.version),
        write.served.strategy.serve(document, write.version),
        fields=fields,
        manager=write_options.field_manager or _agent(write.user_agent),
        kind=write.served.derive(_kind, write.version, write.subresource),
        now=write.now,
        interner=write.served.interner,
    )


def entries_for_status_change(
    document: dict[str, Any],
    old: Mapping[str, Any],
    write: Write,
    *,
    write_options: options.WriteOptions,
    fields: Collection[str],
) -> Sequence[dict[str, Any]]:
    """Return the entries after a change through a subresource that also changes metadata."""
    return managedfields.entries_after_state(
        write.served.strategy.serve(old, write.version),
        write.served.strategy.serve(document, write.version),
        fields=fields,
        manager=write_options.field_manager or _agent(write.user_agent),
        kind=write.served.derive(_kind, write.version, write.subresource),
        object_kind=write.served.derive(_kind, write.version, ""),
        now=write.now,
        interner=write.served.interner,
    )


def apply_configuration(
    live: Mapping[str, Any] | None,
    configuration: dict[str, Any],
    write: Write,
    *,
    write_options: options.WriteOptions,
) -> dict[str, Any]:
    """Return the live document after a server-side apply, in the version of the request."""
    return apply.apply(
        None if live is None else dict(live),
        configuration,
        manager=write_options.field_manager,
        kind=write.served.derive(_kind, write.version, write.subresource),
        now=write.now,
        is_forced=write_options.force,
    )


def _kind(served: Served, version: str, subresource: str) -> managers.Kind:
    resource, strategy = served.resource, served.strategy

    def convert(document: dict[str, Any], api_version: str) -> dict[str, Any]:
        group, _, target_version = api_version.rpartition("/")
        if group != resource.group or target_version not in resource.versions:
            raise LookupError(api_version)
        return dict(strategy.convert(document, target_version))

    return managers.Kind.of(resource, version, convert=convert, subresource=subresource)


@memory.remember(entries=256, longest=1024)
def _agent(user_agent: str) -> str:
    """Return a manager name from a User-Agent header: the printable part before the first slash, shortened."""
    name = "".join(character for character in user_agent.partition("/")[0] if character.isprintable())
    return name.encode()[:_NAME_BYTES].decode(errors="ignore")
