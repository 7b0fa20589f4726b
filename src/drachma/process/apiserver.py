"""The API server without a socket: its application on a store, with all that a cluster has from its beginning.

The one place that puts it together: :mod:`drachma.process.hosting` gives it a socket, :mod:`drachma.process.embedded`
a client in process, and tests and benchmarks either.
"""

import datetime as dt
import random
from collections.abc import Callable, Collection, Iterable

from drachma.api import gates as features
from drachma.server import bootstrap
from drachma.server.access import authentication
from drachma.server.access.access import Access, plain
from drachma.server.admission.podsecurity import configuration as security_configuration
from drachma.server.pipeline import phases
from drachma.server.wire import app, nodeproxy
from drachma.store import protocol


async def build(
    store: protocol.Store,
    *,
    utc: Callable[[], dt.datetime],
    chance: random.Random,
    gates: features.Gates = features.ALL,
    access: Access | None = None,
    admin_tokens: Iterable[str] = (),
    limits: app.Limits | None = None,
    disabled_plugins: Collection[str] = phases.PLUGINS,
    pod_security: security_configuration.Configuration = security_configuration.STANDARD,
    audit: tuple[phases.Auditor, ...] = (),
    additions: app.Additions | None = None,
    nodes: nodeproxy.NodeProxy | None = None,
) -> app.Application:
    """An application that serves the store to those who get access: as given, or with an admin's tokens."""
    made = app.Application(
        store,
        access or plain(store, clock=utc, tokens=dict.fromkeys(admin_tokens, authentication.ADMIN)),
        clock=utc,
        chance=chance,
        gates=gates,
        limits=limits,
        disabled_plugins=disabled_plugins,
        pod_security=pod_security,
        audit=audit,
        additions=additions,
        nodes=nodes,
    )
    await bootstrap.populate(made.dispatcher, namespaces=additions.namespaces if additions is not None else ())
    await made.definitions.settle()
    return made
