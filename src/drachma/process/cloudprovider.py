"""Node groups for cluster-autoscaler: the CloudProvider service of its ``externalgrpc`` provider.

cluster-autoscaler asks for the groups, for the node that a group would add, with the slices that drivers would publish
on it, and for changes of their sizes. Nodes come from the same providers that drachma's own autoscaler uses. The
service remembers only the nodes that were requested and have not registered yet, and those that were removed and are
still there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final

import grpc
import grpc.aio

from drachma import errors
from drachma.api import codec, meta, types
from drachma.api import node as nodes
from drachma.api.types import protobuf
from drachma.nodewire.rpc import messages, services
from drachma.runtime import Surroundings
from drachma.simulate import nodegroup
from drachma.simulate.autoscaler.provider import Provider

_PACKAGE: Final = "clusterautoscaler.cloudprovider.v1.externalgrpc"

_log = logging.getLogger(__name__)

_NODE: Final = types.get("core/v1.Node")
_SLICE: Final = types.get("resource.k8s.io/v1.ResourceSlice")
_SECONDS_PER_HOUR: Final = 3600.0
_RUNNING: Final = 1
_DELETING: Final = 3
_GRACE_SECONDS: Final = 5.0
_MOST_CALLS: Final = 64
"""Calls at the same time; cluster-autoscaler makes one after the other."""

GPU_LABEL: Final = "drachma.dev/accelerator"
"""Label of nodes with GPUs; cluster-autoscaler waits for the GPUs of nodes that have it."""

MESSAGES: Final = messages.Messages(
    _PACKAGE,
    """\
