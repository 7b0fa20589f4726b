"""Rules for ResourceClass."""

from drachma.api.v1alpha2 import resourceclass
from drachma.validation import formats, nodeselector
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.validation.v1alpha2 import references


def check(class_: resourceclass.ResourceClass) -> Errors:
    """A new or changed class; everything about it may change."""
    yield from formats.driver_name(class_.driver_name, Path("driverName"))
    yield from references.check_class(class_.parameters_ref, Path("parametersRef"))
    if class_.suitable_nodes is not None:
        yield from nodeselector.check(class_.suitable_nodes, Path("suitableNodes"))
