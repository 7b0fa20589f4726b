"""The default roles, brought up to date when a server begins.

What is missing is made, and what a role or binding lacks of its default is added; what people added stays. Who does not
want that for one of them sets its annotation ``rbac.authorization.kubernetes.io/autoupdate`` to "false".
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from drachma.server import mediatypes
from drachma.server.access import policyrules
from drachma.server.authorisers import defaultroles
from drachma.server.calls.call import Body, Call, Target
from drachma.server.pipeline.dispatcher import Dispatcher
from drachma.server.surface import verbs
from drachma.server.user import User
from drachma.store import record

_SERVER: Final = User(name="system:apiserver", groups=("system:masters",))
_NOTHING: Final = Body()

Document = dict[str, Any]


async def reconcile(dispatcher: Dispatcher, *, more: str = "") -> None:
    """Writes what is missing, all of it at once; a store that has it all is not written to.

    ``more`` are roles and bindings beside the default ones, in their notation.
    """
    defaults = defaultroles.read(more)
    wanted = (*defaults.roles, *defaults.bindings)
    for call in _removals(dispatcher, defaults.bindings):
        await dispatcher.dispatch(call)
    calls = [call for each in wanted for call in _calls(dispatcher, each)]
    if calls:
        await dispatcher.dispatch_all(calls)


def _removals(dispatcher: Dispatcher, bindings: Iterable[Document]) -> Iterator[Call]:
    """Bindings that are of another role than they should be; they cannot be changed, only made anew."""
    for binding in bindings:
        stored = _stored(dispatcher, binding)
        if stored is not None and not _is_protected(stored) and stored["roleRef"] != binding["roleRef"]:
            yield _call(dispatcher, verbs.DELETE, binding)


def _calls(dispatcher: Dispatcher, wanted: Document) -> Iterator[Call]:
    stored = _stored(dispatcher, wanted)
    if stored is None:
        yield _call(dispatcher, verbs.CREATE, wanted)
    elif not _is_protected(stored):
        changed = reconciled(stored, wanted)
        if changed != stored:
            yield _call(dispatcher, verbs.UPDATE, changed)


def reconciled(stored: Document, wanted: Document) -> Document:
    """A role or binding with what it lacks of its default."""
    metadata = dict(stored["metadata"])
    for field in ("annotations", "labels"):
        metadata[field] = {**wanted["metadata"][field], **(metadata.get(field) or {})}
    changed = {**stored, "metadata": metadata}
    if "roleRef" in wanted:
        subjects: list[Document] = stored.get("subjects") or []
        more = [subject for subject in wanted["subjects"] if subject not in subjects]
        return {**changed, "subjects": subjects + more} if more else changed
    missing = policyrules.missing(policyrules.read(stored.get("rules")), policyrules.read(wanted["rules"]))
    if missing:
        changed["rules"] = [*(stored.get("rules") or ()), *map(policyrules.write, missing)]
    return _aggregated(changed, wanted.get("aggregationRule"))


def _aggregated(role: Document, wanted: Mapping[str, Any] | None) -> Document:
    stored = role.get("aggregationRule")
    if wanted is None:
        return {field: value for field, value in role.items() if field != "aggregationRule"}
    selectors: list[Document] = (stored or {}).get("clusterRoleSelectors") or []
    more = [selector for selector in wanted["clusterRoleSelectors"] if selector not in selectors]
    return {**role, "aggregationRule": {"clusterRoleSelectors": selectors + more}} if more else role


def _is_protected(stored: Document) -> bool:
    return (stored["metadata"].get("annotations") or {}).get(defaultroles.AUTOUPDATE) == "false"


def _stored(dispatcher: Dispatcher, wanted: Document) -> Document | None:
    target = _target(dispatcher, wanted)
    key = record.Key(target.resource.key, target.namespace or "", target.name)
    stored = dispatcher.services.store.get(key)
    return stored.value if stored is not None else None


def _target(dispatcher: Dispatcher, document: Document) -> Target:
    resource = dispatcher.surface.of_kind(document["apiVersion"], document["kind"])
    assert resource is not None, "roles and bindings are served"
    metadata = document["metadata"]
    return Target(resource, resource.versions[0], metadata.get("namespace", ""), metadata["name"], None)


def _call(dispatcher: Dispatcher, verb: str, document: Document) -> Call:
    target = _target(dispatcher, document)
    body = Body(msgspec.json.encode(document), mediatypes.JSON) if verb != verbs.DELETE else _NOTHING
    return Call(
        user=_SERVER,
        verb=verb,
        surface=dispatcher.surface,
        target=msgspec.structs.replace(target, name="") if verb == verbs.CREATE else target,
        body=body,
        user_agent="drachma",
    )
