"""Initial objects of every cluster: namespaces, priority classes, and the API's own service."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from drachma.server import mediatypes, status
from drachma.server.calls.call import Body, Call, Target
from drachma.server.pipeline.dispatcher import Dispatcher
from drachma.server.surface import apisurface, verbs
from drachma.server.user import User
from drachma.values import serviceranges

NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")

_NOTHING: Final = Body()
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


_SERVICE: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {
        "name": "kubernetes",
        "namespace": "default",
        "labels": {"component": "apiserver", "provider": "kubernetes"},
    },
    "spec": {
        "ports": [{"name": "https", "port": 443, "targetPort": 6443}],
    },
}


async def populate(
    dispatcher: Dispatcher,
    *,
    namespaces: Sequence[str] = (),
    service_ranges: serviceranges.ServiceRanges = serviceranges.DEFAULT,
) -> None:
    """Create the missing objects, with additional namespaces; a complete store is not written to."""
    for name in (*NAMESPACES, *namespaces):
        await ensure(dispatcher, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for priority in _PRIORITY_CLASSES:
        await ensure(dispatcher, priority)
    await ensure(dispatcher, {**_SERVICE, "spec": {"clusterIP": service_ranges.first, **_SERVICE["spec"]}})


async def ensure(dispatcher: Dispatcher, document: dict[str, Any]) -> None:
    """Create an object unless one of its name exists."""
    surface = dispatcher.surface
    resource = surface.find_kind(document["apiVersion"], document["kind"])
    assert resource is not None, "the initial objects are of served kinds"
    own = document["metadata"]
    target = Target(resource, resource.versions[0], own.get("namespace", ""), own["name"], None)
    try:
        await dispatcher.dispatch(_call(surface, verbs.GET, target))
    except status.StatusError as error:
        if error.reason != "NotFound":
            raise
        body = Body(msgspec.json.encode(document), mediatypes.JSON)
        await dispatcher.dispatch(_call(surface, verbs.CREATE, msgspec.structs.replace(target, name=""), body=body))


def _call(surface: apisurface.ApiSurface, verb: str, target: Target, *, body: Body = _NOTHING) -> Call:
    return Call(user=_SERVER, verb=verb, surface=surface, target=target, body=body, user_agent="drachma")
