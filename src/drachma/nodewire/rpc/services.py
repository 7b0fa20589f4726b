"""gRPC services between agent and drivers: names, methods, and the names that GetInfo advertises.

A driver advertises a DRA service by another name than the one in calls.
"""

from __future__ import annotations

import pathlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import grpc
import grpc.aio

from drachma.nodewire.rpc import messages


class Method(NamedTuple):
    """A method with the classes of its request and its response, or its stream of responses."""

    name: str
    request: Any
    response: Any
    is_stream: bool = False


class Service(NamedTuple):
    """A service with its full name in calls; ``advertised`` is its name in GetInfo."""

    name: str
    methods: tuple[Method, ...]
    advertised: str = ""

    def path(self, method: str) -> str:
        return f"/{self.name}/{method}"

    def method(self, name: str) -> Method:
        return next(each for each in self.methods if each.name == name)


def _methods(package: messages.Messages, *names: str) -> tuple[Method, ...]:
    return tuple(
        Method(name, getattr(package, f"{name}Request"), getattr(package, f"{name}Response")) for name in names
    )


_BATCH_METHODS: Final = ("NodePrepareResources", "NodeUnprepareResources")


def _dra(version: str, package: messages.Messages) -> Service:
    methods = _methods(package, *_BATCH_METHODS)
    return Service(f"k8s.io.kubelet.pkg.apis.dra.{version}.DRAPlugin", methods, f"{version}.DRAPlugin")


def _health(version: str, package: messages.Messages) -> Service:
    watch = Method(
        "NodeWatchResources", package.NodeWatchResourcesRequest, package.NodeWatchResourcesResponse, is_stream=True
    )
    return Service(f"{version}.DRAResourceHealth", (watch,), f"{version}.DRAResourceHealth")


REGISTRATION: Final = Service(
    "pluginregistration.Registration",
    (
        Method("GetInfo", messages.REGISTRATION.InfoRequest, messages.REGISTRATION.PluginInfo),
        Method(
            "NotifyRegistrationStatus",
            messages.REGISTRATION.RegistrationStatus,
            messages.REGISTRATION.RegistrationStatusResponse,
        ),
    ),
)

DRA: Final = (_dra("v1", messages.DRA), _dra("v1beta1", messages.DRA_BETA))
"""All versions of the DRA service, the newest first."""

HEALTH: Final = (_health("v1", messages.HEALTH), _health("v1alpha1", messages.HEALTH_ALPHA))
"""All versions of the health service, the newest first."""

NODE_1_31: Final = Service("v1alpha4.Node", _methods(messages.DRA_1_31, *_BATCH_METHODS), "v1alpha4.Node")
NODE_1_30: Final = Service(
    "v1alpha3.Node",
    (
        *_methods(messages.DRA_1_30, *_BATCH_METHODS),
        Method(
            "NodeListAndWatchResources",
            messages.DRA_1_30.NodeListAndWatchResourcesRequest,
            messages.DRA_1_30.NodeListAndWatchResourcesResponse,
            is_stream=True,
        ),
    ),
    "v1alpha3.Node",
)
"""With the resource watch: a driver reports its resources, and the node publishes them."""
NODE_SINGLE: Final = Service(
    "v1alpha2.Node", _methods(messages.DRA_SINGLE, "NodePrepareResource", "NodeUnprepareResource")
)
FIRST_ALPHA: Final = (NODE_1_31, NODE_1_30, NODE_SINGLE)
"""Services of drivers that advertise a version number, the newest first."""

POD_RESOURCES: Final = Service(
    "v1.PodResourcesLister",
    (
        Method("List", messages.POD_RESOURCES.ListPodResourcesRequest, messages.POD_RESOURCES.ListPodResourcesResponse),
        Method(
            "GetAllocatableResources",
            messages.POD_RESOURCES.AllocatableResourcesRequest,
            messages.POD_RESOURCES.AllocatableResourcesResponse,
        ),
        Method("Get", messages.POD_RESOURCES.GetPodResourcesRequest, messages.POD_RESOURCES.GetPodResourcesResponse),
    ),
)

Handler: TypeAlias = Callable[[Any, Any], Awaitable[Any]] | Callable[[Any, Any], Any]
"""Answers a request, given the context of its call. The handler of a stream is an asynchronous generator."""


def serve(server: grpc.aio.Server, service: Service, handlers: Mapping[str, Handler]) -> None:
    """Add the methods of a service that have a handler to a server. Other methods are UNIMPLEMENTED."""
    method_handlers = {
        method.name: (
            grpc.unary_stream_rpc_method_handler if method.is_stream else grpc.unary_unary_rpc_method_handler
        )(
            handlers[method.name],
            request_deserializer=method.request.FromString,
            response_serializer=method.response.SerializeToString,
        )
        for method in service.methods
        if method.name in handlers
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.name, method_handlers),))


def channel(path: pathlib.Path | str) -> grpc.aio.Channel:
    """Return a connection to a socket that is independent of earlier connections to the same path.

    gRPC shares the state of connections by address. A driver that returns at its path would not be dialled until the
    back-off from its absence is over.
    """
    return grpc.aio.insecure_channel(f"unix:{path}", options=[("grpc.use_local_subchannel_pool", 1)])


async def call(channel: grpc.aio.Channel, service: Service, name: str, request: Any, *, timeout: float) -> Any:
    """Call a method and return its response.

    Raises:
        grpc.aio.AioRpcError: the server refuses, does not answer in time, or cannot be reached.
    """
    method = service.method(name)
    method_call = channel.unary_unary(
        service.path(name),
        request_serializer=method.request.SerializeToString,
        response_deserializer=method.response.FromString,
    )
    return await method_call(request, timeout=timeout)


def stream(channel: grpc.aio.Channel, service: Service, name: str, request: Any) -> Any:
    """Call a method with a stream and return its responses. Iterating raises the errors of call()."""
    method = service.method(name)
    method_call = channel.unary_stream(
        service.path(name),
        request_serializer=method.request.SerializeToString,
        response_deserializer=method.response.FromString,
    )
    return method_call(request)


def problem(error: grpc.aio.AioRpcError) -> str:
    """Return the text of an error as Go words it."""
    name = "".join(part.title() for part in error.code().name.split("_"))
    name = {"Ok": "OK", "Cancelled": "Canceled"}.get(name, name)
    description = "context deadline exceeded" if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED else error.details()
    return f"rpc error: code = {name} desc = {description}"


def code(error: grpc.aio.AioRpcError | None) -> str:
    """Return the status code for metrics; OK without an error."""
    if error is None:
        return "OK"
    return problem(error).split(" ", 5)[4]
