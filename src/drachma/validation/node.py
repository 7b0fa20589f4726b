"""Rules for Node and RuntimeClass."""

from collections.abc import Sequence
from typing import Final

from drachma.validation import collection, constraints, fielderror, formats, kindrules, rendering, rulenotation
from drachma.validation.fielderror import Errors
from drachma.validation.path import Document, Path
from drachma.validation.podspec import resources
from drachma.values import names

_SHOWN_TAINT: Final = (
    ("Key", "key", ""),
    ("Value", "value", ""),
    ("Effect", "effect", ""),
    ("TimeAdded", "timeAdded", None),
)


def _taints(taints: Sequence[Document], at: Path) -> Errors:
    previous = set()
    for position, taint in enumerate(taints):
        place, identity = at.item(position), (taint.get("key", ""), taint.get("effect", ""))
        yield from _TYPES["Taint"](taint, place)
        if identity in previous:
            error = fielderror.duplicate(place, rendering.internal_fields(taint, *_SHOWN_TAINT))
            yield fielderror.replace_detail(error, "taints must be unique by key and effect pair")
        previous.add(identity)


def _taint_value(value: str, at: Path) -> Errors:
    problems = names.label_value(value)
    if problems:
        yield fielderror.invalid(at, value, ";".join(problems))


def _amounts(amounts: Document, at: Path) -> Errors:
    """Check the amounts of a node; any name of a resource is allowed."""
    for name, text in sorted(amounts.items()):
        yield from resources.amount(name, text, at.child(name))


def _show_address(address: Document) -> rendering.Rendered:
    return rendering.internal_fields(address, ("Type", "type", ""), ("Address", "address", ""))


def _addresses(addresses: Sequence[Document], at: Path) -> Errors:
    for position, display in collection.repetitions([_show_address(address) for address in addresses]):
        yield fielderror.duplicate(at.item(position), display)


def _networks(cidrs: Sequence[str], at: Path) -> Errors:
    networks = [formats.network(cidr) for cidr in cidrs]
    for position, network in enumerate(networks):
        if network is None:
            yield fielderror.invalid(at.item(position), cidrs[position], constraints.CIDR)
    if len(cidrs) > 1 and (len(cidrs) > 2 or len({each.version for each in networks if each is not None}) < 2):
        detail = "may specify no more than one CIDR for each IP family"
        yield fielderror.invalid(at, rendering.wire(list(cidrs)), detail)


# RuntimeClass

_short_name: Final = constraints.text(lambda name: names.dns1123_label(name, unit="bytes"))


_TYPES: Final = rulenotation.load("node", globals())
KINDS: Final = kindrules.read(_TYPES)
