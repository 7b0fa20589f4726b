"""All controllers by upstream's names, and the choice of some of them as ``--controllers`` writes it."""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from drachma import errors
from drachma.api import gates as features
from drachma.controllers import (
    devicetaints,
    environment,
    garbagecollector,
    job,
    namespace,
    nodelifecycle,
    podgc,
    resourceclaim,
    tainteviction,
)
from drachma.runtime import controller

Make: TypeAlias = Callable[[environment.Environment], controller.Controller]

ALL: Final[Mapping[str, Make]] = {
    "device-taint-eviction-controller": devicetaints.DeviceTaintEviction,
    "garbage-collector-controller": garbagecollector.GarbageCollector,
    "job-controller": job.JobController,
    "namespace-controller": namespace.NamespaceController,
    "node-lifecycle-controller": nodelifecycle.NodeLifecycle,
    "pod-garbage-collector-controller": podgc.PodGarbageCollector,
    "resourceclaim-controller": resourceclaim.ResourceClaimController,
    "taint-eviction-controller": tainteviction.NodeTaintEviction,
    "ttl-after-finished-controller": job.TimeToLive,
}

_NEEDED_GATES: Final = {
    "device-taint-eviction-controller": features.Gate.DEVICE_TAINTS,
    "resourceclaim-controller": features.Gate.CORE,
}


def chosen(text: str = "*", *, gates: features.Gates = features.ALL) -> dict[str, Make]:
    """The controllers that a list names: ``*`` for all, ``name`` for one, ``-name`` for not this one.

    Those whose feature is switched off are left out. InvalidValueError for names that are not known.
    """
    entries = [each.strip() for each in text.split(",") if each.strip()]
    names = {each.removeprefix("-") for each in entries} - {"*"}
    unknown = sorted(names - ALL.keys())
    if unknown:
        known = ", ".join(ALL)
        raise errors.InvalidValueError(f"controllers {text!r}: {', '.join(unknown)} is not known: there are {known}")
    found = {}
    for name, make in ALL.items():
        is_wanted = name in entries or ("*" in entries and f"-{name}" not in entries)
        gate = _NEEDED_GATES.get(name)
        if is_wanted and (gate is None or gates.on(gate)):
            found[name] = make
    return found
