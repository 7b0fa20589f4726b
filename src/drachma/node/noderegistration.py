"""A node and its lease at the API server: registered when its agent begins, and renewed while it lives."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma import errors
from drachma.api import lease, meta, node
from drachma.client import Client, patches
from drachma.node import hardware
from drachma.node.endpoint.addresses import NodeAddress
from drachma.runtime import clock, controller, events

_log = logging.getLogger(__name__)

LEASE_NAMESPACE: Final = "kube-node-lease"
LEASE_SECONDS: Final = 40
_RENEW_SECONDS: Final = 10.0
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
        address: NodeAddress | None,
        runtime: str,
        features: Sequence[str],
    ) -> None:
        """``features`` are what the node can do that not every one can; ``runtime`` is what runs its containers."""
        self._machine = machine
        self._name = machine.name
        self._client = client
        self._clock = time
        self._recorder = recorder
        self._address = address
        self._runtime = runtime
        self._features = features

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

    async def keep(self) -> None:
        """Renews the lease until cancelled."""
        await controller.every(_RENEW_SECONDS, self._renew, time=self._clock, name=f"lease of {self._name}")

    async def _register(self, damage: str) -> node.Node:
        before: dict[str, Any] = {}
        try:
            await self._client.create_document(node.Node, self._machine.node)
        except errors.ObjectExistsError:
            before = await self._client.get_document(node.Node, self._name)
        registered = await self._client.patch(
            node.Node,
            self._name,
            patch=patches.strategic({"status": self._status()}),
            subresource="status",
        )
        self._tell(registered, before, damage)
        await self._renew()
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

    def _status(self) -> dict[str, Any]:
        now = meta.time_text(self._clock.utc())
        facts = {
            "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
            "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
            "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
        }
        conditions = [
            {
                "type": kind,
                "status": value,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": now,
                "lastTransitionTime": now,
            }
            for kind, (value, reason, message) in facts.items()
        ]
        given: dict[str, Any] = self._machine.node.get("status") or {}
        info = {"containerRuntimeVersion": self._runtime, **(given.get("nodeInfo") or {})}
        declared = sorted({*(given.get("declaredFeatures") or ()), *self._features})
        return {
            **given,
            "conditions": conditions,
            "nodeInfo": info,
            "declaredFeatures": declared,
            **self._reached(),
        }

    def _reached(self) -> dict[str, Any]:
        """Where the API server finds what the node serves."""
        if self._address is None:
            return {}
        return {
            "addresses": [
                {"type": "InternalIP", "address": self._address.host},
                {"type": "Hostname", "address": self._name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._address.port}},
        }

    async def _renew(self) -> None:
        now = meta.micro_time_text(self._clock.utc())
        spec = lease.LeaseSpec(holder_identity=self._name, lease_duration_seconds=LEASE_SECONDS, renew_time=now)
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
