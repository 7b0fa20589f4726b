"""Forms of Kueue's recordings that several of their tests read: gates, objects, errors."""

from collections.abc import Container, Iterable
from typing import Any, Final

from drachma.api import codec, meta
from drachma.queueing.configuration import configuration, gates
from drachma.queueing.kinds import clusterqueue, decoding, workload
from drachma.queueing.workloads.requests import FlavorResource
from drachma.validation.fielderror import FieldError
from tests.conformance import vectors

_COMPILERS: Final = ("CEL compilation failed:", "has invalid CEL selector:")


def switched(case: vectors.Line) -> gates.Gates:
    """The gates of a line."""
    return gates.DEFAULT.switched(case["gates"])


def read_workload(document: Any) -> workload.Workload:
    """A workload."""
    return decoding.decode(document, workload.Workload)


def read_objects(documents: Iterable[Any]) -> list[meta.Object]:
    """Objects of Kubernetes itself."""
    return [codec.decode(document) for document in documents]


def errors(found: Iterable[FieldError]) -> list[tuple[str, ...]]:
    """Errors as they are compared."""
    return [(str(error.type), error.field, shortened(error.detail)) for error in found]


def recorded_errors(documents: Iterable[dict[str, Any]] | None) -> list[tuple[str, ...]]:
    """Errors of a recording as they are compared."""
    return [(error["type"], error["field"], shortened(error.get("detail", ""))) for error in documents or ()]


def shortened(text: str) -> str:
    """A text without what a compiler said, which is not compared."""
    for compiler in _COMPILERS:
        before, mark, _ = text.partition(compiler)
        if mark:
            return before + mark
    return text


def texts(lists: Any) -> dict[str, dict[str, str]]:
    """Quantities by pod set and resource as texts."""
    return {name: {key: str(amount) for key, amount in of.items()} for name, of in lists.items()}


def compact(value: Any) -> Any:
    """A document without zero values, which may or may not be written."""
    if isinstance(value, dict):
        slim = {key: compact(item) for key, item in value.items()}
        return {key: item for key, item in slim.items() if item not in ("", 0, None, [], {})}
    if isinstance(value, list | tuple):
        return [compact(item) for item in value]
    return value


def untimed(value: Any) -> Any:
    """A document without the times of transitions, which no recorded answer has."""
    if isinstance(value, dict):
        return {key: untimed(item) for key, item in value.items() if key != "lastTransitionTime"}
    if isinstance(value, list | tuple):
        return [untimed(item) for item in value]
    return value


def read_usage(amounts: dict[str, int]) -> dict[FlavorResource, int]:
    """Usage by resource of a flavor."""
    return {FlavorResource(*key.split("/", 1)): amount for key, amount in amounts.items()}


def without_flavors(queues: Iterable[clusterqueue.ClusterQueue], flavors: Container[str]) -> set[str]:
    """Queues that are not active because a flavor that they name does not exist."""
    return {
        queue.metadata.name
        for queue in queues
        for group in queue.spec.resource_groups
        for flavor in group.flavors
        if flavor.name not in flavors
    }


def read_mappings(documents: Iterable[Any]) -> list[configuration.DeviceClassMapping]:
    """Device class mappings."""
    return [decoding.decode(each, configuration.DeviceClassMapping) for each in documents]
