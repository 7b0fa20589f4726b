"""Hosting of the API server in this process: data directory, socket, TLS, and a clean shutdown.

Other components can run next to it on the same event loop. They get the application, so they call it without HTTP. They
end before the store closes, and if one fails, the server ends too.
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
from drachma.listening import addresses, budget
from drachma.listening import limits as ports
from drachma.process import apiserver, eventloop, nodebootstrap, serverfiles, storekeeping
from drachma.runtime import KeyPair, clock, defects
from drachma.server import extensionauthentication, flowdefaults, rolereconciliation
from drachma.server.access import certificates, kubeconfig
from drachma.server.authorisers import modes
from drachma.server.kinds import builtin
from drachma.server.pipeline import expiry
from drachma.server.wire import app as asgi
from drachma.server.wire import limits as requestlimits
from drachma.server.wire import nodeconnections, nodeproxy, nodetls, serving
from drachma.store import memory, protocol

_log = logging.getLogger(__name__)

_POLL_SECONDS: Final = 0.01
"""Time between two checks whether uvicorn listens, for which it has no callback."""


_KUBELET_CLIENT_BINDING: Final = (
    f"binding drachma:kubelet-client of system:kubelet-api-admin to user:{certificates.KUBELET_CLIENT}"
)
"""Permissions that nodes find when they ask about this server, in the notation of the default roles."""


_JOB_GROUPS: Final = """\
role drachma:job-groups
    create,get,list,patch,watch scheduling.k8s.io: podgroups workloads
binding drachma:job-groups to account:kube-system/job-controller"""
_COMPOSITE_GROUPS: Final = """\
role drachma:composite-groups
    read scheduling.k8s.io: compositepodgroups
binding drachma:composite-groups to user:system:kube-scheduler"""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on requests to the API, and on connections to all ports of the process."""

    requests: requestlimits.Limits = requestlimits.Limits()
    ports: ports.Limits = ports.Limits()


Announce = Callable[["Host"], Awaitable[None]]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a server; without ``data`` all objects are lost when it stops."""

    data: pathlib.Path | None = None
    address: addresses.Address
    kubeconfig_out: pathlib.Path | None = None
    bootstrap_kubeconfig_out: pathlib.Path | None = None
    """File for the bootstrap kubeconfig of kubelets; ``access`` must accept bootstrap tokens."""
    gates: feature.Gates = feature.ALL
    access: serverfiles.AccessOptions = serverfiles.DEFAULT_ACCESS
    event_ttl: float = 3600.0
    """Seconds for which an event is kept after its last write."""
    limits: Limits = Limits()
    disabled_plugins: tuple[str, ...] = ()
    admission_configuration: pathlib.Path | None = None
    audit: serverfiles.AuditOptions = serverfiles.AuditOptions()
    kubelet_certificate_authority: pathlib.Path | None = None
    """Authority of the nodes' serving certificates; without one they are not verified."""
    allows_loopback_nodes: bool = False
    """True if nodes of other processes may have loopback addresses of this machine."""
    additions: asgi.Additions = asgi.Additions()
    """Additional kinds, hooks, namespaces and roles."""
    keeping: storekeeping.Options = storekeeping.Options()
    """Reserve, encryption and backups of the data directory."""
    announce: Announce | None = None
    """Tells the user that the server is ready."""


