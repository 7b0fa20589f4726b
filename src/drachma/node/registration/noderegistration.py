"""Registration of a node and its lease at the API server, and their updates while the agent runs.

As with a kubelet, the lease is renewed every ten seconds. The status is compared with the stored one as often; it is
written if it differs, and every five minutes in any case. A Node that the node lifecycle controller has marked as not
ready is corrected at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from typing import Any, Final

from drachma import errors
from drachma.api import codec, lease, meta, node
from drachma.client import Client, patches
from drachma.node.registration import machine, nodestatus
from drachma.node.registration.machine import Machine
from drachma.runtime import Informer, controller, events
from drachma.runtime.clock import Clock, sleep_unless

_log = logging.getLogger(__name__)

LEASE_NAMESPACE: Final = "kube-node-lease"
LEASE_SECONDS: Final = 40
_RENEW_SECONDS: Final = 10.0
_COMPARE_SECONDS: Final = 10.0
_REPORT_SECONDS: Final = 300.0
_SHORTEST_PAUSE: Final = 1.0
"""Shortest time between two reports, so that an agent and another writer do not overwrite each other endlessly."""

_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 7.0


class NodeRegistration:
    """Registers one node and renews its lease."""

    def __init__(
        self,
        machine: Machine,
        *,
        client: Client,
        clock: Clock,
        recorder: events.Recorder,
        status: nodestatus.NodeStatus,
        nodes: Informer[node.Node],
    ) -> None:
        """``nodes`` has this node, maybe among others. The caller calls ``update`` when the node changes there."""
        self._machine = machine
        self._name = machine.name
        self._client = client
        self._clock = clock
        self._recorder = recorder
        self._status: Final = status
        self._nodes: Final = nodes
        self._contradiction: Final = asyncio.Event()
        self._reported: nodestatus.OwnPart | None = None
        self._reported_at = 0.0

    async def register(self, damage: str) -> node.Node:
        """Create the Node or update it, and retry until that succeeds.

        ``damage`` describes a damaged checkpoint; an event reports it.
        """
        pause = _FIRST_PAUSE
        while True:
            try:
                return await self._register(damage)
            except (errors.RefusedError, errors.UnreachableError) as error:
                _log.warning("node %s: not registered, will try again: %s", self._name, error)
            await self._clock.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def update(self, stored_node: node.Node) -> None:
        """Take over a change of the stored Node. A Node that is not ready is corrected at once."""
        if self._reported is not None and not nodestatus.is_ready(stored_node.status):
            self._contradiction.set()

    async def keep(self) -> None:
        """Renew the lease and report the status until cancelled."""
        await controller.together(
            controller.every(_RENEW_SECONDS, self._renew, clock=self._clock, name=f"lease of {self._name}"),
            self._keep_status(),
        )

    async def _register(self, damage: str) -> node.Node:
        previous: dict[str, Any] = {}
        try:
            document = await self._client.create_document(node.Node, self._machine.node)
        except errors.ObjectExistsError:
            document = previous = await self._client.get_document(node.Node, self._name)
            await self._label(previous)
        stored_node = codec.decode(document)
        assert isinstance(stored_node, node.Node), "a Node was requested"
        registered = await self._report(stored_node)
        self._record_start(registered, previous, damage)
        await self._renew()
        return registered

    async def _label(self, document: Mapping[str, Any]) -> None:
        """Set the labels of the machine that its stored Node lacks."""
        labels = self._machine.node["metadata"].get("labels") or {}
        current = document["metadata"].get("labels") or {}
        if not labels.items() <= current.items():
            patch = patches.merge({"metadata": {"labels": labels}})
            try:
                await self._client.patch(node.Node, self._name, patch=patch)
            except errors.ForbiddenError as error:
                _log.warning("node %s: labels are not set: %s", self._name, error)

    async def _keep_status(self) -> None:
        while True:
            await self._clock.sleep(_SHORTEST_PAUSE)
            await sleep_unless(self._contradiction, _COMPARE_SECONDS - _SHORTEST_PAUSE, clock=self._clock)
            self._contradiction.clear()
            try:
                await self._report_if_due()
            except errors.ObjectNotFoundError:
                # As with a kubelet, a Node that is deleted while its agent runs is not created again.
                _log.debug("node %s: is gone", self._name)
            except (errors.RefusedError, errors.UnreachableError) as error:
                _log.warning("node %s: status not reported, will try again: %s", self._name, error)

    async def _report_if_due(self) -> None:
        stored_node = self._nodes.cache.get(self._name)
        if stored_node is None:
            return
        if self._clock.monotonic() - self._reported_at < _REPORT_SECONDS:
            if nodestatus.own_part(stored_node.status) == self._reported:
                return
            # The cache may be older than the last report.
            stored_node = await self._client.get(node.Node, self._name)
            if nodestatus.own_part(stored_node.status) == self._reported:
                return
        was_ready = nodestatus.is_ready(stored_node.status)
        registered = await self._report(stored_node)
        if not was_ready:
            message = f"Node {self._name} status is now: NodeReady"
            self._recorder.record(registered, type=events.NORMAL, reason="NodeReady", message=message)

    async def _report(self, stored_node: node.Node) -> node.Node:
        """Write the status, and return the Node that the API server stored."""
        content = self._status.content(stored_node.status, now=self._clock.utc())
        registered = await self._client.patch(
            node.Node, self._name, patch=patches.strategic({"status": content}), subresource="status"
        )
        self._reported = nodestatus.own_part(registered.status)
        self._reported_at = self._clock.monotonic()
        return registered

    def _record_start(self, registered: node.Node, previous: Mapping[str, Any], damage: str) -> None:
        """Record events about a reboot and a damaged checkpoint."""
        boot = _boot_id(self._machine.node)
        if _boot_id(previous) and boot and _boot_id(previous) != boot:
            message = f"Node {self._name} has been rebooted, boot id: {boot}"
            self._recorder.record(registered, type="Warning", reason="Rebooted", message=message)
        if damage:
            message = f"Prepared claims are restored from pods: {damage}"
            self._recorder.record(registered, type="Warning", reason="DamagedCheckpoint", message=message)

    async def _renew(self) -> None:
        now = meta.micro_time_text(self._clock.utc())
        holder = self._machine.lease_holder or self._name
        spec = lease.LeaseSpec(holder_identity=holder, lease_duration_seconds=LEASE_SECONDS, renew_time=now)
        try:
            await self._client.patch(
                lease.Lease, self._name, patch=patches.merge({"spec": spec}), namespace=LEASE_NAMESPACE
            )
        except errors.ObjectNotFoundError:
            metadata = meta.ObjectMeta(name=self._name, namespace=LEASE_NAMESPACE)
            with contextlib.suppress(errors.ObjectExistsError):
                await self._client.create(lease.Lease(metadata=metadata, spec=spec))


def _boot_id(document: Mapping[str, Any]) -> str:
    """Return the boot id in a Node; empty if it has none."""
    return str(((document.get("status") or {}).get("nodeInfo") or {}).get("bootID", ""))


async def wait_until_free(client: Client, node: str, *, clock: Clock) -> None:
    """Return when no agent renews a node's lease, except agents that pretend the node.

    An agent on the machine itself holds the lease by the name of the node, as a kubelet does. An agent that pretends
    the node uses another name, so a restarted process recognises the nodes that it pretended before although their
    leases have not expired.

    Any other lease counts as renewed while its renewal time changes, whatever that time is. So clocks that differ or
    jump do no harm.
    """
    last_renewal, pretender = "", machine.pretended(node).lease_holder
    while True:
        try:
            current = await client.get(lease.Lease, node, namespace=LEASE_NAMESPACE)
        except errors.ObjectNotFoundError:
            return
        except (errors.RefusedError, errors.UnreachableError) as error:
            _log.warning("node %s: cannot read its lease, will try again: %s", node, error)
        else:
            renewal = current.spec.renew_time or ""
            if current.spec.holder_identity == pretender or renewal == last_renewal:
                return
            last_renewal = renewal
        await clock.sleep(LEASE_SECONDS)
