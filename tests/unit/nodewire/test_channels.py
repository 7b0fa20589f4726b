"""Connections between agents and drivers."""

import pathlib
import tempfile

import grpc
import grpc.aio
import pytest

from drachma.nodewire.rpc import services


async def _serve(path: pathlib.Path) -> grpc.aio.Server:
    async def answer(_request: object, _context: object) -> object:
        return services.REGISTRATION.method("GetInfo").response(name="back")

    server = grpc.aio.server()
    services.serve(server, services.REGISTRATION, {"GetInfo": answer})
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    return server


async def test_a_driver_that_comes_back_on_its_path_is_reached_at_once() -> None:
    request = services.REGISTRATION.method("GetInfo").request()
    with tempfile.TemporaryDirectory(prefix="c") as folder:
        path = pathlib.Path(folder) / "s"
        async with services.channel(path) as before:
            with pytest.raises(grpc.aio.AioRpcError):
                await services.call(before, services.REGISTRATION, "GetInfo", request, timeout=60)
            server = await _serve(path)
            async with services.channel(path) as after:
                answer = await services.call(after, services.REGISTRATION, "GetInfo", request, timeout=60)
            assert answer.name == "back"
            await server.stop(grace=None)
