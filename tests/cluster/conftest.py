"""One real control plane for all tests of a session. See programs.require for what happens without its programs."""

from collections.abc import AsyncIterator, Iterator

import pytest

from drachma.client import http, kubeconfig
from drachma.runtime import clock
from tests.cluster import controlplane, programs, realplane
from tests.scenarios import wire


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[controlplane.ControlPlane]:
    """Return a running kube-apiserver 1.37 with all DRA gates; no scheduler and no controllers."""
    programs.require(*programs.CONTROL_PLANE)
    with controlplane.control_plane(tmp_path_factory.mktemp("plane")) as running:
        yield running


@pytest.fixture
def admin(plane: controlplane.ControlPlane) -> Iterator[wire.Wire]:
    """Return a connection of the administrator."""
    with wire.Wire(plane) as connection:
        yield connection


@pytest.fixture
async def client(plane: controlplane.ControlPlane) -> AsyncIterator[http.HttpClient]:
    """Return a client of the administrator."""
    access = kubeconfig.load(plane.kubeconfig, context="", environment={}, home=plane.folder)
    async with http.HttpClient(access, clock=clock.SystemClock()) as running:
        yield running


@pytest.fixture
async def cleared(client: http.HttpClient) -> AsyncIterator[None]:
    """Delete the objects of a test after it."""
    yield
    await realplane.RealPlane(client).clear()
