"""The dispatcher: it takes every call through the pipeline, and returns its answer.

It has the only table of operations by verb. The caller has checked that the target of a call is served. Whatever
refuses a call raises a Status.
"""

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from drachma import errors
from drachma.bounds import effort
from drachma.server import status
from drachma.server.access import attributes, authorization
from drachma.server.admission import serviceaccount
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
    patches,
    podlocation,
    reading,
    reviews,
    scale,
    tokenrequest,
    update,
)
from drachma.server.pipeline.answer import Answer
from drachma.server.pipeline.desk import Desk, Desks
from drachma.server.pipeline.intent import Outcome
from drachma.server.pipeline.phases import Finish
from drachma.server.pipeline.plan import Plan, Planner
from drachma.server.pipeline.services import Services
from drachma.server.surface import apisurface, verbs
from drachma.server.surface.consultation import PendingError
from drachma.store import record

_log = logging.getLogger(__name__)

_T = TypeVar("_T")

_ATTEMPTS: Final = 50
_ATTEMPT_SECONDS: Final = 0.03
"""Pause between looks for the account of a new namespace. Upstream waits as long in all, with fewer looks."""

TIMEOUT: Final = "request did not complete within requested timeout - context deadline exceeded"
"""Message for a call that takes too long."""

Operation: TypeAlias = Callable[[Services, Call], Awaitable[Answer]]

Reply: TypeAlias = Callable[[Services, Call, dict[str, Any]], Answer]
"""Answers a review that was read from a call."""

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
"""Writes through subresources that have a kind of their own."""

OBJECT: Final[Mapping[str, Operation]] = {
    verbs.DELETE_COLLECTION: deletion.delete_collection,
    verbs.GET: reading.get,
    verbs.LIST: reading.list_,
    verbs.WATCH: reading.watch,
}
"""Other operations on objects and collections."""


async def _proxy(services: Services, call: Call) -> Answer:
    """Locate a path of a node, pod or service."""
    return await _PROXIES[call.target.resource.plural](services, call)


_PROXIES: Final[Mapping[str, Operation]] = {
    "nodes": nodelocation.proxy,
    "pods": podlocation.proxy_pod,
    "services": podlocation.proxy_service,
}

BELOW: Final[Mapping[str, Mapping[str, Operation]]] = {
    "attach": {verbs.CREATE: nodelocation.attach, verbs.GET: nodelocation.attach},
    "eviction": {verbs.CREATE: eviction.evict},
    "exec": {verbs.CREATE: nodelocation.execute, verbs.GET: nodelocation.execute},
    "log": {verbs.GET: nodelocation.log},
    "pendingworkloads": {verbs.GET: reading.observe},
    "portforward": {verbs.CREATE: nodelocation.forward_ports, verbs.GET: nodelocation.forward_ports},
    "proxy": dict.fromkeys((verbs.CREATE, verbs.DELETE, verbs.GET, verbs.PATCH, verbs.UPDATE), _proxy),
    "scale": {verbs.GET: scale.get},
    "token": {verbs.CREATE: tokenrequest.create},
}
"""Other operations through subresources that have a kind of their own."""

_READS: Final = frozenset({verbs.GET, verbs.LIST, verbs.WATCH})

MEASURED: Final[Mapping[str, Operation]] = {verbs.GET: measurement.get, verbs.LIST: measurement.list_}
"""Operations on kinds that the nodes are asked for."""

QUESTIONS: Final[Mapping[str, Reply]] = {
    "authentication.k8s.io/selfsubjectreviews": reviews.answer_self_subject,
    "authentication.k8s.io/tokenreviews": reviews.answer_token,
    "authorization.k8s.io/localsubjectaccessreviews": reviews.answer_access,
    "authorization.k8s.io/selfsubjectaccessreviews": reviews.answer_self_access,
    "authorization.k8s.io/selfsubjectrulesreviews": reviews.answer_rules,
    "authorization.k8s.io/subjectaccessreviews": reviews.answer_access,
}
"""Operations on reviews, by the keys of their resources. Reviews can only be created."""


