"""Client for any Kubernetes API server, over HTTP with aiohttp.

Use :func:`find_access` to find a kubeconfig or, inside a cluster, the service account of the pod. Kinds that are served
in several versions are read and written in the newest version that both sides know, and converted here.
"""

import os
import pathlib
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Generic, Self, TypeVar

import aiohttp

from drachma import errors
from drachma.api import codec, meta, pod, resourceclaim, serviceaccount
from drachma.client import (
    access,
    backoff,
    bodies,
    discovery,
    kubeconfig,
    patches,
    protobufclaims,
    protocol,
    target,
    transport,
    wire,
)

ObjectT = TypeVar("ObjectT", bound=meta.Object)

WATCH_SECONDS: Final = (300, 600)
"""Range of the duration of a watch in seconds; random, so that not all watches are renewed at once."""

_JSON: Final = "application/json"

_EDIT_ATTEMPTS: Final = 5
"""Attempts to edit a claim that others change at the same time."""

_LOG_SECONDS: Final = 4 * 3600.0
"""Longest silence of a container while its log is followed, as with a kubelet."""

_GRACE_SECONDS: Final = 30
"""Seconds after the end of a silent watch at which the connection counts as dead."""


def find_access(path: pathlib.Path | None = None, *, context: str = "") -> access.Access:
    """Return the access of the kubeconfig that is named or that kubectl would use; inside a cluster without one, the
    service account.
    """
    is_named = path is not None or context or os.environ.get("KUBECONFIG")
    home = pathlib.Path.home()
    if not is_named and access.is_in_cluster(os.environ) and not (home / ".kube" / "config").exists():
        return access.load_service_account(environment=os.environ)
    return kubeconfig.load(path, context=context, environment=os.environ, home=home)


class HttpWatch(Generic[ObjectT]):
    """Events in the body of one answer; see ``protocol.Watch``."""

    def __init__(self, body: aiohttp.StreamReader, reader: wire.Reader[ObjectT], *, address: str) -> None:
        self._body: Final = body
        self._reader: Final = reader
        self._address: Final = address
        self._incomplete: list[bytes] = []
        self._failure: errors.DrachmaError | None = None

    async def batch(self) -> Sequence[protocol.Event[ObjectT]]:
        while True:
            if self._failure is not None:
                raise self._failure
            try:
                data = await self._body.readany()
            except (aiohttp.ClientError, TimeoutError, OSError) as failure:
                problem = str(failure) or type(failure).__name__
                raise errors.UnreachableError(f"{self._address}: the watch broke off: {problem}") from failure
            if not data:
                return ()
            events = self._events(self._lines(data))
            if events:
                return events

    def _lines(self, data: bytes) -> list[bytes]:
        """Return the lines that are complete, and keep the beginning of the next. Large lines come in many parts."""
        *complete, beginning = data.split(b"\n")
        if complete and self._incomplete:
            complete[0] = b"".join((*self._incomplete, complete[0]))
            self._incomplete.clear()
        if beginning:
            self._incomplete.append(beginning)
        return complete

    def _events(self, lines: list[bytes]) -> list[protocol.Event[ObjectT]]:
        """Return the events of lines up to the first that is an error. The next call raises that error."""
        events: list[protocol.Event[ObjectT]] = []
        try:
            for line in lines:
                if line.strip():
                    events.append(self._reader.event(line))  # noqa: PERF401 (events before an error count)
        except (errors.RefusedError, errors.DecodeError) as failure:
            self._failure = failure
        return events