_SWEEP_SECONDS: Final = 60.0
"""Time between two deletions of expired events."""


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the server for components next to it; each of them calls ``ready`` once."""

    application: asgi.Application
    folder: pathlib.Path
    """Data directory, or a temporary one."""
    url: str
    remote_url: str = ""
    authority: bytes
    local_endpoints: nodeconnections.LocalEndpoints
    """Registry of the node endpoints that components serve in this process."""
    signing: KeyPair
    """Authority of the server, whose certificates it trusts."""
    token: str
    ready: Callable[[], None]
    listening: asyncio.Event

    @property
    def addresses_text(self) -> str:
        """URLs of the server, for people."""
        return f"{self.url}, for other machines on {self.remote_url}" if self.remote_url else self.url


Companion = Callable[[Host], Awaitable[None]]
"""Runs next to the server until cancelled; when it returns or raises, the server stops."""


def run(options: Options, *companions: Companion) -> None:
    """Serve until a signal, or until a companion ends."""
    with eventloop.runner() as runner:
        if options.data is not None:
            runner.run(_run(options, options.data, companions))
        else:
            with tempfile.TemporaryDirectory(prefix="drachma-") as folder:
                runner.run(_run(options, pathlib.Path(folder), companions))


async def _run(options: Options, folder: pathlib.Path, companions: tuple[Companion, ...]) -> None:
    is_kept = options.data is not None
    utc = clock.SystemClock().utc
    ports.raise_descriptor_limit(options.limits.ports)
    budget.PROCESS.limit(options.limits.ports)
    keeper = await storekeeping.open_store(folder, options.keeping) if is_kept else None
    store: protocol.Store = keeper.store if keeper is not None else memory.MemoryStore()
    try:
        opened, bound = addresses.bind(options.address)
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
                pod_security=serverfiles.load_admission(options.admission_configuration),
                access=serverfiles.load_access(options.access, folder, store=store, utc=utc, admin_token=token),
                audit=serverfiles.load_audit(options.audit, utc=utc),
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
                _log.warning("authorization mode AlwaysAllow: every authenticated user may do everything")
            if modes.ROLE_BASED in options.access.authorization_modes:
                roles = f"{_KUBELET_CLIENT_BINDING}\n{options.additions.roles}\n{_group_roles(options.gates)}"
                await rolereconciliation.reconcile(application.dispatcher, more=roles)
            await flowdefaults.populate(application.dispatcher)
            await extensionauthentication.publish(application.dispatcher, authority=files.authority.read_text())
            await application.aggregation.wake()
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
            expiring = asyncio.create_task(_delete_expired_events(application, seconds=options.event_ttl))
            upkeep = asyncio.create_task(storekeeping.keep(keeper, application.metrics.registry))
            parts = [asyncio.create_task(_run_companion(each, host, server)) for each in companions]
            try:
                while not server.started and not serve.done():
                    await asyncio.sleep(_POLL_SECONDS)
                host.listening.set()
                announce = asyncio.create_task(_announce(options, host, server, ready=waits, count=len(companions)))
                try:
                    await serve
                finally:
                    await _end(announce)
            finally:
                await _end(*parts, expiring, upkeep)
    finally:
        await store.close()


def _group_roles(gates: feature.Gates) -> str:
    """Return the permissions that components need for groups of pods, by gates that are off by default."""
    roles: list[str] = []
    if gates.on(feature.Gate.WORKLOAD_WITH_JOB):
        roles.append(_JOB_GROUPS)
    if gates.on(feature.Gate.COMPOSITE_POD_GROUP):
        roles.append(_COMPOSITE_GROUPS)
    return "\n".join(roles)


def _warn_of_first_alpha(store: protocol.Store, gates: feature.Gates) -> None:
    """Log objects of the first alpha that are stored and not served."""
    if gates.on(feature.Gate.FIRST_ALPHA):
        return
    count = sum(len(store.list(kind.key).records) for kind in builtin.FIRST_ALPHA)
    if count:
        _log.warning(
            "%d objects of resource.k8s.io/v1alpha2 are stored and not served: see --enable-first-alpha", count
        )


async def _delete_expired_events(application: asgi.Application, *, seconds: float) -> None:
    system_clock = clock.SystemClock()
    events = expiry.Expiry(application.dispatcher, plural="events", seconds=seconds)
    while True:
        try:
            await events.sweep(system_clock.monotonic())
        except (errors.StoreError, errors.RequestError) as error:
            # A full disk may have space again later.
            _log.warning("expired events are not deleted: %s", error)
        except Exception:
            defects.PROCESS.report("expired events", "not deleted")
        await system_clock.sleep(min(_SWEEP_SECONDS, seconds))


async def _run_companion(companion: Companion, host: Host, server: serving.Server) -> None:
    try:
        await companion(host)
    finally:
        server.should_exit = True


async def _announce(
    options: Options, host: Host, server: serving.Server, *, ready: asyncio.Semaphore, count: int
) -> None:
    """Write the kubeconfigs and announce the server once all companions are ready."""
    for _ in range(count):
        await ready.acquire()
    try:
        if options.kubeconfig_out is not None:
            content = kubeconfig.document(host.url, authority=host.authority, token=host.token)
            kubeconfig.write(options.kubeconfig_out, content)
        if options.bootstrap_kubeconfig_out is not None:
            bootstrap_token = await nodebootstrap.prepare(host.application.dispatcher, now=clock.SystemClock().utc())
            content = kubeconfig.document(
                host.remote_url or host.url, authority=host.authority, token=bootstrap_token, user="kubelet-bootstrap"
            )
            kubeconfig.write(options.bootstrap_kubeconfig_out, content)
        if options.announce is not None:
            await options.announce(host)
    except errors.RefusedFileError:
        server.should_exit = True
        raise


async def _end(*tasks: asyncio.Task[None]) -> None:
    """Cancel tasks and wait for them. Raises the error of a task that has failed."""
    for task in tasks:
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError):
            await task