NodeGroup: id=string minSize=int32 maxSize=int32 debug=string
ExternalGrpcNode: providerID=string name=string labels=<string> annotations=<string>
NodeGroupsRequest:
NodeGroupsResponse: nodeGroups=[NodeGroup]
NodeGroupForNodeRequest: node=ExternalGrpcNode
NodeGroupForNodeResponse: nodeGroup=NodeGroup
Timestamp: seconds=int64 nanos=int32
PricingNodePriceRequest: node=ExternalGrpcNode@1 startTimestamp=Timestamp@4 endTimestamp=Timestamp@5
PricingNodePriceResponse: price=double
GPULabelRequest:
GPULabelResponse: label=string
GetAvailableGPUTypesRequest:
GetAvailableGPUTypesResponse:
CleanupRequest:
CleanupResponse:
RefreshRequest:
RefreshResponse:
NodeGroupTargetSizeRequest: id=string
NodeGroupTargetSizeResponse: targetSize=int32
NodeGroupIncreaseSizeRequest: delta=int32 id=string
NodeGroupIncreaseSizeResponse:
NodeGroupDeleteNodesRequest: nodes=[ExternalGrpcNode] id=string
NodeGroupDeleteNodesResponse:
NodeGroupDecreaseTargetSizeRequest: delta=int32 id=string
NodeGroupDecreaseTargetSizeResponse:
NodeGroupNodesRequest: id=string
NodeGroupNodesResponse: instances=[Instance]
Instance: id=string status=InstanceStatus
InstanceStatus: instanceState=int32
NodeGroupTemplateNodeInfoRequest: id=string
NodeGroupTemplateNodeInfoResponse: nodeBytes=bytes@2 resourceSliceBytes=[bytes]@3
""",
)

SERVICE: Final = services.Service(
    f"{_PACKAGE}.CloudProvider",
    tuple(
        services.Method(name, getattr(MESSAGES, f"{name}Request"), getattr(MESSAGES, f"{name}Response"))
        for name in (
            "NodeGroups",
            "NodeGroupForNode",
            "PricingNodePrice",
            "GPULabel",
            "GetAvailableGPUTypes",
            "Cleanup",
            "Refresh",
            "NodeGroupTargetSize",
            "NodeGroupIncreaseSize",
            "NodeGroupDeleteNodes",
            "NodeGroupDecreaseTargetSize",
            "NodeGroupNodes",
            "NodeGroupTemplateNodeInfo",
        )
    ),
)
"""The service, without its optional methods PricingPodPrice and NodeGroupGetOptions, which are UNIMPLEMENTED."""


class CloudProvider:
    """Answers cluster-autoscaler."""

    def __init__(self, surroundings: Surroundings, groups: Sequence[nodegroup.NodeGroup], provider: Provider) -> None:
        self._groups: Final = {group.name: group for group in groups}
        self._provider: Final = provider
        self._informers: Final = surroundings.informers
        self._nodes: Final = surroundings.informers.of(nodes.Node).cache
        self._requested: Final[dict[str, set[str]]] = {name: set() for name in self._groups}
        """Names of nodes that were requested and have not registered, by group."""
        self._known: Final[dict[str, set[str]]] = {name: set() for name in self._groups}
        """Names of nodes that were there at the last look, by group."""
        self._removed: set[str] = set()
        """Uids of nodes that were removed and are still there; no limit may count on them."""
        self._lock: Final = asyncio.Lock()
        self._unidentified: Final[set[str]] = set()

    async def run(self, target: str, credentials: grpc.ServerCredentials | None = None) -> None:
        """Serve at an address until cancelled; with credentials over TLS."""
        await self._informers.wait_synced()
        async with self.serving(target, credentials):
            await asyncio.get_running_loop().create_future()

    @contextlib.asynccontextmanager
    async def serving(self, target: str, credentials: grpc.ServerCredentials | None = None) -> AsyncIterator[int]:
        """Serve at an address, and return the port. Raises errors.InvalidValueError if the address cannot be used."""
        server = grpc.aio.server(maximum_concurrent_rpcs=_MOST_CALLS)
        handlers: dict[str, services.Handler] = {
            method.name: _answering(getattr(self, f"_{_snake(method.name)}")) for method in SERVICE.methods
        }
        services.serve(server, SERVICE, handlers)
        try:
            port = server.add_secure_port(target, credentials) if credentials else server.add_insecure_port(target)
        except RuntimeError as error:
            raise errors.InvalidValueError(f"{target}: {error}") from None
        await server.start()
        _log.info("%d node groups for cluster-autoscaler at %s", len(self._groups), target)
        try:
            yield port
        finally:
            await server.stop(_GRACE_SECONDS)

    # Groups

    async def _node_groups(self, _request: Any) -> Any:
        return MESSAGES.NodeGroupsResponse(nodeGroups=map(_describe, self._groups.values()))

    async def _node_group_for_node(self, request: Any) -> Any:
        group = self._group_of(request.node)
        return MESSAGES.NodeGroupForNodeResponse(nodeGroup=MESSAGES.NodeGroup() if group is None else _describe(group))

    async def _pricing_node_price(self, request: Any) -> Any:
        group = self._group_of(request.node)
        if group is None:
            raise errors.InvalidValueError(f"node {request.node.name} belongs to no group")
        seconds = request.endTimestamp.seconds - request.startTimestamp.seconds
        return MESSAGES.PricingNodePriceResponse(price=group.price * seconds / _SECONDS_PER_HOUR)

    async def _gpulabel(self, _request: Any) -> Any:
        return MESSAGES.GPULabelResponse(label=GPU_LABEL)

    async def _get_available_gputypes(self, _request: Any) -> Any:
        return MESSAGES.GetAvailableGPUTypesResponse()

    async def _cleanup(self, _request: Any) -> Any:
        return MESSAGES.CleanupResponse()

    async def _refresh(self, _request: Any) -> Any:
        for group in self._groups.values():
            self._see_arrivals(group)
        return MESSAGES.RefreshResponse()

    async def _node_group_template_node_info(self, request: Any) -> Any:
        """Return the node that a group would add, and its slices."""
        group = self._find(request.id)
        node, *slices = group.make(f"{group.name}-template")
        return MESSAGES.NodeGroupTemplateNodeInfoResponse(
            nodeBytes=protobuf.encode(codec.encode(node), _NODE),
            resourceSliceBytes=[protobuf.encode(codec.encode(each), _SLICE) for each in slices],
        )

    # Sizes

    async def _node_group_target_size(self, request: Any) -> Any:
        return MESSAGES.NodeGroupTargetSizeResponse(targetSize=self._target(self._find(request.id)))

    async def _node_group_nodes(self, request: Any) -> Any:
        group = self._find(request.id)
        members = [each for each in self._nodes if group.has(each)]
        identified = [each for each in members if each.spec.provider_id]
        for each in members:
            if not each.spec.provider_id and each.metadata.name not in self._unidentified:
                self._unidentified.add(str(each.metadata.name))
                _log.warning("node %s has no spec.providerID: cluster-autoscaler ignores it", each.metadata.name)
        return MESSAGES.NodeGroupNodesResponse(
            instances=[MESSAGES.Instance(id=each.spec.provider_id, status=self._status(each)) for each in identified]
        )

    async def _node_group_increase_size(self, request: Any) -> Any:
        group = self._find(request.id)
        if request.delta <= 0:
            raise errors.InvalidValueError(f"group {group.name}: delta: {request.delta}: must be above 0")
        async with self._lock:
            size = self._target(group) + request.delta
            if size > group.max:
                raise errors.InvalidValueError(
                    f"group {group.name}: size {size}: at most {group.max} nodes are allowed"
                )
            used_names = {str(each.metadata.name) for each in self._nodes} | self._requested[group.name]
            names = group.new_names(request.delta, used_names)
            await self._provider.grow(group, names)
            self._requested[group.name] |= set(names)
        return MESSAGES.NodeGroupIncreaseSizeResponse()

    async def _node_group_delete_nodes(self, request: Any) -> Any:
        group = self._find(request.id)
        async with self._lock:
            members = {str(each.metadata.name): str(each.metadata.uid) for each in self._members(group)}
            names = list(dict.fromkeys(each.name for each in request.nodes))
            for name in names:
                if name not in members:
                    raise errors.InvalidValueError(f"node {name} does not belong to group {group.name}")
            if len(members) - len(names) < group.min:
                raise errors.InvalidValueError(f"group {group.name}: at least {group.min} nodes have to stay")
            for name in names:
                await self._provider.remove(group, name)
                self._removed.add(members[name])
        return MESSAGES.NodeGroupDeleteNodesResponse()

    async def _node_group_decrease_target_size(self, request: Any) -> Any:
        """Expect fewer of the nodes that have not registered. Existing nodes stay."""
        group = self._find(request.id)
        requested = self._requested[group.name]
        if not -len(requested) <= request.delta < 0:
            raise errors.InvalidValueError(
                f"group {group.name}: delta: {request.delta}: {len(requested)} nodes were requested and have not come"
            )
        for name in sorted(requested)[request.delta :]:
            requested.discard(name)
        return MESSAGES.NodeGroupDecreaseTargetSizeResponse()

    def _target(self, group: nodegroup.NodeGroup) -> int:
        self._see_arrivals(group)
        return len(self._members(group)) + len(self._requested[group.name])

    def _see_arrivals(self, group: nodegroup.NodeGroup) -> None:
        """Stop expecting nodes that have registered, under the requested name or under any other."""
        members = {str(each.metadata.name) for each in self._members(group)}
        requested = self._requested[group.name]
        arrivals = members - self._known[group.name]
        unexpected = arrivals - requested
        requested -= members
        if not self._provider.keeps_names:
            for name in sorted(requested)[: len(unexpected)]:
                requested.discard(name)
        self._known[group.name] = members

    def _members(self, group: nodegroup.NodeGroup) -> list[nodes.Node]:
        """Return the nodes of a group, without those that were removed."""
        self._removed &= {str(each.metadata.uid) for each in self._nodes}
        return [each for each in self._nodes if group.has(each) and each.metadata.uid not in self._removed]

    def _status(self, member: nodes.Node) -> Any:
        state = _DELETING if member.metadata.uid in self._removed else _RUNNING
        return MESSAGES.InstanceStatus(instanceState=state)

    def _group_of(self, node: Any) -> nodegroup.NodeGroup | None:
        member = nodes.Node(metadata=meta.ObjectMeta(name=node.name, labels=dict(node.labels)))
        return next((group for group in self._groups.values() if group.has(member)), None)

    def _find(self, name: str) -> nodegroup.NodeGroup:
        group = self._groups.get(name)
        if group is None:
            raise errors.InvalidValueError(f"there is no node group {name!r}")
        return group


def _describe(group: nodegroup.NodeGroup) -> Any:
    debug = f"{group.name} ({group.min}:{group.max}), price {group.price:g}, {len(group.slices)} slices"
    return MESSAGES.NodeGroup(id=group.name, minSize=group.min, maxSize=group.max, debug=debug)


def _snake(name: str) -> str:
    """Return a name in snake case: ``NodeGroupNodes`` is ``node_group_nodes``, ``GPULabel`` is ``gpulabel``."""
    return "".join(
        f"_{letter.lower()}" if letter.isupper() and place and not name[place - 1].isupper() else letter.lower()
        for place, letter in enumerate(name)
    )


def _answering(handler: Callable[[Any], Any]) -> services.Handler:
    """Return a handler that answers errors with the status of a failed call, and their text."""

    async def answer(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        try:
            return await handler(request)
        except errors.InvalidValueError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except errors.DrachmaError as error:
            _log.warning("%s", error)
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))

    return answer