class HttpClient:
    """See ``protocol.Client``. ``manager`` owns the fields that this client writes."""

    def __init__(
        self,
        settings: access.Access,
        *,
        manager: str = "drachma",
        clock: transport.Clock,
        retries: backoff.Retries | None = None,
        rng: random.Random | None = None,
        timeout_seconds: float = 60.0,
        is_strict: bool = False,
        observe: transport.Observe = lambda method, code, seconds: None,
    ) -> None:
        """If the client ``is_strict``, the server refuses fields that a kind does not have, as it does for kubectl."""
        self.access: Final = settings
        self._managed: Final = bodies.write_options(manager, is_strict=is_strict)
        self._rng: Final = rng or random.Random()
        self._transport: Final = transport.Transport(
            settings,
            clock=clock,
            retries=retries or backoff.Retries(),
            rng=self._rng,
            timeout_seconds=timeout_seconds,
            observe=observe,
        )
        self._discovery: Final = discovery.Discovery(self._transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def show(self, key_pair: access.KeyPair) -> None:
        """Use another client certificate from the next request on, because the current one is about to expire."""
        self._transport.show(key_pair)

    async def close(self) -> None:
        await self._transport.close()

    # Reading

    async def get(self, kind: target.Of[ObjectT], name: str, *, namespace: str = "") -> ObjectT:
        resource, version = await self._resolve(kind)
        path = _object_path(resource, version, namespace, name=name)
        data = await self._transport.send(
            transport.Request(method="GET", path=path, accept=_accept(resource), is_idempotent=True)
        )
        return wire.reader(resource, version).object(data)

    async def list(
        self,
        kind: target.Of[ObjectT],
        selection: protocol.Selection = protocol.EVERYTHING,
        *,
        limit: int = 0,
        continue_token: str = "",
    ) -> protocol.Listing[ObjectT]:
        resource, version = await self._resolve(kind)
        query = bodies.list_options(resource, selection, limit=limit, continue_token=continue_token)
        data = await self._transport.send(
            transport.Request(
                method="GET",
                path=resource.path(version, selection.namespace),
                query=query,
                accept=_accept(resource, is_list=True),
                is_idempotent=True,
            )
        )
        return wire.reader(resource, version).listing(data)

    @asynccontextmanager
    async def watch(
        self,
        kind: target.Of[ObjectT],
        selection: protocol.Selection = protocol.EVERYTHING,
        *,
        resource_version: str,
        timeout_seconds: int | None = None,
    ) -> AsyncIterator[protocol.Watch[ObjectT]]:
        resource, version = await self._resolve(kind)
        bodies.check_watch(resource, resource_version)
        seconds = timeout_seconds if timeout_seconds is not None else self._rng.randint(*WATCH_SECONDS)
        query = {
            **bodies.selection_options(resource, selection),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(seconds),
        }
        path = resource.path(version, selection.namespace)
        request = transport.Request(method="GET", path=path, query=query, accept=_accept(resource), is_idempotent=True)
        async with self._transport.stream(request, idle_seconds=seconds + _GRACE_SECONDS) as body:
            yield HttpWatch(body, wire.reader(resource, version), address=self.access.server + path)

    async def get_document(
        self, kind: target.Of[Any], name: str, *, namespace: str = "", subresource: str = ""
    ) -> protocol.Document:
        resource, version = await self._resolve(kind)
        path = _object_path(resource, version, namespace, name=name, subresource=subresource)
        data = await self._transport.send(transport.Request(method="GET", path=path, is_idempotent=True))
        return wire.document(data, resource)

    async def read_log(self, namespace: str, name: str, *, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        """Yield the log of a pod's container as it comes in. The query has the fields of PodLogOptions."""
        path = _object_path(target.of(pod.Pod), "v1", namespace, name=name, subresource="log")
        request = transport.Request(method="GET", path=path, query=query, accept="*/*", is_idempotent=True)
        async with self._transport.stream(request, idle_seconds=_LOG_SECONDS) as body:
            async for piece in body.iter_any():
                yield piece

    async def resources(self, *, needs_all: bool = True) -> Sequence[target.Target[meta.Object]]:
        """Return all resources; without ``needs_all``, not those of extension API servers that do not answer."""
        return await self._discovery.resources(needs_all=needs_all)

    async def server_version(self) -> str:
        """Return the version of the server, such as ``v1.37.1``."""
        return await self._discovery.server_version()

    async def served_version(self, kind: target.Of[Any]) -> str:
        """Return the version that this client uses for a kind. Raises ObjectNotFoundError if the server has none."""
        return (await self._resolve(kind))[1]

    async def openapi(self, group: str, version: str) -> protocol.Document | None:
        return await self._discovery.openapi(group, version)

    # Writing

    async def create(self, new: ObjectT) -> ObjectT:
        resource, version = await self._resolve(type(new))
        body = codec.encode_json(new, api_version=resource.api_version(version))
        data = await self._post(resource, version, new.metadata.namespace, body=body)
        return wire.reader(resource, version).object(data)

    async def create_document(self, kind: target.Of[Any], document: Mapping[str, Any]) -> protocol.Document:
        resource, version = await self._resolve(kind)
        namespace = bodies.namespace_of(document)
        return wire.document(await self._post(resource, version, namespace, body=bodies.encode(document)), resource)

    async def update(self, updated: ObjectT, *, subresource: str = "") -> ObjectT:
        resource, version = await self._resolve(type(updated))
        bodies.check_update(resource, updated)
        body = codec.encode_json(updated, api_version=resource.api_version(version))
        at = _object_path(
            resource, version, updated.metadata.namespace, name=updated.metadata.name, subresource=subresource
        )
        return wire.reader(resource, version).object(await self._put(at, body))

    async def update_document(
        self, kind: target.Of[Any], document: Mapping[str, Any], *, subresource: str = ""
    ) -> protocol.Document:
        resource, version = await self._resolve(kind)
        namespace, name = bodies.namespace_of(document), bodies.name_of(document)
        at = _object_path(resource, version, namespace, name=name, subresource=subresource)
        return wire.document(await self._put(at, bodies.encode(document)), resource)

    async def patch(
        self,
        kind: target.Of[ObjectT],
        name: str,
        *,
        patch: patches.Patch,
        namespace: str = "",
        subresource: str = "",
    ) -> ObjectT:
        resource, version = await self._resolve(kind)
        path = _object_path(resource, version, namespace, name=name, subresource=subresource)
        data = await self._patch(resource, version, path, patch=patch, name=name, accept=_accept(resource))
        return wire.reader(resource, version).object(data)

    async def patch_stored(
        self,
        kind: target.Of[ObjectT],
        name: str,
        *,
        patch: patches.Patch,
        namespace: str = "",
        subresource: str = "",
    ) -> protocol.StoredObject[ObjectT]:
        resource, version = await self._resolve(kind)
        path = _object_path(resource, version, namespace, name=name, subresource=subresource)
        data = await self._patch(resource, version, path, patch=patch, name=name)
        return protocol.StoredObject(wire.reader(resource, version).object(data), wire.BodySource(data))

    async def patch_document(
        self,
        kind: target.Of[Any],
        name: str,
        *,
        patch: patches.Patch,
        namespace: str = "",
        subresource: str = "",
    ) -> protocol.Document:
        resource, version = await self._resolve(kind)
        path = _object_path(resource, version, namespace, name=name, subresource=subresource)
        return wire.document(await self._patch(resource, version, path, patch=patch, name=name), resource)

    async def _patch(
        self,
        resource: target.Target[Any],
        version: str,
        path: str,
        *,
        patch: patches.Patch,
        name: str,
        accept: str = _JSON,
    ) -> bytes:
        if resource.is_reshaped(version) and patch.touches_spec:
            problem = (
                f"spec cannot be patched: the server has {resource.api_version(version)}, which is shaped differently"
            )
            raise errors.InvalidValueError(f"{resource.qualified} {name!r}: {problem}; update the whole object")
        query = self._managed
        if patch.media_type == patches.APPLY:
            patch = bodies.complete_apply(patch, resource, version, name=name)
            query = {**query, "force": "true"} if patch.is_forced else query
        request = transport.Request(
            method="PATCH",
            path=path,
            query=query,
            body=patch.data,
            content_type=patch.media_type,
            accept=accept,
            is_idempotent=patch.is_idempotent,
        )
        try:
            return await self._transport.send(request)
        except errors.InvalidObjectError as refusal:
            has_bytes = resource.model is resourceclaim.ResourceClaim and protobufclaims.can_edit(patch)
            if not has_bytes or not protobufclaims.is_caused_by_lost_bytes(refusal):
                raise
        return await self._edit_claim(path, patch)

    async def _edit_claim(self, path: str, patch: patches.Patch) -> bytes:
        """Carry out a patch of a claim so that the bytes of opaque parameters stay; see ``protobufclaims``."""
        for attempt in range(1, _EDIT_ATTEMPTS + 1):
            answer_document = await self._transport.send(
                transport.Request(method="GET", path=path, accept=protobufclaims.MEDIA_TYPE, is_idempotent=True)
            )
            body = protobufclaims.edit(answer_document, patch)
            try:
                return await self._put(path, body, content_type=protobufclaims.MEDIA_TYPE)
            except errors.ObjectConflictError:
                # A patch that requires no version is meant for any version.
                if attempt == _EDIT_ATTEMPTS or b'"resourceVersion"' in patch.data:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def delete(
        self,
        kind: target.Of[Any],
        name: str,
        *,
        namespace: str = "",
        preconditions: patches.Preconditions = patches.NONE,
        grace_period_seconds: int | None = None,
        propagation: protocol.Propagation | None = None,
    ) -> None:
        resource, version = await self._resolve(kind)
        options = bodies.delete_options(preconditions, grace_period_seconds, propagation=propagation)
        path = _object_path(resource, version, namespace, name=name)
        body = bodies.encode(options)
        await self._transport.send(transport.Request(method="DELETE", path=path, body=body, is_idempotent=True))

    async def delete_collection(
        self, kind: target.Of[Any], selection: protocol.Selection, *, propagation: protocol.Propagation | None = None
    ) -> None:
        resource, version = await self._resolve(kind)
        await self._transport.send(
            transport.Request(
                method="DELETE",
                path=resource.path(version, selection.namespace),
                query=bodies.selection_options(resource, selection),
                body=bodies.encode(bodies.delete_options(patches.NONE, None, propagation=propagation)),
                is_idempotent=True,
            )
        )

    async def bind(self, bound: pod.Pod, *, node: str) -> None:
        await self._post_below(bound, "binding", body=bodies.binding(bound, node))

    async def evict(self, evicted: pod.Pod, *, grace_period_seconds: int | None = None) -> None:
        await self._post_below(evicted, "eviction", body=bodies.eviction(evicted, grace_period_seconds))

    async def request_token(self, namespace: str, account: str, *, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        path = _object_path(
            target.of(serviceaccount.ServiceAccount), "v1", namespace, name=account, subresource="token"
        )
        body = bodies.encode(bodies.token_request(spec))
        data = await self._transport.send(transport.Request(method="POST", path=path, body=body, is_idempotent=False))
        return bodies.token_status(data)

    # Both

    async def _resolve(self, kind: target.Of[ObjectT]) -> tuple[target.Target[ObjectT], str]:
        resource = target.of(kind)
        return resource, await self._discovery.version(resource)

    async def _post(self, resource: target.Target[Any], version: str, namespace: str, *, body: bytes) -> bytes:
        bodies.check_create(resource, namespace)
        path = resource.path(version, namespace)
        return await self._transport.send(
            transport.Request(method="POST", path=path, query=self._managed, body=body, is_idempotent=False)
        )

    async def _post_below(self, subject: pod.Pod, subresource: str, *, body: protocol.Document) -> None:
        resource = target.of(pod.Pod)
        path = _object_path(
            resource, "v1", subject.metadata.namespace, name=subject.metadata.name, subresource=subresource
        )
        await self._transport.send(
            transport.Request(
                method="POST",
                path=path,
                query=self._managed,
                body=bodies.encode(body),
                is_idempotent=False,
                waits_when_throttled=subresource != "eviction",
            )
        )

    async def _put(self, path: str, body: bytes, *, content_type: str = _JSON) -> bytes:
        # Repeating is safe: if the first attempt was stored, the second one is refused as a conflict.
        return await self._transport.send(
            transport.Request(
                method="PUT", path=path, query=self._managed, body=body, content_type=content_type, is_idempotent=True
            )
        )


def _object_path(
    resource: target.Target[Any], version: str, namespace: str, *, name: str, subresource: str = ""
) -> str:
    resource.check_place(name, namespace)
    return resource.path(version, namespace, name=name, subresource=subresource)


def _accept(resource: target.Target[Any], *, is_list: bool = False) -> str:
    """Return the media types to ask for: metadata only if no more is read, else whole objects."""
    if resource.model is not meta.Object:
        return _JSON
    form = "PartialObjectMetadataList" if is_list else "PartialObjectMetadata"
    return f"application/json;as={form};g=meta.k8s.io;v=v1,application/json"
