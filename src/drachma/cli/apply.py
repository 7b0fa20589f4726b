"""``drachma apply``: manifests applied to a cluster, for users without kubectl."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drachma import errors
from drachma.cli import options

if TYPE_CHECKING:
    from drachma.api import meta
    from drachma.client import target
    from drachma.client.http import HttpClient
    from drachma.offline import manifestfiles


def apply(
    file: options.Filename,
    namespace: Annotated[
        str, typer.Option("-n", "--namespace", help="Namespace of objects that name none; the kubeconfig's by default.")
    ] = "",
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
) -> None:
    """Apply manifests to a cluster, as kubectl apply --server-side does.

    Exit code 1: the server refused an object. The objects before it are applied.
    """
    from drachma.client import http
    from drachma.offline import manifestfiles

    sources = manifestfiles.read_all(file)
    access = http.find_access(kubeconfig, context=context)
    asyncio.run(_apply_all(access, sources, namespace=namespace or access.namespace or "default"))


async def _apply_all(access: Any, sources: list[manifestfiles.Source], *, namespace: str) -> None:
    from drachma.client import http
    from drachma.runtime import clock

    async with http.HttpClient(access, clock=clock.SystemClock(), manager="drachma-apply", is_strict=True) as client:
        served: dict[tuple[str, str], target.Target[meta.Object]] = {}
        for source in sources:
            if _kind(source) not in served:
                # Definitions of custom resources among the manifests may have added kinds.
                served = {(each.group, each.kind): each for each in await client.resources(needs_all=False)}
            typer.echo(await _apply(client, served, source, namespace=namespace))


def _kind(source: manifestfiles.Source) -> tuple[str, str]:
    content = source.content
    if not isinstance(content, dict) or not isinstance(content.get("metadata"), dict):
        raise errors.DecodeError(f"{source.place}: expected an object with metadata")
    return str(content.get("apiVersion", "")).rpartition("/")[0], str(content.get("kind"))


async def _apply(
    client: HttpClient,
    served: dict[tuple[str, str], target.Target[meta.Object]],
    source: manifestfiles.Source,
    *,
    namespace: str,
) -> str:
    """Apply one object, and return the line about it."""
    import msgspec

    from drachma.cli import nearest
    from drachma.client import patches

    content = source.content
    resource = served.get(_kind(source))
    if resource is None:
        kinds = {kind for _, kind in served}
        hint = nearest.suggest(str(content.get("kind")), kinds) if content.get("kind") not in kinds else ""
        raise errors.DecodeError(
            f"{source.place}: kind {content.get('kind')} in {content.get('apiVersion')}: not served{hint}"
        )
    resource = msgspec.structs.replace(resource, versions=(str(content["apiVersion"]).rpartition("/")[2],))
    metadata = content["metadata"]
    own = str(metadata.get("namespace") or namespace) if resource.namespaced else ""
    try:
        if not metadata.get("name"):
            created = await client.create_document(resource, {**content, "metadata": {"namespace": own, **metadata}})
            return f"{resource.kind.lower()}/{created['metadata']['name']} created"
        name = str(metadata["name"])
        try:
            before = await client.get_document(resource, name, namespace=own)
        except errors.ObjectNotFoundError:
            before = None
        patch = patches.apply(content, force=True)
        after = await client.patch_document(resource, name, patch=patch, namespace=own)
    except errors.RefusedError as error:
        raise errors.UnreachableError(f"{source.place}: {error}") from error
    word = "created" if before is None else "configured"
    if before is not None and before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]:
        word = "unchanged"
    return f"{resource.kind.lower()}/{name} {word}"
