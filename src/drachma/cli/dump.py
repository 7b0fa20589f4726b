"""``drachma dump``: a live cluster as files, as far as decisions about pods and devices depend on it."""

from __future__ import annotations

import asyncio
import pathlib
from typing import Annotated

import typer

from drachma import errors
from drachma.api import codec, scheme
from drachma.cli import clusters, options
from drachma.simulate.clusterstate import KINDS


def dump(
    folder: Annotated[pathlib.Path, typer.Argument(help="Where to write; it must not exist, or be empty.")],
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
) -> None:
    """Write all that decisions depend on into a folder, so that they can be repeated elsewhere.

    Other commands read it with -f. There is a file a kind. Of pods and nodes, only what decisions read is written.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise errors.InvalidValueError(f"{folder}: is not empty: a dump goes into a folder of its own")
        state = asyncio.run(clusters.live(kubeconfig, context))
        for kind in KINDS:
            objects = state.all(kind)
            items = b",\n".join(codec.encode_json(each) for each in objects)
            content = b'{"apiVersion":"v1","kind":"List","items":[\n%s]}\n' % items
            (folder / f"{scheme.of(kind).plural}.json").write_bytes(content)
            typer.echo(f"{len(objects)} {scheme.of(kind).plural}")
    except OSError as error:
        raise errors.InvalidValueError(f"{folder}: {error.strerror}") from None
