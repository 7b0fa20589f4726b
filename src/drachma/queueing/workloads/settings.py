"""Settings of decisions: gates, and the parts of a configuration that admission depends on."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

import msgspec

from drachma.queueing import amounts
from drachma.queueing.configuration.configuration import Configuration
from drachma.queueing.configuration.gates import DEFAULT, Gate, Gates
from drachma.queueing.configuration.queueingpolicy import AS_KUEUE, QueueingPolicy
from drachma.queueing.devices.mappings import DeviceMappings
from drachma.queueing.workloads.pastusage import UsageRates
from drachma.queueing.workloads.workloadstate import Timestamp

FINAL_SHARE: Final = "LessThanOrEqualToFinalShare"
INITIAL_SHARE: Final = "LessThanInitialShare"
_STRATEGIES: Final = (FINAL_SHARE, INITIAL_SHARE)


class Settings(msgspec.Struct, frozen=True):
    """Settings of all of admission."""

    gates: Gates = DEFAULT
    fair_sharing: bool = False
    strategies: tuple[str, ...] = _STRATEGIES
    """Strategies that justify preemption under fair sharing, in the order in which they are tried."""
    usage_rates: UsageRates | None = None
    """Parameters of past usage, if queues may be ordered by it."""
    timestamp: Timestamp = "Eviction"
    blocks_admission: bool = False
    """True if no workload is admitted while pods of an admitted one are not ready."""
    ignores_undeclared: bool = False
    """True if resources without quota in a queue are not charged."""
    binary: Container[str] = frozenset()
    """Resources that are shown in bytes."""
    policy: QueueingPolicy = AS_KUEUE
    """Decisions that differ from Kueue."""

    @classmethod
    def of(cls, configuration: Configuration, policy: QueueingPolicy = AS_KUEUE) -> Settings:
        """Return the settings of a configuration with its defaults, and of a policy."""
        gates = configuration.gates
        resources = configuration.resources
        sharing = configuration.fair_sharing
        by_usage = configuration.admission_fair_sharing if gates.on(Gate.ADMISSION_FAIR_SHARING) else None
        ready = configuration.wait_for_pods_ready
        strategy = ready.requeuing_strategy if ready is not None else None
        mappings = DeviceMappings.of(resources.device_class_mappings if resources is not None else ())
        return cls(
            gates=gates,
            fair_sharing=sharing is not None,
            strategies=(sharing.preemption_strategies or _STRATEGIES) if sharing is not None else _STRATEGIES,
            usage_rates=UsageRates.of(by_usage) if by_usage is not None else None,
            timestamp="Creation" if strategy is not None and strategy.timestamp == "Creation" else "Eviction",
            blocks_admission=ready is not None
            and bool(ready.block_admission)
            and not gates.on(Gate.DISABLE_WAIT_FOR_PODS_READY),
            ignores_undeclared=gates.on(Gate.QUOTA_CHECK_STRATEGY)
            and resources is not None
            and resources.quota_check_strategy == "IgnoreUndeclared",
            binary=mappings.binary_resources,
            policy=policy,
        )

    def show(self, resource: str, amount: int) -> str:
        """Return an amount of a resource as messages show it."""
        if amount == amounts.UNLIMITED:
            return "<unlimited>"
        return str(amounts.to_quantity(resource, amount, binary=self.binary))


DEFAULT_SETTINGS: Final = Settings()
