"""Members of owners: objects of one kind that belong to objects of another kind, or may be adopted by them.

All kinds of owners share one index of members by controller. A change of a member calls back with its owner, or with
the owners that select it if it has none.
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
        enqueue: Callable[[cache.Key], None],
    ) -> None:
        """``enqueue`` is called with the keys of owners that a change of members concerns."""
        registered = scheme.of(kind)
        self._kind: Final = (registered.api_versions[0], registered.name)
        self._members: Final = members.cache
        self._owners: Final = owners
        self._selector: Final = selector
        self._enqueue_owner: Final = enqueue
        self._members.ensure_index(adoption.CONTROLLER, adoption.index_controller)
        members.add_handler(
            informer.Handler(added=self.enqueue_owners, updated=self._handle_update, deleted=self.enqueue_owners)
        )

    def owned(self, owner: OwnerT) -> tuple[MemberT, ...]:
        """Return the members of an owner, selected by it or not."""
        return tuple(
            [each for each in self._members.by(adoption.CONTROLLER, owner.metadata.uid) if self._is_member(each)]
        )

    def orphans(self, owner: OwnerT) -> Iterator[MemberT]:
        """Yield the members without a controller that an owner selects."""
        selector = self._selector(owner)
        for each in self._members.by(adoption.CONTROLLER, adoption.orphans_in(owner.metadata.namespace)):
            if selector.matches(each.metadata.labels):
                yield each

    def enqueue_owners(self, member: MemberT) -> None:
        """Enqueue the owners that a change of a member concerns."""
        owner = ownership.controller_of(member)
        namespace = member.metadata.namespace
        if owner is not None:
            if (owner.api_version, owner.kind) == self._kind:
                self._enqueue_owner(cache.Key(namespace, owner.name))
            return
        for each in self._owners.list_namespace(namespace):
            if self._selector(each).matches(member.metadata.labels):
                self._enqueue_owner(cache.key_of(each))

    def _is_member(self, controlled: MemberT) -> bool:
        """Return True if the controller of an object is of the owners' kind. Anyone may write any uid."""
        owner = ownership.controller_of(controlled)
        return owner is not None and (owner.api_version, owner.kind) == self._kind

    def _handle_update(self, old: MemberT, new: MemberT) -> None:
        if old.metadata.owner_references != new.metadata.owner_references and ownership.controller_of(
            old
        ) != ownership.controller_of(new):
            self.enqueue_owners(old)
        self.enqueue_owners(new)
