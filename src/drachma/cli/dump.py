"""``drachma dump``: a live cluster as files, as far as decisions about pods, devices and queues depend on it."""

from __future__ import annotations

import asyncio
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from drachma import errors
from drachma.cli import options

if TYPE_CHECKING:
    from drachma.api import meta
    from drachma.client.target import Target

_WORKLOADS: Final = {"Job": "jobs", "PriorityClass": "priorityclasses"}
"""Kinds that future pods depend on, in addition to those of queueing."""


def dump(
    folder: Annotated[pathlib.Path, typer.Argument(help="Folder to write; it must be empty or not exist.")],
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
) -> None:
    """Write the state that scheduling decisions depend on into a folder, to replay them elsewhere.

    Other commands read the folder with -f. It has one file for each kind. Fields that no decision reads are left out,
    such as the commands and environment variables of pods.
    """
    from drachma.cli import clusters
    from drachma.client import target
    from drachma.simulate.clusterstate import KINDS

    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise errors.InvalidValueError(f"{folder}: is not empty: a dump needs a folder of its own")
        state, workloads = asyncio.run(clusters.read_live_with_workloads(kubeconfig, context))
        for kind in KINDS:
            resource = target.of(kind)
            _write(folder, resource.plural, [_encode(each, resource) for each in state.all(kind)])
        for resource, objects in _read_queueing(kubeconfig, context).items():
            _write(folder, resource.plural, [_encode(each, resource) for each in objects])
        for name, plural in _WORKLOADS.items():
            _write(folder, plural, [msgspec.json.encode(each) for each in workloads if each["kind"] == name])
    except OSError as error:
        raise errors.InvalidValueError(f"{folder}: {error.strerror}") from None


def _read_queueing(kubeconfig: pathlib.Path | None, context: str) -> dict[Target[Any], list[meta.Object]]:
    """Return the objects of queueing's own kinds; none if the API server does not serve them."""
    from drachma.cli import clusters
    from drachma.client import target
    from drachma.simulate import clusterstate, queueingstate

    try:
        objects = asyncio.run(clusters.read_live_queueing(kubeconfig, context))
    except errors.ObjectNotFoundError:
        return {}
    by_resource: dict[Target[Any], list[meta.Object]] = {}
    for kind in queueingstate.KINDS:
        if kind not in clusterstate.KINDS:
            resource = target.of(kind)
            by_resource[resource] = [each for each in objects if isinstance(each, resource.model)]
    return by_resource


def _write(folder: pathlib.Path, plural: str, objects: Sequence[bytes]) -> None:
    content = b'{"apiVersion":"v1","kind":"List","items":[\n%s]}\n' % b",\n".join(objects)
    (folder / f"{plural}.json").write_bytes(content)
    typer.echo(f"{len(objects)} {plural}")


def _encode(each: meta.Object, resource: Target[Any]) -> bytes:
    from drachma.api import codec, scheme
    from drachma.queueing.kinds import decoding
    from drachma.scheduler.recording import essentials

    if scheme.has(resource.model):
        return codec.encode_json(essentials.of(each))
    head = {"apiVersion": resource.api_version(resource.versions[0]), "kind": resource.kind}
    return msgspec.json.encode({**head, **decoding.document(each)})
