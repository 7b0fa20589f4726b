"""The services between agent and drivers: their names, methods, and how GetInfo advertises them.

The name by which a driver advertises a DRA service is not the one by which it is called.
"""

from __future__ import annotations

import pathlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import grpc
import grpc.aio

from drachma.nodewire.rpc import messages


class Method(NamedTuple):
    """A method with the classes of what it takes and gives: one answer, or a stream of them."""

    name: str
    request: Any
    response: Any
    is_stream: bool = False


class Service(NamedTuple):
    """A service by the full name that calls have; ``advertised`` is what GetInfo says for it."""

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


_SEVERAL: Final = ("NodePrepareResources", "NodeUnprepareResources")


def _dra(version: str, package: messages.Messages) -> Service:
    methods = _methods(package, *_SEVERAL)
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

NODE_1_31: Final = Service("v1alpha4.Node", _methods(messages.DRA_1_31, *_SEVERAL), "v1alpha4.Node")
NODE_1_30: Final = Service(
    "v1alpha3.Node",
    (
        *_methods(messages.DRA_1_30, *_SEVERAL),
        Method(
            "NodeListAndWatchResources",
            messages.DRA_1_30.NodeListAndWatchResourcesRequest,
            messages.DRA_1_30.NodeListAndWatchResourcesResponse,
            is_stream=True,
        ),
    ),
    "v1alpha3.Node",
)
"""With the resource watch: a driver tells its node what there is, and the node publishes that."""
NODE_SINGLE: Final = Service(
    "v1alpha2.Node", _methods(messages.DRA_SINGLE, "NodePrepareResource", "NodeUnprepareResource")
)
FIRST_ALPHA: Final = (NODE_1_31, NODE_1_30, NODE_SINGLE)
"""What drivers have that advertise a number, the newest first."""

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
"""Answers a request in the context of its call; the handler of a stream is an asynchronous generator."""


def serve(server: grpc.aio.Server, service: Service, handlers: Mapping[str, Handler]) -> None:
    """Has a server answer the methods of a service that have a handler; the others are UNIMPLEMENTED."""
    made = {
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
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.name, made),))


def channel(path: pathlib.Path | str) -> grpc.aio.Channel:
    """A connection to a socket that knows nothing of earlier ones to the same path.

    gRPC shares what connections know by address: a driver that comes back on its path would be left alone until the
    pause is over that began when it was away.
    """
    return grpc.aio.insecure_channel(f"unix:{path}", options=[("grpc.use_local_subchannel_pool", 1)])


async def call(channel: grpc.aio.Channel, service: Service, name: str, request: Any, *, timeout: float) -> Any:
    """The answer of a method.

    Raises:
        grpc.aio.AioRpcError: the other side refuses, does not answer in time, or is not there.
    """
    method = service.method(name)
    made = channel.unary_unary(
        service.path(name),
        request_serializer=method.request.SerializeToString,
        response_deserializer=method.response.FromString,
    )
    return await made(request, timeout=timeout)


def stream(channel: grpc.aio.Channel, service: Service, name: str, request: Any) -> Any:
    """The answers of a method that gives many, one after the other; see :func:`call` for what iterating may raise."""
    method = service.method(name)
    made = channel.unary_stream(
        service.path(name),
        request_serializer=method.request.SerializeToString,
        response_deserializer=method.response.FromString,
    )
    return made(request)


def problem(error: grpc.aio.AioRpcError) -> str:
    """What went wrong, as Go words it."""
    name = "".join(part.title() for part in error.code().name.split("_"))
    name = {"Ok": "OK", "Cancelled": "Canceled"}.get(name, name)
    description = "context deadline exceeded" if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED else error.details()
    return f"rpc error: code = {name} desc = {description}"


def code(error: grpc.aio.AioRpcError | None) -> str:
    """The code of an outcome as metrics have it."""
    if error is None:
        return "OK"
    return problem(error).split(" ", 5)[4]
