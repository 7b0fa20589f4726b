"""Hints for mistakes in a pod's requests: classes, drivers, attributes and node labels that nothing has.

Called for pods that fit nowhere. A hint is a sentence, with the nearest existing word if there is one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from drachma.allocator.explanation import cause, report
from drachma.api import gates, pod, resourceclaim
from drachma.simulate import simulation

_DRIVER: Final = re.compile(r"""device\.driver\s*==\s*["']([^"']+)["']""")
_MISSING_KEY: Final = re.compile(r"no such key: (\w+)")
_LEAST_LIKENESS: Final = 0.6


def alternative_hints(trial: simulation.Simulation, claims: Iterable[resourceclaim.ResourceClaim]) -> list[str]:
    """Return a hint for each list with an alternative whose class does not exist, while another class does."""
    gate = gates.Gate.ABSENT_CLASS_ALTERNATIVES
    if trial.gates.on(gate):
        return []
    hints: list[str] = []
    classes = trial.snapshot.devices.classes
    for request in (each for claim in claims for each in claim.spec.devices.requests):
        absent = [each for each in request.first_available if classes.get(each.device_class_name) is None]
        if 0 < len(absent) < len(request.first_available):
            alternative = f"alternative {request.name}/{absent[0].name}"
            hints.append(
                f"class {absent[0].device_class_name} of {alternative} does not exist, so the whole list waits "
                f"for it; with the feature gate {gate} the scheduler passes it over"
            )
    return hints


def class_hints(trial: simulation.Simulation, claims: Iterable[resourceclaim.ResourceClaim]) -> list[str]:
    """Return hints for classes that do not exist, of requests without alternatives."""
    classes = trial.snapshot.devices.classes
    requests = (each.exactly for claim in claims for each in claim.spec.devices.requests)
    names_requested = dict.fromkeys(each.device_class_name for each in requests if each is not None)
    missing_names = [name for name in names_requested if classes.get(name) is None]
    names = sorted(classes.names())
    return [f"device class {name} does not exist{did_you_mean(name, names)}" for name in missing_names]


def driver_hints(trial: simulation.Simulation, claims: Iterable[resourceclaim.ResourceClaim]) -> list[str]:
    """Return hints for classes whose driver publishes no devices on any node."""
    devices = trial.snapshot.devices
    publishing = {each.spec.driver for each in devices.catalog.slices()}
    hints = []
    for name in dict.fromkeys(requested_classes(claims)):
        device_class = devices.classes.get(name)
        expressions = [
            each.cel.expression
            for each in (device_class.spec.selectors if device_class is not None else ())
            if each.cel
        ]
        drivers = [match for expression in expressions for match in _DRIVER.findall(expression)]
        if drivers and not publishing & set(drivers):
            hints.append(
                f"no node has devices of class {name}: driver {drivers[0]} has published no ResourceSlice"
                f"{did_you_mean(drivers[0], sorted(publishing)) or '; is the driver running?'}"
            )
    return hints


def key_hints(trial: simulation.Simulation, message: str) -> list[str]:
    """Return hints for attributes without which selectors fail, from the message of the scheduler."""
    names = sorted({name.rpartition("/")[2] for name in _device_fields(trial)})
    missing_keys = [name for name in dict.fromkeys(_MISSING_KEY.findall(message)) if name not in names]
    return [f"no device has the attribute or capacity {name}{did_you_mean(name, names)}" for name in missing_keys]


def _device_fields(trial: simulation.Simulation) -> set[str]:
    """Return the full names of all attributes and capacities of devices."""
    return {
        name if "/" in name else f"{each.spec.driver}/{name}"
        for each in trial.snapshot.devices.catalog.slices()
        for device in each.spec.devices
        for name in (*device.attributes, *device.capacity)
    }


def attribute_hints(reports: Sequence[report.Explanation], trial: simulation.Simulation) -> list[str]:
    """Return hints for attributes that selectors read and that none of the examined devices has."""
    is_set_anywhere: dict[str, bool] = {}
    for why in _causes(reports):
        if isinstance(why, cause.RequestSelector | cause.ClassSelector):
            for entry in why.read:
                is_set_anywhere[entry.name] = is_set_anywhere.get(entry.name, False) or entry.value is not None
    missing_names = [name for name, is_set in is_set_anywhere.items() if not is_set]
    if not missing_names:
        return []
    names = sorted(_device_fields(trial))
    return [f"no device has {name}{did_you_mean(name, names)}" for name in missing_names]


def label_hints(trial: simulation.Simulation, waiting_pod: pod.Pod) -> list[str]:
    """Return hints for labels of the pod's nodeSelector that no node has."""
    hints = []
    for key, value in waiting_pod.spec.node_selector.items():
        values = {info.node.metadata.labels[key] for info in trial.snapshot.nodes if key in info.node.metadata.labels}
        if value in values:
            continue
        if values:
            hints.append(f"no node has the label {key}={value}{did_you_mean(value, sorted(values))}")
        else:
            keys = sorted({label for info in trial.snapshot.nodes for label in info.node.metadata.labels})
            hints.append(f"no node has the label {key}{did_you_mean(key, keys)}")
    return hints


def requested_classes(claims: Iterable[resourceclaim.ResourceClaim]) -> Iterator[str]:
    """Yield the classes that claims request, in any alternative."""
    for claim in claims:
        for request in claim.spec.devices.requests:
            if request.exactly is not None:
                yield request.exactly.device_class_name
            yield from (each.device_class_name for each in request.first_available)


def did_you_mean(word: str, words: Sequence[str]) -> str:
    """Return the end of a sentence with the word that is nearest, or nothing if none is near."""
    near = difflib.get_close_matches(word, words, n=1, cutoff=_LEAST_LIKENESS)
    return f"; did you mean {near[0]}?" if near else ""


def _causes(reports: Sequence[report.Explanation]) -> Iterator[cause.Cause]:
    for explained in reports:
        for claim in explained.claims:
            for request in claim.requests:
                for way in request.alternatives:
                    yield from (each.cause for each in way.obstacles)
