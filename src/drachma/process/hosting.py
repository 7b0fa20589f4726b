"""The API server in this process: a data directory, a socket, TLS, and a clean end. Commands that serve are made of it.

Other components can run beside it on the same event loop. They are told the application, so they reach it without
HTTP; they end before the store closes, and when they fail, the server ends too.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pathlib
import random
import secrets
import tempfile
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from drachma import errors
from drachma.api import gates as feature
from drachma.listening import budget
from drachma.listening import limits as ports
from drachma.process import accessfiles, admissionfiles, apiserver, auditfiles, eventloop, nodebootstrap, storekeeping
from drachma.runtime import KeyPair, clock
from drachma.server import flowdefaults, rolereconciliation
from drachma.server.access import certificates, kubeconfig
from drachma.server.authorisers import modes
from drachma.server.kinds import builtin
from drachma.server.pipeline import expiry
from drachma.server.wire import app as asgi
from drachma.server.wire import nodeconnections, nodeproxy, nodetls, serving
from drachma.store import memory, protocol

_log = logging.getLogger(__name__)

_POLL_SECONDS: Final = 0.01
"""How often to look whether uvicorn listens, of which it tells nobody."""


_KUBELET_CLIENT_BINDING: Final = (
    f"binding drachma:kubelet-client of system:kubelet-api-admin to user:{certificates.KUBELET_CLIENT}"
)
"""Permissions that nodes find when they ask about this server, in the notation of the default roles."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on requests to the API, and on connections to all ports of the process."""

    requests: asgi.Limits = asgi.Limits()
    ports: ports.Limits = ports.Limits()


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What can be chosen; without ``data`` everything is forgotten when the server stops."""

    data: pathlib.Path | None = None
    address: serving.Address
    kubeconfig_out: pathlib.Path | None = None
    bootstrap_kubeconfig_out: pathlib.Path | None = None
    """Where kubelets find how to come in; their tokens must be let in (:class:`accessfiles.AccessOptions`)."""
    gates: feature.Gates = feature.ALL
    access: accessfiles.AccessOptions = accessfiles.DEFAULTS
    event_ttl: float = 3600.0
    """For how many seconds events are kept that nobody writes any more."""
    limits: Limits = Limits()
    disabled_plugins: tuple[str, ...] = ()
    admission_configuration: pathlib.Path | None = None
    audit: auditfiles.AuditOptions = auditfiles.AuditOptions()
    kubelet_certificate_authority: pathlib.Path | None = None
    """Authority that the serving certificates of nodes must be of; without one they are not verified."""
    allows_loopback_nodes: bool = False
    """Whether nodes of other processes may be at loopback addresses of this machine."""
    additions: asgi.Additions = asgi.Additions()
    """What is served beside what every API server has."""
    keeping: storekeeping.Options = storekeeping.Options()
    """Reserve, encryption and backups of the data directory."""
    announce: Callable[[str], object] = lambda _: None
    """Tells people where it serves, once it does."""


_SWEEP_SECONDS: Final = 60.0
"""How often to look which events are due to be forgotten."""


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """What components beside the server get to know; each calls ``ready`` once when it is."""

    application: asgi.Application
    folder: pathlib.Path
    """The data directory, or one that is gone in the end."""
    url: str
    remote_url: str = ""
    authority: bytes
    local_endpoints: nodeconnections.LocalEndpoints
    """Where components register the node endpoints that they serve in this process."""
    signing: KeyPair
    """The server's own authority, whose certificates it lets in."""
    token: str
    ready: Callable[[], None]
    listening: asyncio.Event


Beside = Callable[[Host], Awaitable[None]]
"""Runs beside the server until it is cancelled; when it returns or raises, the server stops."""


def run(options: Options, *beside: Beside) -> None:
    """Serves until a signal, or until something beside the server is done."""
    with eventloop.runner() as runner:
        if options.data is not None:
            runner.run(_run(options, options.data, beside))
        else:
            with tempfile.TemporaryDirectory(prefix="drachma-") as folder:
                runner.run(_run(options, pathlib.Path(folder), beside))


