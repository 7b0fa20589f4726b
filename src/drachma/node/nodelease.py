"""Which agent keeps the lease of a node, and when no agent does any more."""

from __future__ import annotations

import logging

from drachma import errors
from drachma.api import lease
from drachma.client import Client
from drachma.node import hardware, noderegistration
from drachma.runtime import clock

_log = logging.getLogger(__name__)


async def wait_until_free(client: Client, node: str, *, time: clock.Clock) -> None:
    """Return as soon as no agent keeps a node's lease, except agents that pretend the node.

    An agent that runs on the machine holds the lease by the name of the node, as a kubelet does, and one that pretends
    it by another name. So a process that was restarted recognises the nodes that it pretended before, though their
    leases have not expired.

    Any other lease is watched: it is kept for as long as its renewal time changes, whatever that time is, so clocks
    that differ or jump do no harm.
    """
    seen, pretender = "", hardware.pretended(node).lease_holder
    while True:
        try:
            current = await client.get(lease.Lease, node, namespace=noderegistration.LEASE_NAMESPACE)
        except errors.ObjectNotFoundError:
            return
        except (errors.RefusedError, errors.UnreachableError) as error:
            _log.warning("node %s: cannot tell which agent keeps its lease, will try again: %s", node, error)
        else:
            renewed = current.spec.renew_time or ""
            if current.spec.holder_identity == pretender or renewed == seen:
                return
            seen = renewed
        await time.sleep(noderegistration.LEASE_SECONDS)
