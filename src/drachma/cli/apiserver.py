"""``drachma apiserver``: the Kubernetes API on a data directory, for kubectl and everything else that speaks it."""

import asyncio
import datetime as dt
import logging
import pathlib
import random
import tempfile
from typing import Annotated

import typer
import uvloop

from drachma.api import gates as feature
from drachma.server import app as asgi
from drachma.server import authentication, bootstrap, certificates, kubeconfig, serving
from drachma.store import memory, protocol, sqlite


def apiserver(
    data: Annotated[
        pathlib.Path | None,
        typer.Option(help="The data directory; without one, everything is forgotten when the server stops."),
    ] = None,
    listen: Annotated[str, typer.Option(help="host:port to listen on; port 0 takes any.")] = "127.0.0.1:6443",
    kubeconfig_out: Annotated[
        pathlib.Path | None, typer.Option(help="Where to write a kubeconfig for the admin.")
    ] = None,
    feature_gates: Annotated[str, typer.Option(help="Name=true,Other=false; features by upstream's names.")] = "",
) -> None:
    """Serve the Kubernetes API.

    TLS certificates and the admin's token are made on the first start and kept in the data directory.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    gates = feature.Gates.parse(feature_gates)
    address = serving.Address.parse(listen)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if data is not None:
            runner.run(_run(data, address, kubeconfig_out, gates=gates))
        else:
            with tempfile.TemporaryDirectory(prefix="drachma-") as folder:
                runner.run(_run(pathlib.Path(folder), address, kubeconfig_out, gates=gates, is_kept=False))


async def _run(
    folder: pathlib.Path,
    address: serving.Address,
    kubeconfig_out: pathlib.Path | None,
    *,
    gates: feature.Gates,
    is_kept: bool = True,
) -> None:
    store: protocol.Store = await sqlite.SqliteStore.open(folder) if is_kept else memory.MemoryStore()
    try:
        opened, bound = serving.bind(address)
        with opened:
            files = certificates.ensure(folder / "pki", hosts=bound.hosts, now=_now())
            token = kubeconfig.ensure_token(folder / "admin.token")
            application = asgi.Application(
                store,
                authentication.Authenticator({token: authentication.ADMIN}),
                clock=_now,
                chance=random.SystemRandom(),
                gates=gates,
            )
            await bootstrap.populate(application.services.registry)
            server = serving.Server(application, files)
            serve = asyncio.create_task(server.serve(sockets=[opened]))
            while not server.started and not serve.done():
                await asyncio.sleep(0.01)
            if kubeconfig_out is not None:
                content = kubeconfig.document(bound.url, authority=files.authority.read_bytes(), token=token)
                kubeconfig.write(kubeconfig_out, content)
            typer.echo(f"serving on {bound.url}")
            await serve
    finally:
        await store.close()


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
