"""The dispatcher: every call, through whichever door, comes here, and its answer leaves from here.

It has the only table of what is done on which verb. Calls that it gets are about something that is served: the doors
have looked that up. Whatever refuses a call raises a Status, which both doors hear alike.
"""

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from drachma import errors
from drachma.bounds import effort
from drachma.server import status
from drachma.server.access import attributes, authorization
from drachma.server.admission import absent
from drachma.server.calls.call import BODY_LIMIT, Call
from drachma.server.pipeline import (
    binding,
    commit,
    creation,
    deletion,
    eviction,
    group,
    measurement,
    nodelocation,
    observation,
    patches,
    reading,
    scale,
    tokenrequest,
    update,
)
from drachma.server.pipeline.answer import Answer
from drachma.server.pipeline.desk import Desk, Desks
from drachma.server.pipeline.intent import Outcome
from drachma.server.pipeline.phases import Finish
from drachma.server.pipeline.plan import Plan, Planner
from drachma.server.pipeline.questions import accessreview, question, rulesreview, selfsubjectreview, tokenreview
from drachma.server.pipeline.services import Services
from drachma.server.surface import apisurface, verbs
from drachma.server.surface.consultation import PendingError
from drachma.store import record

_log = logging.getLogger(__name__)

_T = TypeVar("_T")

_ATTEMPTS: Final = 50
_ATTEMPT_SECONDS: Final = 0.03
"""As long as upstream waits for the account of a new namespace, but looking more often."""

TIMEOUT: Final = "request did not complete within requested timeout - context deadline exceeded"
"""What a client is told whose call takes too long."""

Operation: TypeAlias = Callable[[Services, Call], Awaitable[Answer]]

Reply: TypeAlias = Callable[[Services, Call, dict[str, Any]], Answer]
"""Answers a question that was read from a call."""

WRITES: Final[Mapping[str, Planner]] = {
    verbs.CREATE: creation.plan,
    verbs.DELETE: deletion.plan,
    verbs.PATCH: patches.plan,
    verbs.UPDATE: update.plan,
}
"""Writes to one object, also through subresources that carry the object's own kind."""

WRITES_BELOW: Final[Mapping[str, Mapping[str, Planner]]] = {
    "binding": {verbs.CREATE: binding.plan},
    "scale": {verbs.PATCH: scale.plan_patch, verbs.UPDATE: scale.plan_update},
}
"""Those through subresources that have a kind of their own."""

OBJECT: Final[Mapping[str, Operation]] = {
    verbs.DELETE_COLLECTION: deletion.delete_collection,
    verbs.GET: reading.get,
    verbs.LIST: reading.list_,
    verbs.WATCH: reading.watch,
}
"""What else is done to objects and collections."""

BELOW: Final[Mapping[str, Mapping[str, Operation]]] = {
    "attach": {verbs.CREATE: nodelocation.attach, verbs.GET: nodelocation.attach},
    "eviction": {verbs.CREATE: eviction.evict},
    "exec": {verbs.CREATE: nodelocation.execute, verbs.GET: nodelocation.execute},
    "log": {verbs.GET: nodelocation.log},
    "pendingworkloads": {verbs.GET: observation.get},
    "portforward": {verbs.CREATE: nodelocation.forward_ports, verbs.GET: nodelocation.forward_ports},
    "proxy": dict.fromkeys((verbs.CREATE, verbs.DELETE, verbs.GET, verbs.PATCH, verbs.UPDATE), nodelocation.proxy),
    "scale": {verbs.GET: scale.get},
    "token": {verbs.CREATE: tokenrequest.create},
}
"""What else is done through subresources that have a kind of their own."""

_READS: Final = frozenset({verbs.GET, verbs.LIST, verbs.WATCH})

MEASURED: Final[Mapping[str, Operation]] = {verbs.GET: measurement.get, verbs.LIST: measurement.list_}
"""What is done with kinds that nodes are asked about."""

QUESTIONS: Final[Mapping[str, Reply]] = {
    "authentication.k8s.io/selfsubjectreviews": selfsubjectreview.answer,
    "authentication.k8s.io/tokenreviews": tokenreview.answer,
    "authorization.k8s.io/localsubjectaccessreviews": accessreview.answer,
    "authorization.k8s.io/selfsubjectaccessreviews": accessreview.answer_self,
    "authorization.k8s.io/selfsubjectrulesreviews": rulesreview.answer,
    "authorization.k8s.io/subjectaccessreviews": accessreview.answer,
}
"""What is done with kinds that are questions, whose only verb is to create them, by the keys of their resources."""


