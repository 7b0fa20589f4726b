"""What the operations work with: objects to read, a committer to write, and the phases in between."""

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
from drachma.server.pipeline.answer import Answer, Elsewhere, Unstored
from drachma.server.pipeline.intent import Outcome
from drachma.server.reads import listing, watching
from drachma.server.reads.reader import Reader
from drachma.server.surface.strategy import Write
from drachma.store import protocol, record
from drachma.validation import metadata
from drachma.values import quotation

AskNodes: TypeAlias = Callable[[Mapping[str, Elsewhere]], Awaitable[Mapping[str, Mapping[str, Any]]]]
"""Asks nodes, by their names, for the documents at some places; those that do not answer are missing."""


Observer: TypeAlias = Callable[[str, str, Mapping[str, Sequence[str]]], Sequence[Mapping[str, Any]] | None]
"""The items about the object of a namespace and name, with the parameters of the request; None where there is none.

InvalidValueError: the parameters make no sense.
"""

Observers: TypeAlias = Mapping[str, Observer]
"""Who knows what is not stored, by resource and subresource."""

NO_OBSERVERS: Observers = MappingProxyType({})

_PODS: Final = "pods"


async def ask_nobody(places: Mapping[str, Elsewhere]) -> Mapping[str, Mapping[str, Any]]:
    """Where nodes cannot be reached."""
    return {}


class MakePhases(Protocol):
    """Makes phases that read a store and ask an authoriser; see :func:`phases.standard`."""

    def __call__(self, store: Reader, *, authoriser: Authoriser) -> phases.Phases: ...


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """One for each application. ``store`` is for reading only; who wants to write has an intent committed."""

    store: Reader
    committer: commit.Committer
    webhooks: webhookclient.WebhookClient
    phases: phases.Phases
    authenticator: authentication.Authenticator
    issuer: accounttokens.AccountTokens
    watches: watching.Watches
    clock: Callable[[], datetime]
    chance: random.Random
    ask_nodes: AskNodes = ask_nobody
    observers: Observers = NO_OBSERVERS

    @property
    def authoriser(self) -> Authoriser:
        """Whom to ask what users may do."""
        return self.phases.authoriser

    def write(self, call: Call, *, name: str = "") -> Write:
        """The circumstances of what a call writes now."""
        return call.write(now=self.clock(), name=name)

    def get(self, target: Target) -> record.Record:
        """The stored object; a 404 where there is none."""
        stored = self.store.get(record.Key(target.resource.key, target.namespace or "", target.name))
        if stored is None:
            raise status.not_found(target.resource, target.name)
        return stored

    def answer(self, code: int, outcome: Outcome, call: Call) -> Answer:
        """What a write left, as the answer to it."""
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
    chance: random.Random,
    ask_nodes: AskNodes = ask_nobody,
    observers: Observers = NO_OBSERVERS,
) -> Services:
    """The services of drachma's API server on a store."""
    webhooks = webhookclient.WebhookClient()
    return Services(
        store=store,
        committer=commit.Committer(store, _asking(store, chance, webhooks)),
        webhooks=webhooks,
        phases=make_phases(store, authoriser=access.authoriser),
        authenticator=access.authenticator,
        issuer=access.issuer,
        watches=watching.Watches(),
        clock=clock,
        chance=chance,
        ask_nodes=ask_nodes,
        observers=observers,
    )


def _asking(store: Reader, chance: random.Random, client: webhookclient.WebhookClient) -> commit.Ask:
    async def ask(question: Hashable) -> object:
        if isinstance(question, existingpods.Question):
            pods = store.list(_PODS, question.namespace).records
            return await existingpods.find_warnings(question, pods, asyncio.get_running_loop().time)
        uid = objectmeta.generate_uid(chance)
        if isinstance(question, conversion.Question):
            return await conversion.ask(question, uid, client)
        assert isinstance(question, webhookreview.Question), "nobody else is asked"
        return await webhookreview.ask(question, uid, client)

    return ask


def check_name(target: Target) -> None:
    """Refuses names that cannot be part of a path."""
    problems = metadata.path_segment(target.name, is_prefix=False)
    if problems:
        shown = quotation.quote(target.name)
        raise status.bad_request(f"Name parameter invalid: {shown}: {';'.join(problems)}")


def scope(target: Target) -> listing.Scope:
    """The collection that a call is about."""
    return listing.Scope(target.resource, target.namespace if target.resource.namespaced else None)
