"""What exists in every cluster from the beginning: four namespaces and two priority classes."""

from typing import Any, Final

from drachma.server import status
from drachma.server.calls import options
from drachma.server.kinds.strategy import User, Write
from drachma.server.pipeline import registry
from drachma.server.surface import resources, verbs

NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")

_SERVER: Final = User(name="system:apiserver", groups=("system:masters",))
_PRIORITY_CLASSES: Final[tuple[dict[str, Any], ...]] = (
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "system-cluster-critical"},
        "value": 2_000_000_000,
        "description": "For system pods that must run in the cluster, but may move to another node if needed.",
    },
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "system-node-critical"},
        "value": 2_000_001_000,
        "description": "For system pods that must not move from their node.",
    },
)


async def populate(objects: registry.Registry) -> None:
    """Creates what is missing; a store that has it all is not written to."""
    for name in NAMESPACES:
        await _ensure(objects, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for priority in _PRIORITY_CLASSES:
        await _ensure(objects, priority)


async def _ensure(objects: registry.Registry, document: dict[str, Any]) -> None:
    resource = resources.CATALOG.of_kind(document["apiVersion"], document["kind"])
    assert resource is not None, "only served kinds are listed here"
    name = document["metadata"]["name"]
    try:
        objects.get(resource, "", name=name)
    except status.StatusError:
        write = Write(
            resource=resource,
            version="v1",
            namespace="",
            name=name,
            subresource="",
            verb=verbs.CREATE,
            user=_SERVER,
            user_agent="drachma",
            now=objects.clock(),
            warnings=[],
        )
        subject = objects.strategy(resource).read({**document, "metadata": {"name": name}}, write)
        await objects.create(subject, write, wanted=options.WriteOptions())
