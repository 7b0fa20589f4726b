"""Recorded scenarios of a real API server with its controllers, played against ours in processes of their own.

All lines that were selected are replayed at once, by whichever worker comes first, since most of their time passes in
waiting; each is a test.
"""

import asyncio
import fcntl
import json
import os
import pathlib
from typing import cast

import pytest

from tests.conformance import vectors
from tests.conformance.policy import identities, replay, webhooks
from tests.conformance.vectors import Line
from tests.scenarios import processes

_WITHOUT = ("node-lifecycle-controller", "taint-eviction-controller", "device-taint-eviction-controller")


@pytest.fixture(scope="session")
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    """The first difference of each selected line, by its name."""
    parameters = [
        cast(Line, item.callspec.params["case"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.path == pathlib.Path(__file__)
    ]
    # An absent recording has one case without content.
    cases = [case for case in parameters if case]
    base = tmp_path_factory.getbasetemp()
    # Workers of one run have folders beside each other.
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    result = shared / "policy-outcomes.json"
    with (shared / "policy-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not result.exists():
            result.write_text(json.dumps(_play(cases, tmp_path_factory.mktemp("policy"))))
    found: dict[str, str | None] = json.loads(result.read_text())
    return found


def _body_files(case: Line) -> list[pathlib.Path]:
    """Return the files that a scenario sends as bodies; Kueue's definitions are not part of the repository."""
    files = vectors.folder().parent / "policy"
    return [files / step["bodyFile"] for step in case["steps"] if step.get("bodyFile")]


@vectors.each("policy", needs=_body_files)
def test_policy(case: Line, outcomes: dict[str, str | None]) -> None:
    difference = outcomes[case["name"]]
    assert difference is None, difference


@vectors.each("policy-2")
def test_policy_2(case: Line, outcomes: dict[str, str | None]) -> None:
    difference = outcomes[case["name"]]
    assert difference is None, difference


def _play(cases: list[Line], folder: pathlib.Path) -> dict[str, str | None]:
    people = identities.make(folder)
    with processes.running(folder / "data", options=people.options) as server:

        async def play() -> dict[str, str | None]:
            without = ",".join(["*", *(f"-{name}" for name in _WITHOUT)])
            command = (
                "controllers",
                "--service-account-private-key-file",
                str(people.folder / "sa.key"),
                "--kubeconfig",
                str(server.kubeconfig),
                "--no-leader-elect",
                "--controllers",
                without,
            )
            files = vectors.folder().parent / "policy"
            async with (
                processes.command(*command),
                replay.Caller(server.url, people, files=files) as caller,
            ):
                await _until_ready(caller)
                return await replay.replay(caller, cases, webhooks.Webhooks(people, cases))

        return asyncio.run(play())


async def _until_ready(caller: replay.Caller) -> None:
    """Returns once the controllers work: every namespace gets an account then."""
    account = "/api/v1/namespaces/default/serviceaccounts/default"
    await caller.wait({"method": "GET", "path": account, "wait": {"code": 200}}, {"code": 200})
