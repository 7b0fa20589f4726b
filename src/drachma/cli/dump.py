"""``drachma dump``: a live cluster as files, as far as decisions about pods, devices and queues depend on it."""

from __future__ import annotations

import asyncio
import pathlib
from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
import typer

from drachma import errors
from drachma.api import codec, meta, scheme
from drachma.cli import clusters, options, queueingclusters
from drachma.client import target
from drachma.queueing.kinds import decoding
from drachma.scheduler.recording import essentials
from drachma.simulate import queueingstate
from drachma.simulate.clusterstate import KINDS

_AWAITED: Final = {"Job": "jobs", "PriorityClass": "priorityclasses"}
"""What pods are still to come of, beside what queues hold."""


def dump(
    folder: Annotated[pathlib.Path, typer.Argument(help="Where to write; it must not exist, or be empty.")],
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
) -> None:
    """Write all that decisions depend on into a folder, so that they can be repeated elsewhere.

    Other commands read it with -f. There is a file a kind. Only what decisions read is written: of pods
    neither commands nor environment variables.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise errors.InvalidValueError(f"{folder}: is not empty: a dump goes into a folder of its own")
        state, awaited = asyncio.run(clusters.live_with_workloads(kubeconfig, context))
        for kind in KINDS:
            resource = target.of(kind)
            _write(folder, resource.plural, [_encoded(each, resource) for each in state.all(kind)])
        for resource, objects in _queueing(kubeconfig, context).items():
            _write(folder, resource.plural, [_encoded(each, resource) for each in objects])
        for name, plural in _AWAITED.items():
            _write(folder, plural, [msgspec.json.encode(each) for each in awaited if each["kind"] == name])
    except OSError as error:
        raise errors.InvalidValueError(f"{folder}: {error.strerror}") from None


def _queueing(kubeconfig: pathlib.Path | None, context: str) -> dict[target.Target[Any], list[meta.Object]]:
    """What queueing depends on beside all that; nothing on a server without queues."""
    try:
        objects = asyncio.run(queueingclusters.live(kubeconfig, context))
    except errors.ObjectNotFoundError:
        return {}
    found: dict[target.Target[Any], list[meta.Object]] = {}
    for kind in queueingstate.KINDS:
        if kind not in KINDS:
            resource = target.of(kind)
            found[resource] = [each for each in objects if isinstance(each, resource.model)]
    return found


def _write(folder: pathlib.Path, plural: str, objects: Sequence[bytes]) -> None:
    content = b'{"apiVersion":"v1","kind":"List","items":[\n%s]}\n' % b",\n".join(objects)
    (folder / f"{plural}.json").write_bytes(content)
    typer.echo(f"{len(objects)} {plural}")


def _encoded(of: meta.Object, resource: target.Target[Any]) -> bytes:
    if scheme.has(resource.model):
        return codec.encode_json(essentials.of(of))
    head = {"apiVersion": resource.api_version(resource.versions[0]), "kind": resource.kind}
    return msgspec.json.encode({**head, **decoding.document(of)})
