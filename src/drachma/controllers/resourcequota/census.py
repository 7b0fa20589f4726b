"""Usage of a quota: the objects of a namespace, counted on the server.

The informers are not used. A write that is charged to a quota changes the quota's version in the same commit. So a
controller that reads a quota, then the objects, and then writes the counts on that version of the quota has missed none
of them. Informers of several kinds are not equally far along.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from drachma import errors
from drachma.accounting import extendedresources
from drachma.accounting.quota import evaluator, evaluators, recount
from drachma.api import gates, pod, resourceclaim, resourcequota, scheme
from drachma.client import Client, Selection, target
from drachma.values import quantity


class Kind(NamedTuple):
    """A kind that quotas count, and its evaluator; without a target if it is not served."""

    judge: evaluator.Evaluator[Any]
    target: target.Target[Any] | None


class Facts:
    """Further input of evaluators: ``pods`` and ``owned`` are those of one namespace."""

    def __init__(
        self,
        now: datetime,
        extended: extendedresources.ExtendedResources,
        *,
        pods: Iterable[pod.Pod] = (),
        owned: Sequence[resourceclaim.ResourceClaim] = (),
    ) -> None:
        self.now: Final = now
        self.extended: Final = extended
        self._pods: Final = {each.metadata.name: each for each in pods}
        self._claims: Final = owned

    def pod(self, _namespace: str, name: str) -> pod.Pod | None:
        return self._pods.get(name)

    def claims(self, _namespace: str) -> Iterable[resourceclaim.ResourceClaim]:
        return self._claims


async def kinds(client: Client, enabled: gates.Gates) -> list[Kind]:
    """Return all kinds that can be counted on this server.

    Versions of a resource that are stored separately are counted together. Kinds with an evaluator are read in one
    version only: claims of the first alpha have counterparts in v1.
    """
    served: dict[tuple[str, str], list[target.Target[Any]]] = {key: [] for key in evaluators.ALWAYS}
    for each in await client.resources():
        if each.namespaced:
            served.setdefault((each.group, each.plural), []).append(each)
    countable: list[Kind] = []
    for key, forms in served.items():
        judge = evaluators.of(*key, enabled)
        if judge is not None:
            targets: Sequence[target.Target[Any] | None] = forms[:1] if scheme.has(judge.model) else forms
            countable += [Kind(judge, _target(judge, form)) for form in targets or [None]]
    return countable


async def take(
    client: Client,
    quota: resourcequota.ResourceQuota,
    among: Sequence[Kind],
    *,
    extended: extendedresources.ExtendedResources,
    now: datetime,
) -> dict[str, quantity.Quantity]:
    """Return the usage of a quota's limits by the objects of its namespace."""
    facts = Facts(now, extended)
    selection = Selection(quota.metadata.namespace)
    relevant = [each for each in among if each.judge.counted(quota.spec.hard, facts)]
    contents = [(each, await _objects(client, each.target, selection)) for each in relevant]
    by_model = {each.judge.model: objects for each, objects in contents}
    if resourceclaim.ResourceClaim in by_model:
        # A claim may be charged to its pod.
        pods = by_model.get(pod.Pod)
        facts = Facts(
            now,
            extended,
            pods=await _objects(client, target.of(pod.Pod), selection) if pods is None else pods,
            owned=by_model[resourceclaim.ResourceClaim],
        )
    return recount.used(quota.spec, [(each.judge, objects) for each, objects in contents], facts=facts)


def _target(judge: evaluator.Evaluator[Any], resource: target.Target[Any] | None) -> target.Target[Any] | None:
    """Return the target to list: the one that other components use, if there is one."""
    if resource is None:
        return None
    return target.of(judge.model) if scheme.has(judge.model) else target.view_of(resource, judge.model)


async def _objects(client: Client, kind: target.Target[Any] | None, selection: Selection) -> Sequence[Any]:
    if kind is None:
        return ()
    try:
        return (await client.list(kind, selection)).items
    except errors.ObjectNotFoundError:
        # The kind is not served any more.
        return ()
