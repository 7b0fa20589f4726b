"""The members of owners: the objects of one kind that belong to objects of another, or may be adopted by them.

Members are found by their owner, and news of one are told to whoever they concern: its owner, or those that select it
where it has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from drachma.api import meta, scheme
from drachma.claims import ownership
from drachma.controllers.workload import adoption
from drachma.runtime import cache, informer
from drachma.values import labels

MemberT = TypeVar("MemberT", bound=meta.Object)
OwnerT = TypeVar("OwnerT", bound=meta.Object)


class Members(Generic[MemberT, OwnerT]):
    """Members of all owners of one kind."""

    def __init__(
        self,
        members: informer.Informer[MemberT],
        owners: cache.Cache[OwnerT],
        *,
        kind: type[OwnerT],
        selector: Callable[[OwnerT], labels.Selector],
        concern: Callable[[cache.Key], None],
    ) -> None:
        """``concern`` hears of owners, of the given kind, that a change of members may matter to."""
        registered = scheme.of(kind)
        self._kind: Final = (registered.api_versions[0], registered.name)
        self._index: Final = f"{registered.name} that owns it"
        self._members: Final = members.cache
        self._owners: Final = owners
        self._selector: Final = selector
        self._concern: Final = concern
        self._members.add_index(self._index, self._owner_of)
        self._members.ensure_index(adoption.ORPHANS, adoption.orphans_of)
        members.add_handler(informer.Handler(added=self.heard, updated=self._changed, deleted=self.heard))

    def owned(self, owner: OwnerT) -> tuple[MemberT, ...]:
        """The members that name an owner as theirs, selected by it or not."""
        return tuple(self._members.by(self._index, owner.metadata.uid))

    def orphans(self, owner: OwnerT) -> Iterator[MemberT]:
        """The members that belong to nobody and are selected by an owner."""
        selector = self._selector(owner)
        for each in self._members.by(adoption.ORPHANS, owner.metadata.namespace):
            if selector.matches(each.metadata.labels):
                yield each

    def heard(self, member: MemberT) -> None:
        """Tells those whom news of a member concern."""
        owner = ownership.controller_of(member)
        namespace = member.metadata.namespace
        if owner is not None:
            if (owner.api_version, owner.kind) == self._kind:
                self._concern(cache.Key(namespace, owner.name))
            return
        for each in self._owners.in_namespace(namespace):
            if self._selector(each).matches(member.metadata.labels):
                self._concern(cache.key_of(each))

    def _owner_of(self, member: meta.Object) -> tuple[str, ...]:
        owner = ownership.controller_of(member)
        return (owner.uid,) if owner is not None and (owner.api_version, owner.kind) == self._kind else ()

    def _changed(self, old: MemberT, new: MemberT) -> None:
        if ownership.controller_of(old) != ownership.controller_of(new):
            self.heard(old)
        self.heard(new)
