"""The status page of a component: probes for everyone, metrics for users that the API server allows."""

import contextlib
import socket
from collections.abc import AsyncIterator, Sequence
from typing import Any

import aiohttp
import prometheus_client
import pytest

from drachma.client import refusal
from drachma.listening import addresses
from drachma.process import statusendpoint
from drachma.runtime import Surroundings

USERS = {"admin": {"username": "root", "groups": ["system:masters"]}, "monitor": {"username": "monitor"}}


class _Reviewer:
    """An API server that knows two tokens, and allows ``monitor`` to get ``/metrics``."""

    async def get(self, *_: Any, **__: Any) -> Any:
        raise refusal.error({"message": "no such ConfigMap", "reason": "NotFound", "code": 404})

    async def create_document(self, kind: Any, document: dict[str, Any]) -> dict[str, Any]:
        spec = document["spec"]
        if kind.kind == "TokenReview":
            user = USERS.get(spec["token"])
            return {"status": {"authenticated": True, "user": user} if user else {"authenticated": False}}
        allowed = spec["user"] == "monitor" and spec["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}
        return {"status": {"allowed": allowed}}


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    return port


@contextlib.asynccontextmanager
async def _served(problems: Sequence[str], notes: Sequence[str] = ()) -> AsyncIterator[str]:
    """Serve both ways; yield the ports, the plain one first."""
    client: Any = _Reviewer()
    surroundings = Surroundings(client, registry=prometheus_client.CollectorRegistry())
    prometheus_client.Counter("answers", "answers", registry=surroundings.registry).inc()
    plain, secure = _free_port(), _free_port()
    async with (
        statusendpoint.serve_locally(plain, lambda: problems, surroundings.registry, notes=lambda: notes),
        statusendpoint.serve_securely(addresses.Address("127.0.0.1", secure), lambda: problems, surroundings),
    ):
        yield f"{plain} {secure}"


async def _get(url: str, token: str = "") -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers, ssl=False) as answer:
        return answer.status, await answer.text()


@pytest.mark.parametrize(
    ("path", "problems", "want"),
    [
        pytest.param("/healthz", ["pods: pods is forbidden"], (200, "ok"), id="alive-although-not-ready"),
        pytest.param("/readyz", [], (200, "ok"), id="ready"),
        pytest.param("/readyz?verbose", [], (200, "[+]ready\nreadyz check passed\n"), id="verbose"),
        pytest.param(
            "/readyz",
            ["pods: pods is forbidden"],
            (503, "[-]pods: pods is forbidden\nreadyz check failed\n"),
            id="not-ready",
        ),
        pytest.param("/other", [], (404, "404: Not Found"), id="unknown-path"),
    ],
)
async def test_probes_on_the_loopback_address(path: str, problems: list[str], want: tuple[int, str]) -> None:
    async with _served(problems) as ports:
        assert await _get(f"http://127.0.0.1:{ports.split()[0]}{path}") == want


@pytest.mark.parametrize(
    ("path", "token", "want"),
    [
        pytest.param("/readyz", "", 200, id="probe-without-credentials"),
        pytest.param("/metrics", "", 403, id="anonymous"),
        pytest.param("/metrics", "wrong", 401, id="bad-token"),
        pytest.param("/metrics", "monitor", 200, id="permitted"),
        pytest.param("/metrics", "admin", 200, id="admin"),
        pytest.param("/other", "monitor", 403, id="other-path"),
    ],
)
async def test_access_over_https(path: str, token: str, want: int) -> None:
    async with _served([]) as ports:
        code, text = await _get(f"https://127.0.0.1:{ports.split()[1]}{path}", token)
    assert code == want
    assert ("answers_total 1.0" in text) == (path == "/metrics" and want == 200)


async def test_verbose_readiness_names_what_is_not_served() -> None:
    async with _served([], ["devicetaintrules.resource.k8s.io: not served"]) as ports:
        code, text = await _get(f"http://127.0.0.1:{ports.split()[0]}/readyz?verbose")
    assert (code, text) == (200, "[+]devicetaintrules.resource.k8s.io: not served\n[+]ready\nreadyz check passed\n")
