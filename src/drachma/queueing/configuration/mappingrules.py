"""Rules for ``resources.deviceClassMappings``."""

from typing import Final

from drachma import cel
from drachma.api import devices
from drachma.queueing.configuration.configuration import CapacitySource, CounterSource, DeviceClassMapping, Source
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.configuration.queueingpolicy import AS_KUEUE, ClassNames, QueueingPolicy
from drachma.validation import fielderror
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.values import names, quotation

MAPPINGS: Final = 16
CLASSES: Final = 8
_NAME_LENGTH: Final = 253
_DRIVER_LENGTH: Final = 63
_DOMAIN_LENGTH: Final = 63
_IDENTIFIER_LENGTH: Final = 32

_PROGRAMS: Final = cel.device_programs(
    consumable_capacity=False, list_type_attributes=False, expressions=cel.Expressions.STORED_IN_1_36
)


def check(
    mappings: tuple[DeviceClassMapping, ...], at: Path, *, gates: Gates, policy: QueueingPolicy = AS_KUEUE
) -> Errors:
    """Check all mappings: each by itself, and that no class is charged twice."""
    has_subdomains = policy.class_names is ClassNames.SUBDOMAINS
    if len(mappings) > MAPPINGS:
        yield fielderror.too_many(at, len(mappings), MAPPINGS)
    selected = {each.name for each in policy.selected_devices}
    resources: set[str] = set()
    owners: dict[str, tuple[str, set[str]]] = {}
    for position, mapping in enumerate(mappings):
        here = at.item(position)
        yield from _name(mapping.name, here.child("name"))
        if mapping.name in resources:
            yield fielderror.duplicate(here.child("name"), mapping.name)
        resources.add(mapping.name)
        if mapping.name in selected:
            detail = "also a name in selectedDevices of the QueueingPolicy, so devices would count twice"
            yield fielderror.invalid(here.child("name"), mapping.name, detail)
        yield from _classes(mapping, here.child("deviceClassNames"), owners=owners, has_subdomains=has_subdomains)
        if mapping.sources:
            yield from _sources(mapping.sources, here.child("sources"), gates=gates)


def _classes(
    mapping: DeviceClassMapping, at: Path, *, owners: dict[str, tuple[str, set[str]]], has_subdomains: bool
) -> Errors:
    if not mapping.device_class_names:
        yield fielderror.required(at, "at least one device class name is required")
    if len(mapping.device_class_names) > CLASSES:
        yield fielderror.too_many(at, len(mapping.device_class_names), CLASSES)
    first = mapping.sources[0].counter if mapping.sources else None
    counter = first.name if first is not None else ""
    visited: set[str] = set()
    for position, name in enumerate(mapping.device_class_names):
        here = at.item(position)
        if not has_subdomains or tuple(names.dns1123_subdomain(name)):
            yield from _name(name, here)
        if name in visited:
            yield fielderror.duplicate(here, name)
        visited.add(name)
        if name not in owners:
            owners[name] = (mapping.name, {counter} if counter else set())
            continue
        owner, counters = owners[name]
        if owner == mapping.name:
            continue
        # One class may be charged to several resources if each has another measure.
        if not counter or not counters:
            yield fielderror.invalid(here, name, f"device class already mapped to resource {owner}")
        elif counter in counters:
            quoted = quotation.quote(counter)
            yield fielderror.invalid(here, name, f"device class already has a counter source for counter {quoted}")
        else:
            counters.add(counter)


def _name(name: str, at: Path) -> Errors:
    if problems := names.label_key(name):
        yield fielderror.invalid(at, name, "; ".join(problems))
    if names.byte_length(name) > _NAME_LENGTH:
        yield fielderror.invalid(at, name, f"must not exceed {_NAME_LENGTH} characters")


def _sources(sources: tuple[Source, ...], at: Path, *, gates: Gates) -> Errors:
    counts_counters = counts_capacity = False
    for position, source in enumerate(sources):
        here = at.item(position)
        if source.counter is None and source.capacity is None:
            yield fielderror.required(here, "exactly one source type must be set per entry")
        elif source.counter is not None and source.capacity is not None:
            yield fielderror.invalid(here, "counter+capacity", "exactly one source type must be set per entry")
        elif source.counter is not None:
            counts_counters = True
            yield from _counter(source.counter, here.child("counter"), gates=gates)
        elif source.capacity is not None:
            counts_capacity = True
            yield from _capacity(source.capacity, here.child("capacity"), gates=gates)
    if counts_counters and counts_capacity:
        yield fielderror.invalid(at, len(sources), "cannot mix counter and capacity sources in the same mapping")


def _counter(source: CounterSource, at: Path, *, gates: Gates) -> Errors:
    if not gates.on(Gate.DRA_PARTITIONABLE_DEVICES):
        yield fielderror.invalid(at, True, f"counter sources require {Gate.DRA_PARTITIONABLE_DEVICES} to be enabled")  # noqa: FBT003 -- the value shown
        return
    if not source.name:
        yield fielderror.required(at.child("name"))
    elif problems := names.dns1123_label(source.name):
        yield fielderror.invalid(at.child("name"), source.name, ",".join(problems))
    yield from _devices(source.driver, source.device_selector, at)


def _capacity(source: CapacitySource, at: Path, *, gates: Gates) -> Errors:
    if not gates.on(Gate.DRA_CONSUMABLE_CAPACITY):
        yield fielderror.invalid(at, True, f"capacity sources require {Gate.DRA_CONSUMABLE_CAPACITY} to be enabled")  # noqa: FBT003 -- the value shown
        return
    yield from _qualified_name(source.name, at.child("name"))
    yield from _devices(source.driver, source.device_selector, at)


def _devices(driver: str, selector: devices.DeviceSelector, at: Path) -> Errors:
    if not driver:
        yield fielderror.required(at.child("driver"))
    elif names.byte_length(driver) > _DRIVER_LENGTH:
        yield fielderror.invalid(at.child("driver"), driver, f"must not exceed {_DRIVER_LENGTH} characters")
    elif problems := names.dns1123_subdomain(driver):
        yield fielderror.invalid(at.child("driver"), driver, ",".join(problems))
    here = at.child("deviceSelector", "cel", "expression")
    expression = selector.cel.expression if selector.cel is not None else ""
    if not expression:
        yield fielderror.required(here)
        return
    try:
        _PROGRAMS.selector(expression)
    except cel.CompilationError as error:
        yield fielderror.invalid(here, expression, f"CEL compilation failed: {error}")


def _qualified_name(name: str, at: Path) -> Errors:
    """Check the name of a capacity; like upstream, a name with two or more slashes passes."""
    match name.split("/"):
        case [identifier]:
            yield from _identifier(identifier, at)
        case [domain, identifier]:
            if not domain:
                yield fielderror.invalid(at, "", "the domain must not be empty")
            else:
                if names.byte_length(domain) > _DOMAIN_LENGTH:
                    yield fielderror.too_long(at, _DOMAIN_LENGTH)
                yield from fielderror.problems(at, domain, names.driver_name(domain))
            if not identifier:
                yield fielderror.invalid(at, "", "the name must not be empty")
            else:
                yield from _identifier(identifier, at)


def _identifier(text: str, at: Path) -> Errors:
    if names.byte_length(text) > _IDENTIFIER_LENGTH:
        yield fielderror.too_long(at, _IDENTIFIER_LENGTH)
    yield from fielderror.problems(at, text, names.c_identifier(text))
