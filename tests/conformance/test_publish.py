"""What upstream's helper for drivers does: slices that it publishes, sockets that it serves, names that it gives."""

import asyncio
import contextlib
import itertools
import json
import pathlib
import random
import tempfile
from typing import Any

import msgspec

from drachma import errors
from drachma.api import nodeselector
from drachma.api.hooks import decode as decode_hook
from drachma.driver.plugin import socketnames
from drachma.driver.publishing import layout, publisher
from drachma.runtime import Surroundings
from drachma.testing import manualclock
from tests.conformance import helperstage, sliceserver, vectors
from tests.conformance.vectors import Line

QUIET_SECONDS = 50.0
"""Longer than everything takes that is not put off until later."""


@vectors.each("publish", where=lambda case: case["kind"] == "publish")
async def test_publish(case: Line) -> None:
    stage = Stage(case)
    try:
        for number, step in enumerate(case["steps"]):
            answer = await stage.do(step)
            if "want" in step:
                compare(answer, step["want"], pools=len(pool_names(case)), where=f"step {number}")
    finally:
        await stage.stop()


def pool_names(case: Line) -> set[str]:
    names = {each["spec"]["pool"]["name"] for each in case.get("existing", ())}
    return names.union(*(step.get("pools", ()) for step in case["steps"]))


def compare(answer: Line, want: Line, *, pools: int, where: str) -> None:
    if "startError" in want:
        assert answer == want, where
        return
    assert _shown(answer["slices"]) == _shown(want["slices"]), where
    assert sorted(answer["errors"]) == sorted(want.get("errors", [])), where
    ours, theirs = _stages(answer["writes"]), _stages(want["writes"])
    if pools > 1:
        # Which pool comes first is chance.
        ours, theirs = [sorted(itertools.chain(*ours))], [sorted(itertools.chain(*theirs))]
    assert ours == theirs, where


def _shown(slices: list[Line]) -> list[str]:
    return sorted(json.dumps({**each, "name": _prefix(each["name"])}, sort_keys=True) for each in slices)


def _stages(writes: list[Line]) -> list[list[str]]:
    """Writes in the order that they have: all of a verb in a row belong together, and have none among themselves."""
    stages: list[list[str]] = []
    verb = ""
    for write in writes:
        if write["verb"] != verb:
            stages.append([])
            verb = write["verb"]
        named = {**write, "name": _prefix(write["name"])} if "name" in write else write
        stages[-1].append(json.dumps(named, sort_keys=True))
    return [sorted(stage) for stage in stages]


def _prefix(name: str) -> str:
    return name.rpartition("-")[0]


class Stage:
    """A publisher, an API server, and a clock that is moved by hand."""

    def __init__(self, case: Line) -> None:
        self._case = case
        self._server = sliceserver.SliceServer()
        self._clock = manualclock.ManualClock()
        self._errors: list[str] = []
        self._publisher: publisher.Publisher | None = None
        self._task: asyncio.Task[None] | None = None
        for each in case.get("existing", ()):
            self._server.put(each)
        for each in case.get("nodes", ()):
            self._server.add_node(each)

    async def do(self, step: Line) -> Line:
        match step["do"]:
            case "publish":
                try:
                    await self._start()
                except errors.DriverError as error:
                    return {"startError": f"create controller: {error}"}
                assert self._publisher is not None
                self._publisher.publish({name: _layout(pool) for name, pool in step.get("pools", {}).items()})
            case "fault":
                self._server.fail(step["fault"])
            case "drop":
                self._server.drops = frozenset(step["drop"])
            case "deleteSlice":
                self._server.remove(step["name"])
            case "putSlice":
                metadata = {**step["slice"]["metadata"]}
                with contextlib.suppress(StopIteration):
                    metadata["name"] = self._server.resolve(metadata["name"])
                self._server.put({**step["slice"], "metadata": metadata})
            case "stop":
                await self.stop()
        if "want" in step:
            await self._clock.advance(QUIET_SECONDS)
        answer = {"slices": self._server.slices(), "writes": self._server.writes, "errors": self._errors}
        if "want" in step:
            self._server.writes, self._errors = [], []
        return answer

    async def _start(self) -> None:
        if self._publisher is not None:
            return
        around = Surroundings(self._server.client, clock=self._clock, rng=random.Random(1))
        owner = self._case.get("owner")
        self._publisher = publisher.Publisher(
            around,
            self._case["driver"],
            owner=None
            if owner is None
            else layout.Owner(
                api_version=owner["APIVersion"], kind=owner["Kind"], name=owner["Name"], uid=owner["UID"]
            ),
            only_pool=self._case.get("reconcilePoolWithName", ""),
            report=self._tell,
        )
        started = self._publisher

        async def run() -> None:
            async with around.informers:
                await started.run()

        self._task = asyncio.create_task(run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._publisher = self._task = None

    def _tell(self, problem: publisher.Problem) -> None:
        """Recordings say of some errors what they are."""
        cause: BaseException | None = problem.error
        while cause is not None and not isinstance(cause, errors.InvalidObjectError | errors.DroppedFieldsError):
            cause = cause.__cause__
        kind = {errors.InvalidObjectError: " [Invalid]", errors.DroppedFieldsError: " [DroppedFieldsError]"}
        self._errors.append(f"{problem}{kind.get(type(cause), '')}")


def _layout(pool: Line) -> layout.Layout:
    slices = msgspec.convert(pool["slices"], tuple[layout.SliceContent, ...], dec_hook=decode_hook)
    selector: Any = pool.get("nodeSelector")
    return layout.Layout(
        slices=slices,
        node_selector=selector and msgspec.convert(selector, nodeselector.NodeSelector),
        all_nodes=pool.get("allNodes", False),
        generation=pool.get("generation", 0),
    )


@vectors.each("publish", where=lambda case: case["kind"] == "socketName")
def test_publish_socket_name(case: Line) -> None:
    (step,) = case["steps"]
    options = case["options"]
    directory = pathlib.Path(options["dir"])
    name = socketnames.rolling_registration(directory, case["driver"], pod_uid=options["podUID"])
    assert {"name": name} == step["want"]


@vectors.each("publish", where=lambda case: case["kind"] == "helper")
async def test_publish_helper(case: Line) -> None:
    with tempfile.TemporaryDirectory(prefix="h") as folder:
        stage = helperstage.HelperStage(case, pathlib.Path(folder))
        try:
            for number, step in enumerate(case["steps"]):
                answer = await stage.do(step)
                if "want" in step:
                    assert answer == step["want"], f"step {number}"
        finally:
            await stage.stop()