class Dispatcher:
    """The API on one store, without any transport.

    ``surface`` is the served API. A call stays on the surface that it was made on; replacing the surface affects the
    next calls. ``extend`` adds the kinds that users have defined. ``after`` has functions to run after every write to a
    resource, before the writer is answered.
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

    def authorise(self, call: Call) -> authorization.Opinion:
        """Return the authoriser's opinion on a call."""
        return self.services.authoriser.authorise(attributes.from_call(call))

    async def dispatch(
        self, call: Call, desks: Desks | None = None, *, opinion: authorization.Opinion | None = None
    ) -> Answer:
        """Return the answer to a call.

        Large calls are decided at ``desks``, or on the event loop if there are none. A caller that has asked for the
        authoriser's ``opinion`` already passes it on, so that a call is authorised once.

        Raises:
            status.StatusError: the call is refused, and nothing has been written.
        """
        services = self.services
        finish = self._audit(call) if services.phases.audit else ()
        try:
            self._admit(call, opinion or self.authorise(call))
            try:
                answer = await self._answer_at(call, desks)
            except serviceaccount.AbsentObjectError as early:
                if not await self._appears(early.key):
                    raise
                answer = await self._answer_at(call, desks)
        except status.StatusError as error:
            _finish(finish, error)
            raise
        except errors.StoreError as error:
            raise _finish(finish, _refusal(error)) from error
        except BaseException as error:
            # The audit log also shows calls that were cancelled or failed.
            for each in finish:
                each(_failure(error))
            raise
        for each in finish:
            each(answer)
        follow = self.after.get(call.target.resource.key)
        if follow is not None and call.verb not in _READS:
            await follow()
        return answer

    async def consult_until_done(self, make: Callable[[], Awaitable[_T]]) -> _T:
        """Return the result of ``make``; run it again with every answer that it has to wait for."""
        for _ in range(commit.ATTEMPTS):
            try:
                return await make()
            except PendingError as pending:
                await self.services.committer.consult(pending)
        raise status.internal(f"a question came up more than {commit.ATTEMPTS} times")

    async def dispatch_all(self, calls: Sequence[Call]) -> Sequence[Answer]:
        """Return the answers to calls that write to one object each, committed together or not at all.

        Raises:
            group.RefusedIntentError: a call is refused, and nothing has been written.
        """
        services = self.services.stop_clock()
        authorise = services.authoriser.authorise
        finishes = [self._audit(call) for call in calls] if services.phases.audit else ()
        position = 0
        try:
            plans: list[Plan] = []
            for position, call in enumerate(calls):  # noqa: B007 - which one is refused
                self._admit(call, authorise(attributes.from_call(call)))
                planner = _planner(call)
                if planner is None:
                    raise status.method_not_allowed()
                plans.append(planner(services, call))
            outcomes = await services.committer.commit_all([plan.intent for plan in plans])
        except (status.StatusError, errors.StoreError) as error:
            if isinstance(error, group.RefusedIntentError):
                position = error.position
            refused_document = _finish([each for finish in finishes for each in finish], _refusal(error)).document
            raise group.RefusedIntentError(refused_document, position) from error
        answers = [plan.answer(outcome) for plan, outcome in zip(plans, outcomes, strict=True)]
        for position, finish in enumerate(finishes):
            for each in finish:
                each(answers[position])
        if self.after:
            for resource in {call.target.resource.key for call in calls} & self.after.keys():
                await self.after[resource]()
        return answers

    async def _answer_at(self, call: Call, desks: Desks | None) -> Answer:
        """Answer a call at a desk if it is large or turns out to be costly, and on the loop otherwise."""
        if desks is None or not call.body.data:
            return await self._answer(call, None)
        size = desks.weigh(call)
        desk = desks.of(size)
        if desk is None:
            warnings = len(call.warnings)
            try:
                return await self._answer(call, None, bound=effort.limit(effort.Allowance(effort.LOOP_UNITS)))
            except effort.OverrunError:
                del call.warnings[warnings:]
                desk = desks.costly
        async with desks.enter(call, size):
            return await self._answer(call, desk)

    async def _answer(self, call: Call, desk: Desk | None, *, bound: effort.limit | None = None) -> Answer:
        """Answer a call. ``bound`` limits the effort of deciding on the loop; more raises effort.OverrunError."""
        services, planner = self.services, _planner(call)
        if call.target.resource.traits.is_question:
            return await self._reply(call, desk)
        if desk is not None and planner is not None:
            return await self._answer_large(call, desk, planner=planner)
        if planner is None:
            try:
                return await _operation(call)(services, call)
            except PendingError:
                return await self.consult_until_done(lambda: _operation(call)(services, call))
        if bound is None:
            plan = planner(services, call)
        else:
            with bound:
                plan = planner(services, call)
        outcome = await services.committer.commit(plan.intent, bound=bound)
        try:
            return plan.answer(outcome)
        except PendingError:
            return await self.consult_until_done(lambda: _make_answer(plan, outcome))

    async def _answer_large(self, call: Call, desk: Desk, *, planner: Planner) -> Answer:
        """Answer a large call: read and decide it at a desk."""
        plan = await desk.plan(planner, call)
        outcome = await self.services.committer.commit(plan.intent, desk.decide)
        return await self.consult_until_done(lambda: desk.answer(plan, outcome))

    async def _reply(self, call: Call, desk: Desk | None) -> Answer:
        """Answer a review; a large one is read at a desk."""
        services = self.services
        read_review = functools.partial(reviews.read, services, call)
        review = read_review() if desk is None else await desk.run(read_review)
        return QUESTIONS[call.target.resource.key](services, call, review)

    async def _appears(self, key: record.Key) -> bool:
        """Wait for an object that a controller is about to create; return False if it does not appear."""
        for _ in range(_ATTEMPTS):
            await asyncio.sleep(_ATTEMPT_SECONDS)
            if self.services.store.get(key) is not None:
                return True
        return False

    def _admit(self, call: Call, opinion: authorization.Opinion) -> None:
        """Raise a StatusError for a call that is not allowed or too large."""
        if self.services.phases.audit:
            call.annotations.update(authorization.annotations(opinion))
        if not opinion.is_allowed:
            raise authorization.forbidden(attributes.from_call(call), opinion.reason)
        if len(call.body.data) > BODY_LIMIT:
            raise status.too_large(f"limit is {BODY_LIMIT}")

    def _audit(self, call: Call) -> Sequence[Finish]:
        """Report a call to the auditors; return the functions that take its result."""
        finishes = [each.call(call) for each in self.services.phases.audit]
        return [finish for finish in finishes if finish is not None]


