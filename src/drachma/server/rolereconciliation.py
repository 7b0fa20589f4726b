"""Reconciliation of the default roles when a server starts.

Missing roles and bindings are created, and missing rules and subjects are added to existing ones; additions of users
stay. The annotation ``rbac.authorization.kubernetes.io/autoupdate`` with the value "false" excludes an object.
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
    """Write all missing objects and rules in one commit; a complete store is not written to.

    ``more`` are additional roles and bindings in the notation of the default ones.
    """
    defaults = defaultroles.read(more)
    desired = (*defaults.roles, *defaults.bindings)
    for call in _removals(dispatcher, defaults.bindings):
        await dispatcher.dispatch(call)
    calls = [call for each in desired for call in _calls(dispatcher, each)]
    if calls:
        await dispatcher.dispatch_all(calls)


def _removals(dispatcher: Dispatcher, bindings: Iterable[Document]) -> Iterator[Call]:
    """Yield deletions of bindings to a wrong role, which cannot be changed."""
    for binding in bindings:
        existing = _find_existing(dispatcher, binding)
        if existing is not None and not _is_protected(existing) and existing["roleRef"] != binding["roleRef"]:
            yield _call(dispatcher, verbs.DELETE, binding)


def _calls(dispatcher: Dispatcher, desired: Document) -> Iterator[Call]:
    existing = _find_existing(dispatcher, desired)
    if existing is None:
        yield _call(dispatcher, verbs.CREATE, desired)
    elif not _is_protected(existing):
        changed = reconciled(existing, desired)
        if changed != existing:
            yield _call(dispatcher, verbs.UPDATE, changed)


def reconciled(existing: Document, desired: Document) -> Document:
    """Return a role or binding with the missing parts of its default."""
    metadata = dict(existing["metadata"])
    for field in ("annotations", "labels"):
        metadata[field] = {**desired["metadata"][field], **(metadata.get(field) or {})}
    changed = {**existing, "metadata": metadata}
    if "roleRef" in desired:
        subjects: list[Document] = existing.get("subjects") or []
        more = [subject for subject in desired["subjects"] if subject not in subjects]
        return {**changed, "subjects": subjects + more} if more else changed
    missing_rules = policyrules.find_missing(
        policyrules.read(existing.get("rules")), policyrules.read(desired["rules"])
    )
    if missing_rules:
        changed["rules"] = [*(existing.get("rules") or ()), *map(policyrules.write, missing_rules)]
    return _reconcile_aggregation(changed, desired.get("aggregationRule"))


def _reconcile_aggregation(role: Document, desired: Mapping[str, Any] | None) -> Document:
    existing = role.get("aggregationRule")
    if desired is None:
        return {field: value for field, value in role.items() if field != "aggregationRule"}
    selectors: list[Document] = (existing or {}).get("clusterRoleSelectors") or []
    more = [selector for selector in desired["clusterRoleSelectors"] if selector not in selectors]
    return {**role, "aggregationRule": {"clusterRoleSelectors": selectors + more}} if more else role


def _is_protected(existing: Document) -> bool:
    return (existing["metadata"].get("annotations") or {}).get(defaultroles.AUTOUPDATE) == "false"


def _find_existing(dispatcher: Dispatcher, desired: Document) -> Document | None:
    target = _target(dispatcher, desired)
    key = record.Key(target.resource.key, target.namespace or "", target.name)
    existing = dispatcher.services.store.get(key)
    return existing.value if existing is not None else None


def _target(dispatcher: Dispatcher, document: Document) -> Target:
    resource = dispatcher.surface.find_kind(document["apiVersion"], document["kind"])
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
