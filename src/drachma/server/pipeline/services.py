"""Services that operations use: a reader, a committer, the phases, and access control."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from drachma.server import objectmeta, status, webhookclient
from drachma.server.access import accounttokens, authentication
from drachma.server.access.access import Access
from drachma.server.access.authorization import Authoriser
from drachma.server.admission import webhookreview
from drachma.server.admission.podsecurity import existingpods
from drachma.server.calls.call import Call, Target
from drachma.server.kinds.apiextensions import conversion
from drachma.server.pipeline import commit, phases
from drachma.server.pipeline.answer import Answer, NodeEndpoint, Unstored
from drachma.server.pipeline.intent import Outcome
from drachma.server.reads import listing, watching
from drachma.server.reads.reader import Reader
from drachma.server.surface.strategy import Write
from drachma.store import protocol, record
from drachma.validation import metadata
from drachma.values import quotation

AskNodes: TypeAlias = Callable[[Mapping[str, NodeEndpoint]], Awaitable[Mapping[str, Mapping[str, Any]]]]
"""Fetches documents from nodes, by name; nodes that do not answer are missing from the result."""


Observer: TypeAlias = Callable[[str, str, Mapping[str, Sequence[str]]], Sequence[Mapping[str, Any]] | None]
"""Returns the items about the object of a namespace and name, given the query; None if there is no such object.

Raises InvalidValueError if the query is invalid.
"""

Observers: TypeAlias = Mapping[str, Observer]
"""Observers of objects that are not stored, by resource and subresource."""

NO_OBSERVERS: Observers = MappingProxyType({})

_PODS: Final = "pods"


async def ask_no_nodes(places: Mapping[str, NodeEndpoint]) -> Mapping[str, Mapping[str, Any]]:
    """Return no answers; for servers that cannot reach nodes."""
    return {}


class MakePhases(Protocol):
    """Makes phases that use a store and an authoriser; see :func:`standardphases.make`."""

    def __call__(self, store: Reader, *, authoriser: Authoriser) -> phases.Phases: ...


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """Services of one application. ``store`` is for reading only; writes are committed as intents."""

    store: Reader
    committer: commit.Committer
    webhooks: webhookclient.WebhookClient
    phases: phases.Phases
    authenticator: authentication.Authenticator
    issuer: accounttokens.AccountTokens
    watches: watching.Watches
    clock: Callable[[], datetime]
    rng: random.Random
    ask_nodes: AskNodes = ask_no_nodes
    observers: Observers = NO_OBSERVERS

    @property
    def authoriser(self) -> Authoriser:
        """Authoriser of all calls."""
        return self.phases.authoriser

    def stop_clock(self) -> "Services":
        """Return the same services at this moment, for calls that are decided together."""
        now = self.clock()
        return msgspec.structs.replace(self, clock=lambda: now)

    def write(self, call: Call, *, name: str = "") -> Write:
        """Return the circumstances of a write at this moment."""
        return call.write(now=self.clock(), name=name)

    def get(self, target: Target) -> record.Record:
        """Return the stored object; a 404 if there is none."""
        existing = self.store.get(record.Key(target.resource.key, target.namespace or "", target.name))
        if existing is None:
            raise status.not_found(target.resource, target.name)
        return existing

    def answer(self, code: int, outcome: Outcome, call: Call) -> Answer:
        """Return the answer for the outcome of a write."""
        if outcome.stored is not None:
            return Answer(code, outcome.stored)
        target = call.target
        strategy = call.surface.strategy(target.resource)
        return Answer(code, Unstored(strategy.serve(outcome.document, target.version)))


def standard(
    store: protocol.Store,
    *,
    access: Access,
    make_phases: MakePhases,
    clock: Callable[[], datetime],
    rng: random.Random,
    ask_nodes: AskNodes = ask_no_nodes,
    observers: Observers = NO_OBSERVERS,
) -> Services:
    """Return the services of drachma's API server on a store."""
    webhooks = webhookclient.WebhookClient()
    return Services(
        store=store,
        committer=commit.Committer(store, _make_ask(store, rng, webhooks)),
        webhooks=webhooks,
        phases=make_phases(store, authoriser=access.authoriser),
        authenticator=access.authenticator,
        issuer=access.issuer,
        watches=watching.Watches(),
        clock=clock,
        rng=rng,
        ask_nodes=ask_nodes,
        observers=observers,
    )


def _make_ask(store: Reader, rng: random.Random, client: webhookclient.WebhookClient) -> commit.Ask:
    async def ask(question: Hashable) -> object:
        if isinstance(question, existingpods.Question):
            pods = store.list(_PODS, question.namespace).records
            return await existingpods.find_warnings(question, pods, asyncio.get_running_loop().time)
        uid = objectmeta.generate_uid(rng)
        if isinstance(question, conversion.Question):
            return await conversion.ask(question, uid, client)
        assert isinstance(question, webhookreview.Question), "there are no other questions"
        return await webhookreview.ask(question, uid, client)

    return ask


def check_name(target: Target) -> None:
    """Raise a 400 for a name that cannot be part of a path."""
    problems = metadata.path_segment(target.name, is_prefix=False)
    if problems:
        quoted = quotation.quote(target.name)
        raise status.bad_request(f"Name parameter invalid: {quoted}: {';'.join(problems)}")


def scope(target: Target) -> listing.Scope:
    """Return the collection of a call."""
    return listing.Scope(target.resource, target.namespace if target.resource.namespaced else None)
