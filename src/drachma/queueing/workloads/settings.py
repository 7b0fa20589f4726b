"""What a decision depends on beside objects: gates, and the parts of a configuration that admission looks at."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

import msgspec

from drachma.queueing import amounts
from drachma.queueing.configuration.configuration import Configuration
from drachma.queueing.configuration.gates import DEFAULT, Gate, Gates
from drachma.queueing.configuration.queueingpolicy import AS_KUEUE, QueueingPolicy
from drachma.queueing.devices.devicemappings import DeviceMappings
from drachma.queueing.workloads.pastusage import UsageRates
from drachma.queueing.workloads.workloadstate import Timestamp

FINAL_SHARE: Final = "LessThanOrEqualToFinalShare"
INITIAL_SHARE: Final = "LessThanInitialShare"
_STRATEGIES: Final = (FINAL_SHARE, INITIAL_SHARE)


class Settings(msgspec.Struct, frozen=True):
    """One value for all of admission."""

    gates: Gates = DEFAULT
    fair_sharing: bool = False
    strategies: tuple[str, ...] = _STRATEGIES
    """What justifies preemption under fair sharing, in the order in which it is tried."""
    usage_rates: UsageRates | None = None
    """How local queues' usage is remembered, where queues may be ordered by it."""
    timestamp: Timestamp = "Eviction"
    blocks_admission: bool = False
    """Whether nobody is admitted while pods of somebody who was are not ready."""
    ignores_undeclared: bool = False
    """Whether resources that a queue has no quota for are not charged."""
    binary: Container[str] = frozenset()
    """Resources that are shown in bytes."""
    policy: QueueingPolicy = AS_KUEUE
    """What is decided otherwise than Kueue does."""

    @classmethod
    def of(cls, configuration: Configuration, policy: QueueingPolicy = AS_KUEUE) -> Settings:
        """The settings that a configuration with its defaults means, and a policy beside it."""
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
        """An amount of a resource as messages have it."""
        if amount == amounts.UNLIMITED:
            return "<unlimited>"
        return str(amounts.as_quantity(resource, amount, binary=self.binary))


DEFAULT_SETTINGS: Final = Settings()