class Dispatcher:
    """The API on one store, without any form of access to it.

    ``surface`` is what is served from now on: calls are made on it, and whoever gives it another one changes what the
    next calls find. Those that are under way stay on theirs. ``extend`` adds what users have defined. ``after`` has
    what is done after every write to a resource, before whoever wrote is answered.
    """

    def __init__(
        self,
        services: Services,
        surface: apisurface.ApiSurface,
        *,
        extend: Callable[[apisurface.ApiSurface], apisurface.ApiSurface] | None = None,
    ) -> None:
        self.services: Final = services
        self.after: Final[dict[str, Callable[[], Awaitable[None]]]] = {}
        self._surface = surface
        self._extend = extend

    @property
    def surface(self) -> apisurface.ApiSurface:
        return self._surface if self._extend is None else self._extend(self._surface)

    @surface.setter
    def surface(self, surface: apisurface.ApiSurface) -> None:
        self._surface = surface

    async def dispatch(self, call: Call, desks: Desks | None = None) -> Answer:
        """The answer to a call.

        ``desks`` are where large calls are decided; without any, they are decided on the spot like all others.

        Raises:
            status.StatusError: it is refused, and nothing has been written.
        """
        services = self.services
        finish = self._audit(call) if services.phases.audit else ()
        try:
            self._admit(call)
            try:
                answer = await self._answer_at(call, desks)
            except absent.AbsentObjectError as early:
                if not await self._appears(early.key):
                    raise
                answer = await self._answer_at(call, desks)
        except (status.StatusError, errors.StoreError) as error:
            refusal = _refusal(error)
            for each in finish:
                each(refusal)
            if refusal is error:
                raise
            raise refusal from error
        except BaseException as error:
            # Given up, or failed: the log says that as well.
            for each in finish:
                each(_failure(error))
            raise
        for each in finish:
            each(answer)
        follow = self.after.get(call.target.resource.key)
        if follow is not None and call.verb not in _READS:
            await follow()
        return answer

    async def consulted(self, make: Callable[[], Awaitable[_T]]) -> _T:
        """What ``make`` makes, once those are asked whose answers it takes; it is done anew with each of them."""
        for _ in range(commit.ATTEMPTS):
            try:
                return await make()
            except PendingError as pending:
                await self.services.committer.consult(pending)
        raise status.internal(f"a question came up more than {commit.ATTEMPTS} times")

    async def dispatch_all(self, calls: Sequence[Call]) -> Sequence[Answer]:
        """The answers to calls that write to one object each, and that happen together or not at all.

        Raises:
            group.RefusedIntentError: one of them is refused, and nothing has been written.
        """
        services = self.services
        finishes = [self._audit(call) for call in calls]
        position = 0
        try:
            plans: list[Plan] = []
            for position, call in enumerate(calls):  # noqa: B007 - which one is refused
                self._admit(call)
                planner = _planner(call)
                if planner is None:
                    raise status.method_not_allowed()
                plans.append(planner(services, call))
            outcomes = await services.committer.commit_all([plan.intent for plan in plans])
        except (status.StatusError, errors.StoreError) as error:
            if isinstance(error, group.RefusedIntentError):
                position = error.position
            refusal = _refusal(error)
            for finish in finishes:
                for each in finish:
                    each(refusal)
            raise group.RefusedIntentError(refusal.document, position) from error
        answers = [plan.answer(outcome) for plan, outcome in zip(plans, outcomes, strict=True)]
        for finish, answer in zip(finishes, answers, strict=True):
            for each in finish:
                each(answer)
        for follow in {
            self.after[call.target.resource.key] for call in calls if call.target.resource.key in self.after
        }:
            await follow()
        return answers

    async def _answer_at(self, call: Call, desks: Desks | None) -> Answer:
        """Answer a call at a desk if it is large or turns out to be costly, and on the loop otherwise."""
        if desks is None or not call.body.data:
            return await self._answer(call, None, units=effort.NO_LIMIT)
        size = desks.weigh(call)
        desk = desks.of(size)
        if desk is None:
            warnings = len(call.warnings)
            try:
                return await self._answer(call, None, units=effort.LOOP_UNITS)
            except effort.OverrunError:
                del call.warnings[warnings:]
                desk = desks.costly
        async with desks.enter(call, size):
            return await self._answer(call, desk, units=effort.NO_LIMIT)

    async def _answer(self, call: Call, desk: Desk | None, *, units: int) -> Answer:
        """Answer a call. Without a desk, deciding may take ``units`` of effort; more raise effort.OverrunError."""
        services, planner = self.services, _planner(call)
        if call.target.resource.traits.is_question:
            return await self._reply(call, desk)
        if desk is not None and planner is not None:
            return await self._answer_large(call, desk, planner=planner)
        if planner is None:
            try:
                return await _operation(call)(services, call)
            except PendingError:
                return await self.consulted(lambda: _operation(call)(services, call))
        with effort.limit(effort.Allowance(units)):
            plan = planner(services, call)
        outcome = await services.committer.commit(plan.intent, units=units)
        try:
            return plan.answer(outcome)
        except PendingError:
            return await self.consulted(lambda: _shown(plan, outcome))

    async def _answer_large(self, call: Call, desk: Desk, *, planner: Planner) -> Answer:
        """The same as for others, but read and decided at a desk."""
        plan = await desk.plan(planner, call)
        outcome = await self.services.committer.commit(plan.intent, desk.decide)
        return await self.consulted(lambda: desk.answer(plan, outcome))

    async def _reply(self, call: Call, desk: Desk | None) -> Answer:
        """The answer to a question, which may take long to read."""
        services = self.services
        read = functools.partial(question.read, services, call)
        asked = read() if desk is None else await desk.run(read)
        return QUESTIONS[call.target.resource.key](services, call, asked)

    async def _appears(self, key: record.Key) -> bool:
        """Whether an object that a controller is about to make is there in a moment."""
        for _ in range(_ATTEMPTS):
            await asyncio.sleep(_ATTEMPT_SECONDS)
            if self.services.store.get(key) is not None:
                return True
        return False

    def _admit(self, call: Call) -> None:
        wanted = attributes.of_call(call)
        opinion = self.services.authoriser.authorise(wanted)
        if self.services.phases.audit:
            call.annotations.update(authorization.annotations(opinion))
        authorization.enforce(opinion, wanted)
        if len(call.body.data) > BODY_LIMIT:
            raise status.too_large(f"limit is {BODY_LIMIT}")

    def _audit(self, call: Call) -> Sequence[Finish]:
        """Tells auditors of a call; returns whom to tell how it ends."""
        finishes = [each.call(call) for each in self.services.phases.audit]
        return [finish for finish in finishes if finish is not None]