async def _make_answer(plan: Plan, outcome: Outcome) -> Answer:
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


def _finish(finish: Iterable[Finish], refusal: status.StatusError) -> status.StatusError:
    """Record a refusal, and return it.

    Callers keep it in no variable: the traceback of an exception refers to their frame, and a frame that refers to the
    exception would keep the request and its connection alive until the next run of the garbage collector.
    """
    for each in finish:
        each(refusal)
    return refusal


def _failure(error: BaseException) -> status.StatusError:
    """Return the status that the audit log shows for a call that was not answered."""
    if isinstance(error, asyncio.CancelledError | TimeoutError):
        return status.timeout(TIMEOUT)
    return status.internal(f"{type(error).__name__}: {error}")


def _refusal(error: status.StatusError | errors.StoreError) -> status.StatusError:
    """Return the status that a client gets for an error. A store that is full or closed is a server error."""
    if isinstance(error, status.StatusError):
        return error
    if isinstance(error, errors.StoreClosedError):
        return status.unavailable("the server is shutting down")
    _log.error("the store refuses: %s", error)
    if isinstance(error, errors.DiskFullError):
        # As upstream passes on the error of a full etcd: without a reason, because clients act on reasons.
        return status.failure(500, "", f"mvcc: database space exceeded: {error}")
    return status.unavailable(f"the store cannot be written: {error}")
