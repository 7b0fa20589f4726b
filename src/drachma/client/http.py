"""The client for any Kubernetes API server, over HTTP with aiohttp.

``connect`` makes one from a kubeconfig or, inside a cluster, from the pod's service account. Kinds that are served in
several versions are spoken in the newest that both sides know, and converted here.
"""

import os
import pathlib
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Self, TypeVar

from drachma import errors
from drachma.api import codec, meta, pod, serviceaccount
from drachma.client import (
    access,
    backoff,
    bodies,
    discovery,
    httpwatch,
    incluster,
    kubeconfig,
    patches,
    protocol,
    target,
    transport,
    wire,
)

ObjectT = TypeVar("ObjectT", bound=meta.Object)

WATCH_SECONDS: Final = (300, 600)
"""Between which times a watch is ended by the server unless told; spread, so that not all come back at once."""

_LOG_SECONDS: Final = 4 * 3600.0
"""How long a container may be silent to whom follows its log, as with a kubelet."""

_GRACE_SECONDS: Final = 30
"""How long after its end a silent watch is taken for dead."""


def find_access(path: pathlib.Path | None = None, *, context: str = "") -> access.Access:
    """The kubeconfig named or found where kubectl looks; inside a cluster and without one, the service account."""
    is_named = path is not None or context or os.environ.get("KUBECONFIG")
    home = pathlib.Path.home()
    if not is_named and incluster.is_inside(os.environ) and not (home / ".kube" / "config").exists():
        return incluster.load(environment=os.environ)
    return kubeconfig.load(path, context=context, environment=os.environ, home=home)


class HttpClient:
    """See ``protocol.Client`` for what it promises. ``manager`` owns the fields that this client writes."""

    def __init__(
        self,
        reached: access.Access,
        *,
        manager: str = "drachma",
        time: transport.Clock,
        retries: backoff.Retries | None = None,
        chance: random.Random | None = None,
        timeout_seconds: float = 60.0,
        is_strict: bool = False,
    ) -> None:
        """Where it ``is_strict``, the server refuses fields that a kind does not have, as it does for kubectl."""
        self.access: Final = reached
        self._managed: Final = bodies.write_options(manager, is_strict=is_strict)
        self._chance: Final = chance or random.Random()
        self._transport: Final = transport.Transport(
            reached,
            time=time,
            retries=retries or backoff.Retries(),
            chance=self._chance,
            timeout_seconds=timeout_seconds,
        )
        self._discovery: Final = discovery.Discovery(self._transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def show(self, key_pair: access.KeyPair) -> None:
        """Shows another client certificate from the next request on: the one before is about to end."""
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
        seconds = timeout_seconds if timeout_seconds is not None else self._chance.randint(*WATCH_SECONDS)
        query = {
            **bodies.selected(resource, selection),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(seconds),
        }
        path = resource.path(version, selection.namespace)
        request = transport.Request(method="GET", path=path, query=query, accept=_accept(resource), is_idempotent=True)
        async with self._transport.stream(request, idle_seconds=seconds + _GRACE_SECONDS) as body:
            yield httpwatch.HttpWatch(body, wire.reader(resource, version), address=self.access.server + path)

    async def get_document(self, kind: target.Of[Any], name: str, *, namespace: str = "") -> protocol.Document:
        resource, version = await self._resolve(kind)
        path = _object_path(resource, version, namespace, name=name)
        data = await self._transport.send(transport.Request(method="GET", path=path, is_idempotent=True))
        return wire.document(data, resource)

    async def read_log(self, namespace: str, name: str, *, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        """The log of a pod's container as it comes; the query is PodLogOptions'."""
        path = _object_path(target.of(pod.Pod), "v1", namespace, name=name, subresource="log")
        request = transport.Request(method="GET", path=path, query=query, accept="*/*", is_idempotent=True)
        async with self._transport.stream(request, idle_seconds=_LOG_SECONDS) as body:
            async for piece in body.iter_any():
                yield piece

    async def resources(self) -> Sequence[target.Target[meta.Object]]:
        return await self._discovery.resources()

    async def openapi(self, group: str, version: str) -> protocol.Document | None:
        return await self._discovery.openapi(group, version)

    # Writing

    async def create(self, made: ObjectT) -> ObjectT:
        resource, version = await self._resolve(type(made))
        body = codec.encode_json(made, api_version=resource.api_version(version))
        data = await self._post(resource, version, made.metadata.namespace, body=body)
        return wire.reader(resource, version).object(data)

    async def create_document(self, kind: target.Of[Any], document: Mapping[str, Any]) -> protocol.Document:
        resource, version = await self._resolve(kind)
        namespace = bodies.namespace_of(document)
        return wire.document(await self._post(resource, version, namespace, body=bodies.encode(document)), resource)

    async def update(self, changed: ObjectT, *, subresource: str = "") -> ObjectT:
        resource, version = await self._resolve(type(changed))
        bodies.check_update(resource, changed)
        body = codec.encode_json(changed, api_version=resource.api_version(version))
        at = _object_path(
            resource, version, changed.metadata.namespace, name=changed.metadata.name, subresource=subresource
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
        if resource.is_reshaped(version) and patch.touches_spec:
            problem = (
                f"spec cannot be patched: the server has {resource.api_version(version)}, which is shaped differently"
            )
            raise errors.InvalidValueError(f"{resource.qualified} {name!r}: {problem}; update the whole object")
        query = self._managed
        if patch.media_type == patches.APPLY:
            patch = bodies.completed(patch, resource, version, name=name)
            query = {**query, "force": "true"} if patch.is_forced else query
        data = await self._transport.send(
            transport.Request(
                method="PATCH",
                path=_object_path(resource, version, namespace, name=name, subresource=subresource),
                query=query,
                body=patch.data,
                content_type=patch.media_type,
                accept=_accept(resource),
                is_idempotent=patch.is_idempotent,
            )
        )
        return wire.reader(resource, version).object(data)

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
                query=bodies.selected(resource, selection),
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

    async def _post_below(self, about: pod.Pod, subresource: str, *, body: protocol.Document) -> None:
        resource = target.of(pod.Pod)
        path = _object_path(resource, "v1", about.metadata.namespace, name=about.metadata.name, subresource=subresource)
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

    async def _put(self, path: str, body: bytes) -> bytes:
        # A repeated update whose first try was heard is refused as a conflict, so repeating does no harm.
        return await self._transport.send(
            transport.Request(method="PUT", path=path, query=self._managed, body=body, is_idempotent=True)
        )


def _object_path(
    resource: target.Target[Any], version: str, namespace: str, *, name: str, subresource: str = ""
) -> str:
    resource.check_place(name, namespace)
    return resource.path(version, namespace, name=name, subresource=subresource)


def _accept(resource: target.Target[Any], *, is_list: bool = False) -> str:
    """Metadata only where no more is read, to spare the wire; whole objects from servers that cannot."""
    if resource.model is not meta.Object:
        return "application/json"
    form = "PartialObjectMetadataList" if is_list else "PartialObjectMetadata"
    return f"application/json;as={form};g=meta.k8s.io;v=v1,application/json"
