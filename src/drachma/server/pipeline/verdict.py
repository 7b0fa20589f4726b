"""The server's verdict on documents, without a cluster: what it would say if somebody created them.

``drachma validate`` asks for it. Documents are created in a dry run, by the very pipeline that serves clients, on a
store without objects. Steps that need the rest of the cluster are left out: whether a namespace, a priority class or a
runtime class exists, and what nodes can do. Of the cluster, only namespaces are known, because labels of them say what
claims may ask for: those among the documents as they are there; of all others the best is assumed.
"""

import contextlib
import functools
import random
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from drachma import errors
from drachma.api import codec
from drachma.api import gates as feature
from drachma.server import mediatypes, status
from drachma.server.access import access, authentication
from drachma.server.calls.call import Body, Call, Target
from drachma.server.kinds import builtin
from drachma.server.pipeline import phases, services
from drachma.server.pipeline.answer import Unstored
from drachma.server.pipeline.dispatcher import Dispatcher
from drachma.server.surface import apisurface, resources, verbs
from drachma.server.surface.strategy import Environment
from drachma.store import memory
from drachma.validation import authorization as access_rules

DEFAULT_NAMESPACE: Final = "default"
"""Where objects go that name no namespace."""

_DRY_RUN: Final = {"dryRun": ("All",), "fieldValidation": ("Strict",)}
_NAMESPACE: Final = ("v1", "Namespace")


class Verdict(NamedTuple):
    """What a server would say about a document: ``refusal`` is the Status of one that it does not take."""

    resource: resources.Resource
    name: str
    refusal: Mapping[str, Any] | None
    warnings: tuple[str, ...]
    stored: Mapping[str, Any] | None = None
    """What it would store of one that it does take: with its defaults, and without a status."""


class Judge:
    """Gives verdicts on documents that belong together."""

    def __init__(self, *, gates: feature.Gates, clock: Callable[[], datetime]) -> None:
        namespaces, nothing = memory.MemoryStore(), memory.MemoryStore()
        environment = Environment(gates=gates, store=namespaces)
        surface = self._surface = apisurface.ApiSurface((*builtin.KINDS, *builtin.FIRST_ALPHA), environment=environment)

        def dispatcher(store: memory.MemoryStore) -> Dispatcher:
            chance = _Placeholders()
            standard = services.standard(
                store,
                access=access.plain(store, clock=clock),
                make_phases=functools.partial(phases.standard, gates=gates, chance=chance),
                clock=clock,
                chance=chance,
            )
            alone = msgspec.structs.replace(standard, phases=standard.phases.without_cluster())
            return Dispatcher(alone, surface)

        self._cluster: Final = dispatcher(namespaces)
        self._dispatcher: Final = dispatcher(nothing)

    async def assume(self, documents: Iterable[Any]) -> None:
        """Takes the namespaces among these documents for those of the cluster, and others that they name for good."""
        objects = [document for document in documents if isinstance(document, dict)]
        api_version, kind = _NAMESPACE
        for document in objects:
            if (document.get("apiVersion"), document.get("kind")) == _NAMESPACE:
                await self._establish(document)
        for name in sorted({_namespace(document) for document in objects}):
            metadata = {"name": name, "labels": {access_rules.ADMIN_ACCESS_LABEL: "true"}}
            await self._establish({"apiVersion": api_version, "kind": kind, "metadata": metadata})

    async def judge(self, document: Any) -> Verdict:
        """The verdict on one of them.

        Raises:
            errors.DecodeError: it is not an object of a kind that is served.
        """
        call = self._call(document)
        name, refusal, stored = _title(document), None, None
        try:
            answer = await self._dispatcher.dispatch(call)
            assert isinstance(answer.content, Unstored), "a dry run leaves nothing in the store"
            stored = answer.content.document
            name = stored["metadata"]["name"]
        except status.StatusError as error:
            refusal = error.document
        return Verdict(call.target.resource, name, refusal, tuple(call.warnings), stored)

    async def _establish(self, namespace: dict[str, Any]) -> None:
        """Has a namespace in the cluster, unless it is there already; what is wrong with one is said by its verdict."""
        call = msgspec.structs.replace(self._call(namespace), query={})
        with contextlib.suppress(status.StatusError):
            await self._cluster.dispatch(call)

    def _call(self, document: Any) -> Call:
        api_version, kind = codec.type_meta(document)
        resource = self._surface.of_kind(api_version, kind)
        if resource is None:
            raise errors.DecodeError(f"unknown kind {kind} in {api_version}; served are {self._kinds()}")
        version = api_version.rpartition("/")[2]
        namespace = _namespace(document) if resource.namespaced else ""
        deprecation = resources.deprecation(resource, version)
        return Call(
            user=authentication.ADMIN,
            verb=verbs.CREATE,
            surface=self._surface,
            target=Target(resource, version, namespace, "", None),
            body=Body(msgspec.json.encode(document), mediatypes.JSON),
            query=_DRY_RUN,
            user_agent="drachma",
            warnings=[deprecation] if deprecation else [],
        )

    def _kinds(self) -> str:
        served = self._surface.resources
        return ", ".join(f"{each.kind} ({', '.join(map(each.api_version, each.versions))})" for each in served)


class _Placeholders(random.Random):
    """No chance at all: generated names show that they are."""

    def choices(self, population: Any, *_args: Any, k: int = 1, **_weights: Any) -> list[Any]:
        return ["x"] * k


def _namespace(document: Mapping[str, Any]) -> str:
    """Where an object goes; what is wrong with that of an odd type is found when the object is read."""
    namespace = _metadata(document).get("namespace")
    return namespace if isinstance(namespace, str) and namespace else DEFAULT_NAMESPACE


def _title(document: Mapping[str, Any]) -> str:
    metadata = _metadata(document)
    return str(metadata.get("name") or metadata.get("generateName") or "")


def _metadata(document: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = document.get("metadata")
    return metadata if isinstance(metadata, dict) else {}