async def _run(options: Options, folder: pathlib.Path, beside: tuple[Beside, ...]) -> None:
    is_kept = options.data is not None
    utc = clock.SystemClock().utc
    ports.raise_descriptor_limit(options.limits.ports)
    budget.PROCESS.limit(options.limits.ports)
    keeper = await storekeeping.open_store(folder, options.keeping) if is_kept else None
    store: protocol.Store = keeper.store if keeper is not None else memory.MemoryStore()
    try:
        opened, bound = serving.bind(options.address)
        with opened:
            files = certificates.ensure(folder / "pki", hosts=bound.hosts, now=utc())
            node_tls = nodetls.NodeTls(
                certificates.kubelet_client(files, now=utc()), authority=options.kubelet_certificate_authority
            )
            local_endpoints = nodeconnections.LocalEndpoints(node_tls)
            token = kubeconfig.ensure_token(folder / "admin.token")
            application = await apiserver.build(
                store,
                utc=utc,
                chance=random.Random(secrets.randbits(256)),
                gates=options.gates,
                limits=options.limits.requests,
                disabled_plugins=options.disabled_plugins,
                pod_security=admissionfiles.load(options.admission_configuration),
                access=accessfiles.load(options.access, folder, store=store, utc=utc, admin_token=token),
                audit=auditfiles.load(options.audit, utc=utc),
                additions=options.additions,
                nodes=nodeproxy.NodeProxy(
                    nodeconnections.Dialer(
                        node_tls,
                        local=local_endpoints,
                        own_port=bound.port,
                        allows_loopback=options.allows_loopback_nodes,
                    )
                ),
            )
            _warn_of_first_alpha(store, options.gates)
            if modes.ALWAYS_ALLOW in options.access.authorization_modes:
                _log.warning("authorization mode AlwaysAllow: whoever is let in may do everything")
            if modes.ROLE_BASED in options.access.authorization_modes:
                roles = f"{_KUBELET_CLIENT_BINDING}\n{options.additions.roles}"
                await rolereconciliation.reconcile(application.dispatcher, more=roles)
            await flowdefaults.populate(application.dispatcher)
            server = serving.Server(application, files, client_authority=options.access.client_ca_file)
            waits = asyncio.Semaphore(0)
            host = Host(
                application=application,
                folder=folder,
                url=bound.url,
                remote_url=bound.remote_url,
                authority=files.authority.read_bytes(),
                local_endpoints=local_endpoints,
                signing=KeyPair(files.authority.read_bytes(), files.authority_key.read_bytes()),
                token=token,
                ready=waits.release,
                listening=asyncio.Event(),
            )
            serve = asyncio.create_task(server.serve(sockets=[opened]), name="API server")
            forgetting = asyncio.create_task(_forget_events(application, seconds=options.event_ttl))
            upkeep = asyncio.create_task(storekeeping.keep(keeper, application.metrics.registry))
            parts = [asyncio.create_task(_part(each, host, server), name=f"beside: {each}") for each in beside]
            try:
                while not server.started and not serve.done():
                    await asyncio.sleep(_POLL_SECONDS)
                host.listening.set()
                announce = asyncio.create_task(_announce(options, host, server, ready=waits, count=len(beside)))
                try:
                    await serve
                finally:
                    await _ended(announce)
            finally:
                await _ended(*parts, forgetting, upkeep)
    finally:
        await store.close()


def _warn_of_first_alpha(store: protocol.Store, gates: feature.Gates) -> None:
    """Log objects of the first alpha that are stored and not served."""
    if gates.on(feature.Gate.FIRST_ALPHA):
        return
    count = sum(len(store.list(kind.key).records) for kind in builtin.FIRST_ALPHA)
    if count:
        _log.warning(
            "%d objects of resource.k8s.io/v1alpha2 are stored and not served: see --enable-first-alpha", count
        )


async def _forget_events(application: asgi.Application, *, seconds: float) -> None:
    passing = clock.SystemClock()
    due = expiry.Expiry(application.dispatcher, plural="events", seconds=seconds)
    while True:
        try:
            await due.sweep(passing.monotonic())
        except (errors.StoreError, errors.RequestError) as error:
            # A disk that is full may have room again.
            _log.warning("events are not forgotten: %s", error)
        await passing.sleep(min(_SWEEP_SECONDS, seconds))


async def _part(beside: Beside, host: Host, server: serving.Server) -> None:
    try:
        await beside(host)
    finally:
        server.should_exit = True


async def _announce(
    options: Options, host: Host, server: serving.Server, *, ready: asyncio.Semaphore, count: int
) -> None:
    """Tells people once everything is ready, and not before."""
    for _ in range(count):
        await ready.acquire()
    try:
        if options.kubeconfig_out is not None:
            content = kubeconfig.document(host.url, authority=host.authority, token=host.token)
            kubeconfig.write(options.kubeconfig_out, content)
        if options.bootstrap_kubeconfig_out is not None:
            newcomer = await nodebootstrap.prepare(host.application.dispatcher, now=clock.SystemClock().utc())
            content = kubeconfig.document(
                host.remote_url or host.url, authority=host.authority, token=newcomer, user="kubelet-bootstrap"
            )
            kubeconfig.write(options.bootstrap_kubeconfig_out, content)
    except errors.RefusedFileError:
        server.should_exit = True
        raise
    elsewhere = f", for other machines on {host.remote_url}" if host.remote_url else ""
    options.announce(f"serving on {host.url}{elsewhere}")


async def _ended(*tasks: asyncio.Task[None]) -> None:
    """Ends tasks; an error that ended one before is raised."""
    for task in tasks:
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError):
            await task
