"""Controller of aggregated roles: their rules are those of all roles that they select by labels."""

from collections.abc import Iterator
from typing import Any, Final

from drachma.api import labelselectors
from drachma.api.clusterrole import AggregationRule, ClusterRole, PolicyRule
from drachma.client import patches
from drachma.runtime import Surroundings, controller, informer, workqueue

WORKERS: Final = 5


class ClusterRoleAggregation:
    """Writes the rules of aggregated roles. Every change updates all aggregated roles, because there are few."""

    name: Final = "clusterrole_aggregation"

    def __init__(self, surroundings: Surroundings) -> None:
        roles = surroundings.informers.of(ClusterRole)
        self._client: Final = surroundings.client
        self._roles: Final = roles.cache
        self._queue: Final[workqueue.Queue[str]] = workqueue.Queue(
            "ClusterRoleAggregator", clock=surroundings.clock, metrics=surroundings.queues
        )
        roles.add_handler(informer.Handler(added=self._enqueue, updated=self._handle_update, deleted=self._enqueue))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    def _enqueue(self, _role: ClusterRole) -> None:
        for each in self._roles:
            if each.aggregation_rule is not None:
                self._queue.add(each.metadata.name)

    def _handle_update(self, _old: ClusterRole, new: ClusterRole) -> None:
        self._enqueue(new)

    async def _reconcile(self, name: str) -> None:
        role = self._roles.get(name)
        if role is None or role.aggregation_rule is None:
            return
        rules = tuple(dict.fromkeys(self._rules(role, role.aggregation_rule)))
        if rules != role.rules:
            content: dict[str, Any] = {"rules": rules} if rules else {}
            await self._client.patch(ClusterRole, name, patch=patches.apply(content, force=True))

    def _rules(self, role: ClusterRole, aggregation: AggregationRule) -> Iterator[PolicyRule]:
        """Yield the rules of all selected roles, selector by selector and in the order of their names."""
        parts = sorted((each for each in self._roles if each is not role), key=lambda each: each.metadata.name)
        for selector in map(labelselectors.of, aggregation.cluster_role_selectors):
            for part in parts:
                if selector.matches(part.metadata.labels):
                    yield from part.rules
