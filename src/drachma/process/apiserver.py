"""The API server without a socket: its application on a store, with the objects that every cluster has.

This is the one place that builds it. :mod:`drachma.process.hosting` serves it on a socket, and
:mod:`drachma.process.embedded` gives it an in-process client.
"""

import datetime as dt
import random
from collections.abc import Callable, Collection, Iterable

from drachma.api import gates as features
from drachma.server import bootstrap
from drachma.server.access import authentication
from drachma.server.access.access import Access, plain
from drachma.server.admission import pluginnames
from drachma.server.admission.podsecurity import configuration as security_configuration
from drachma.server.pipeline import phases
from drachma.server.wire import app, nodeproxy
from drachma.server.wire import limits as requestlimits
from drachma.store import protocol


async def build(
    store: protocol.Store,
    *,
    utc: Callable[[], dt.datetime],
    chance: random.Random,
    gates: features.Gates = features.ALL,
    access: Access | None = None,
    admin_tokens: Iterable[str] = (),
    limits: requestlimits.Limits | None = None,
    disabled_plugins: Collection[str] = pluginnames.PLUGINS,
    pod_security: security_configuration.Configuration = security_configuration.STANDARD,
    audit: tuple[phases.Auditor, ...] = (),
    additions: app.Additions | None = None,
    nodes: nodeproxy.NodeProxy | None = None,
) -> app.Application:
    """Return an application that serves a store. Without ``access``, only the admin's tokens are accepted.

    The history of a new store begins when it is complete: as in upstream, older resource versions are too old.
    """
    is_new = store.revision == protocol.FIRST_REVISION
    application = app.Application(
        store,
        access or plain(store, clock=utc, tokens=dict.fromkeys(admin_tokens, authentication.ADMIN)),
        clock=utc,
        rng=chance,
        gates=gates,
        limits=limits,
        disabled_plugins=disabled_plugins,
        pod_security=pod_security,
        audit=audit,
        additions=additions,
        nodes=nodes,
    )
    added = additions or app.Additions()
    await bootstrap.populate(application.dispatcher, namespaces=added.namespaces, service_ranges=added.service_ranges)
    await application.definitions.settle()
    if is_new:
        await store.compact(store.revision)
    return application
