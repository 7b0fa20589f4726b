"""Verdicts of the server on documents, without a cluster, for ``drachma validate``.

Documents are created in a dry run on an empty store, by the pipeline that serves clients. Steps that need the cluster
are skipped: existence of namespaces, priority classes and runtime classes, and capabilities of nodes. Only namespaces
are known, because their labels decide about privileged claims: those among the documents are used as they are, and all
others are assumed to allow everything. Custom resources are checked by the definitions among the documents.
"""

import contextlib
import functools
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from drachma import errors
from drachma.api import codec
from drachma.api import gates as feature
from drachma.server import mediatypes, status
from drachma.server.access import access, authentication
from drachma.server.admission import hooks
from drachma.server.calls.call import Body, Call, Target
from drachma.server.kinds import builtin
from drachma.server.kinds.apiextensions import customresource
from drachma.server.kinds.apiextensions.definition import Definition
from drachma.server.pipeline import services, standardphases
from drachma.server.pipeline.answer import Unstored
from drachma.server.pipeline.dispatcher import Dispatcher
from drachma.server.surface import apisurface, resources, verbs
from drachma.server.surface.strategy import Environment
from drachma.store import memory
from drachma.validation import authorization as access_rules

DEFAULT_NAMESPACE: Final = "default"
"""Namespace of objects that name none."""

_DRY_RUN: Final = {"dryRun": ("All",), "fieldValidation": ("Strict",)}
_NAMESPACE: Final = ("v1", "Namespace")
_DEFINITION: Final = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


class Verdict(NamedTuple):
    """Verdict on a document; ``refusal`` is the Status if the server refuses it."""

    resource: resources.Resource
    name: str
    refusal: Mapping[str, Any] | None
    warnings: tuple[str, ...]
    stored: Mapping[str, Any] | None = None
    """The document as it would be stored: with defaults and without a status."""


class Judge:
    """Gives verdicts on documents that belong together."""

    def __init__(
        self,
        *,
        gates: feature.Gates,
        clock: Callable[[], datetime],
        kinds: Iterable[apisurface.Kind] = (),
        functions: Sequence[hooks.Hook] = (),
    ) -> None:
        """``kinds`` are served in addition to Kubernetes' own, and ``functions`` check objects like webhooks."""
        namespaces, nothing = memory.MemoryStore(), memory.MemoryStore()
        environment = Environment(gates=gates, store=namespaces)
        served = (*builtin.KINDS, *builtin.FIRST_ALPHA, *kinds)
        surface = apisurface.ApiSurface(served, environment=environment)

        def dispatcher(store: memory.MemoryStore) -> Dispatcher:
            rng = _Placeholders()
            standard = services.standard(
                store,
                access=access.plain(store, clock=clock),
                make_phases=functools.partial(standardphases.make, gates=gates, rng=rng, functions=functions),
                clock=clock,
                rng=rng,
            )
            alone = msgspec.structs.replace(standard, phases=standard.phases.without_cluster())
            return Dispatcher(alone, surface)

        self._surface = surface
        self._cluster: Final = dispatcher(namespaces)
        self._dispatcher: Final = dispatcher(nothing)

    async def assume(self, documents: Iterable[Any]) -> None:
        """Take the namespaces and definitions among these documents as they are.

        Other namespaces that they name are assumed.
        """
        objects = [document for document in documents if isinstance(document, dict)]
        api_version, kind = _NAMESPACE
        for document in objects:
            if (document.get("apiVersion"), document.get("kind")) == _NAMESPACE:
                await self._establish(document)
        for name in sorted({_namespace(document) for document in objects}):
            metadata = {"name": name, "labels": {access_rules.ADMIN_ACCESS_LABEL: "true"}}
            await self._establish({"apiVersion": api_version, "kind": kind, "metadata": metadata})

        for document in objects:
            if (document.get("apiVersion"), document.get("kind")) == _DEFINITION:
                await self._define(document)

    async def judge(self, document: Any) -> Verdict:
        """Return the verdict on a document.

        Raises:
            errors.DecodeError: it is not an object of a served kind.
        """
        call = self._call(document)
        name, refusal, accepted = _title(document), None, None
        try:
            answer = await self._dispatcher.dispatch(call)
            assert isinstance(answer.content, Unstored), "a dry run leaves nothing in the store"
            accepted = answer.content.document
            name = accepted["metadata"]["name"]
        except status.StatusError as error:
            refusal = error.document
        return Verdict(call.target.resource, name, refusal, tuple(call.warnings), accepted)

    async def _establish(self, document: dict[str, Any]) -> None:
        """Create a namespace or a definition unless it exists. Its problems show in its own verdict."""
        call = msgspec.structs.replace(self._call(document), query={})
        with contextlib.suppress(status.StatusError):
            await self._cluster.dispatch(call)

    async def _define(self, document: dict[str, Any]) -> None:
        """Serve the kind of a valid definition. Problems of a definition show in its own verdict."""
        try:
            verdict = await self.judge(document)
        except errors.DecodeError:
            return
        if verdict.stored is None:
            return
        # No controller has accepted its names, so those of the spec count.
        definition = {key: value for key, value in verdict.stored.items() if key != "status"}
        kind = customresource.kind(Definition(definition, revision=0))
        if all(self._surface.find(kind.group, version, plural=kind.plural) is None for version in kind.versions):
            await self._establish(document)
            self._surface = self._dispatcher.surface = self._surface.with_kinds(kind)

    def _call(self, document: Any) -> Call:
        api_version, kind = codec.type_meta(document)
        resource = self._surface.find_kind(api_version, kind)
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
    """Random numbers that are not random: generated names are visibly placeholders."""

    def choices(self, population: Any, *_args: Any, k: int = 1, **_weights: Any) -> list[Any]:
        return ["x"] * k


def _namespace(document: Mapping[str, Any]) -> str:
    """Return the namespace of an object. A value of the wrong type is reported when the object is read."""
    namespace = _metadata(document).get("namespace")
    return namespace if isinstance(namespace, str) and namespace else DEFAULT_NAMESPACE


def _title(document: Mapping[str, Any]) -> str:
    metadata = _metadata(document)
    return str(metadata.get("name") or metadata.get("generateName") or "")


def _metadata(document: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = document.get("metadata")
    return metadata if isinstance(metadata, dict) else {}
