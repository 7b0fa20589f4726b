"""The default profile: which plugins take part, in upstream's order and with upstream's weights.

A plugin is added with its module and one line here.
"""

from __future__ import annotations

import random
import uuid
from typing import Final

from drachma import allocator
from drachma.api import gates
from drachma.runtime import clock
from drachma.scheduler import settings
from drachma.scheduler.framework.profile import Entry, Profile
from drachma.scheduler.plugins import (
    balancedallocation,
    defaultpreemption,
    gangscheduling,
    imagelocality,
    interpodaffinity,
    nodeaffinity,
    nodename,
    nodeports,
    noderesourcesfit,
    nodeunschedulable,
    nodevolumelimits,
    schedulinggates,
    structuredparameters,
    tainttoleration,
    volumerestrictions,
    volumezone,
)
from drachma.scheduler.plugins.dynamicresources import options
from drachma.scheduler.plugins.dynamicresources.plugin import DevicePolicy, DynamicResources
from drachma.scheduler.plugins.podtopologyspread.plugin import PodTopologySpread
from drachma.scheduler.plugins.volumebinding.plugin import VolumeBinding

_POLICY_WEIGHT: Final = 10
"""A policy that somebody asked for decides, unless most of the others are against it."""


def default(chosen: settings.Settings, *, time: clock.Clock, chance: random.Random) -> Profile:
    """The profile of a scheduler with these settings."""
    enabled = chosen.gates
    seconds = chosen.filter_seconds if enabled.on(gates.Gate.SCHEDULER_FILTER_TIMEOUT) else None
    devices = options.Options(
        enabled=enabled,
        patience=options.Patience(seconds, time.monotonic),
        binding_seconds=chosen.binding_seconds,
        now=time.utc,
        new_uid=lambda: str(uuid.uuid4()),
        chance=chance,
        policy=chosen.policy,
    )
    packs = chosen.policy in (allocator.Policy.PACK, allocator.Policy.WHOLE_PARTITIONS)
    strategy = noderesourcesfit.Strategy.MOST_ALLOCATED if packs else noderesourcesfit.Strategy.LEAST_ALLOCATED
    prefers = chosen.policy is not allocator.Policy.FIRST_FIT
    return Profile(
        (
            Entry(schedulinggates.SchedulingGates()),
            *((Entry(gangscheduling.GangScheduling()),) if chosen.has_gangs else ()),
            Entry(nodeunschedulable.NodeUnschedulable()),
            Entry(nodename.NodeName()),
            Entry(tainttoleration.TaintToleration(), weight=3),
            Entry(nodeaffinity.NodeAffinity(), weight=2),
            Entry(nodeports.NodePorts()),
            Entry(noderesourcesfit.NodeResourcesFit(enabled, strategy=strategy), weight=1),
            Entry(volumerestrictions.VolumeRestrictions()),
            Entry(nodevolumelimits.NodeVolumeLimits()),
            Entry(VolumeBinding(binding_seconds=chosen.binding_seconds, has_controllers=chosen.has_volume_controllers)),
            Entry(volumezone.VolumeZone(has_controllers=chosen.has_volume_controllers)),
            Entry(PodTopologySpread(), weight=2),
            Entry(interpodaffinity.InterPodAffinity(), weight=2),
            *((Entry(structuredparameters.StructuredParameters()),) if enabled.on(gates.Gate.FIRST_ALPHA) else ()),
            Entry(DynamicResources(devices), weight=2),
            *((Entry(DevicePolicy(), weight=_POLICY_WEIGHT),) if prefers else ()),
            Entry(defaultpreemption.DefaultPreemption(chance)),
            Entry(balancedallocation.NodeResourcesBalancedAllocation(), weight=1),
            Entry(imagelocality.ImageLocality(), weight=1),
        )
    )
