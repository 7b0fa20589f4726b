"""A node and its lease at the API server: registered when its agent begins, and kept up to date while the agent runs.

As a kubelet does it: the lease is renewed every ten seconds. The status is compared with the stored one as often, and
written if it differs, and every five minutes in any case. A Node that says it is not ready, because the node lifecycle
controller did not hear of it for a while, is corrected at once.
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
from drachma.node import hardware, nodestatus
from drachma.runtime import Informer, clock, controller, events

_log = logging.getLogger(__name__)

LEASE_NAMESPACE: Final = "kube-node-lease"
LEASE_SECONDS: Final = 40
_RENEW_SECONDS: Final = 10.0
_COMPARE_SECONDS: Final = 10.0
_REPORT_SECONDS: Final = 300.0
_SHORTEST_PAUSE: Final = 1.0
"""Between two reports, so that an agent and another writer of the status do not outdo each other without end."""

_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 7.0


class NodeRegistration:
    """The registration of one node."""

    def __init__(
        self,
        machine: hardware.Machine,
        *,
        client: Client,
        time: clock.Clock,
        recorder: events.Recorder,
        status: nodestatus.NodeStatus,
        nodes: Informer[node.Node],
    ) -> None:
        """``nodes`` has this node, maybe among others; ``hear`` is to be called when it changes there."""
        self._machine = machine
        self._name = machine.name
        self._client = client
        self._clock = time
        self._recorder = recorder
        self._status: Final = status
        self._nodes: Final = nodes
        self._contradiction: Final = asyncio.Event()
        self._reported: nodestatus.OwnPart | None = None
        self._reported_at = 0.0

    async def register(self, damage: str) -> node.Node:
        """Makes the Node, or brings it up to date; tries until that is done.

        ``damage`` is what the agent found broken of what it kept, if anything; an event says so.
        """
        pause = _FIRST_PAUSE
        while True:
            try:
                return await self._register(damage)
            except (errors.RefusedError, errors.UnreachableError) as error:
                _log.warning("node %s: not registered, will try again: %s", self._name, error)
            await self._clock.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def hear(self, stored: node.Node) -> None:
        """Take note of a change of the stored Node."""
        if self._reported is not None and not nodestatus.is_ready(stored.status):
            self._contradiction.set()

    async def keep(self) -> None:
        """Renews the lease and reports the status until cancelled."""
        await controller.together(
            controller.every(_RENEW_SECONDS, self._renew, time=self._clock, name=f"lease of {self._name}"),
            self._keep_status(),
        )

    async def _register(self, damage: str) -> node.Node:
        before: dict[str, Any] = {}
        try:
            created = await self._client.create_document(node.Node, self._machine.node)
        except errors.ObjectExistsError:
            created = before = await self._client.get_document(node.Node, self._name)
            await self._label(before)
        stored = codec.decode(created)
        assert isinstance(stored, node.Node), "it was asked for"
        registered = await self._report(stored)
        self._tell(registered, before, damage)
        await self._renew()
        return registered

    async def _label(self, stored: Mapping[str, Any]) -> None:
        """Set labels that the machine has and its stored Node lacks."""
        labels = self._machine.node["metadata"].get("labels") or {}
        current = stored["metadata"].get("labels") or {}
        if not labels.items() <= current.items():
            patch = patches.merge({"metadata": {"labels": labels}})
            try:
                await self._client.patch(node.Node, self._name, patch=patch)
            except errors.ForbiddenError as error:
                _log.warning("node %s: labels are not set: %s", self._name, error)

    async def _keep_status(self) -> None:
        while True:
            await self._clock.sleep(_SHORTEST_PAUSE)
            await clock.sleep_unless(self._contradiction, _COMPARE_SECONDS - _SHORTEST_PAUSE, time=self._clock)
            self._contradiction.clear()
            try:
                await self._report_if_due()
            except errors.ObjectNotFoundError:
                # As a kubelet: a Node that was deleted while its agent runs is not made again.
                _log.debug("node %s: is gone", self._name)
            except (errors.RefusedError, errors.UnreachableError) as error:
                _log.warning("node %s: status not reported, will try again: %s", self._name, error)

    async def _report_if_due(self) -> None:
        stored = self._nodes.cache.get(self._name)
        if stored is None:
            return
        if self._clock.monotonic() - self._reported_at < _REPORT_SECONDS:
            if nodestatus.own_part(stored.status) == self._reported:
                return
            # What was heard may be older than the last report.
            stored = await self._client.get(node.Node, self._name)
            if nodestatus.own_part(stored.status) == self._reported:
                return
        was_ready = nodestatus.is_ready(stored.status)
        registered = await self._report(stored)
        if not was_ready:
            message = f"Node {self._name} status is now: NodeReady"
            self._recorder.record(registered, type=events.NORMAL, reason="NodeReady", message=message)

    async def _report(self, stored: node.Node) -> node.Node:
        """Write the status, and return the Node as it is then."""
        content = self._status.content(stored.status, now=self._clock.utc())
        registered = await self._client.patch(
            node.Node, self._name, patch=patches.strategic({"status": content}), subresource="status"
        )
        self._reported = nodestatus.own_part(registered.status)
        self._reported_at = self._clock.monotonic()
        return registered

    def _tell(self, registered: node.Node, before: Mapping[str, Any], damage: str) -> None:
        """What people should know about how the agent came up again."""
        boot = _boot_id(self._machine.node)
        if _boot_id(before) and boot and _boot_id(before) != boot:
            message = f"Node {self._name} has been rebooted, boot id: {boot}"
            self._recorder.record(registered, type="Warning", reason="Rebooted", message=message)
        if damage:
            message = f"Prepared claims are learnt anew from pods: {damage}"
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
    """Which boot of its machine a Node tells of; empty where it does not say."""
    return str(((document.get("status") or {}).get("nodeInfo") or {}).get("bootID", ""))