async def _shown(plan: Plan, outcome: Outcome) -> Answer:
    return plan.answer(outcome)


def _planner(call: Call) -> Planner | None:
    if call.target.resource.traits.is_question:
        return None
    subresource = call.target.subresource
    if subresource is not None and (subresource.kind or subresource.connects):
        return WRITES_BELOW.get(subresource.name, {}).get(call.verb)
    return WRITES.get(call.verb)


def _operation(call: Call) -> Operation:
    resource, subresource = call.target.resource, call.target.subresource
    if subresource is not None and (subresource.kind or subresource.connects):
        return BELOW[subresource.name][call.verb]
    if resource.traits.is_measured:
        return MEASURED[call.verb]
    return OBJECT[call.verb]


def _failure(error: BaseException) -> status.StatusError:
    """How a call ends in the audit log that was not answered."""
    if isinstance(error, asyncio.CancelledError | TimeoutError):
        return status.timeout(TIMEOUT)
    return status.internal(f"{type(error).__name__}: {error}")


def _refusal(error: status.StatusError | errors.StoreError) -> status.StatusError:
    """What a client is told; errors of the store are nobody's mistake: it is full, or closed."""
    if isinstance(error, status.StatusError):
        return error
    if isinstance(error, errors.StoreClosedError):
        return status.unavailable("the server is shutting down")
    _log.error("the store refuses: %s", error)
    if isinstance(error, errors.DiskFullError):
        # As upstream passes on the error of an etcd without space: without a reason, which clients would act on.
        return status.failure(500, "", f"mvcc: database space exceeded: {error}")
    return status.unavailable(f"the store cannot be written: {error}")
