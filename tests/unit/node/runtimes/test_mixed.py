"""Two runtimes on one node: which containers are simulated."""

import datetime as dt
from typing import Any, cast

import pytest
from msgspec import structs

from drachma import errors
from drachma.api.pod import Container
from drachma.node.runtimes import mixed
from drachma.node.runtimes.protocol import Work
from drachma.testing import pod


class FakeRuntime:
    """A runtime that only says which one it is."""

    has_files = True

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: list[str] = []

    def unenforced(self, work: Work) -> list[str]:
        return [self.name]

    async def start(self, work: Work) -> str:
        return self.name

    async def recall(self, work: Work, name: str, *, since: dt.datetime) -> str:
        return self.name

    def forget(self, uid: str) -> None:
        self.calls.append(f"forget {uid}")

    async def close(self) -> None:
        self.calls.append("close")


def work(namespace: str = "apps", image: str = "registry.example/tool:1", **labels: str) -> Work:
    built_pod = pod("p").build()
    metadata = structs.replace(built_pod.metadata, namespace=namespace, labels=labels)
    return Work(pod=structs.replace(built_pod, metadata=metadata), container=Container(name="c", image=image))


def mixture(*rules: str) -> tuple[Any, FakeRuntime, FakeRuntime]:
    real, simulated = FakeRuntime("real"), FakeRuntime("simulated")
    parsed_rules = [mixed.Rule.parse(rule) for rule in rules]
    return mixed.MixedRuntime(cast(Any, real), cast(Any, simulated), parsed_rules), real, simulated


@pytest.mark.parametrize(
    ("rule", "matching", "other"),
    [
        pytest.param("namespace=default", work("default"), work("apps"), id="namespace"),
        pytest.param("label=simulate", work(simulate="yes"), work(app="x"), id="label"),
        pytest.param("label=app=train", work(app="train"), work(app="serve"), id="label-with-value"),
        pytest.param("image=*/nvidia/*", work(image="r.example/nvidia/cuda:12"), work(image="nvidia"), id="image"),
    ],
)
async def test_rules_name_the_containers_to_simulate(rule: str, matching: Work, other: Work) -> None:
    runtime, _, _ = mixture(rule)
    assert (await runtime.start(matching), await runtime.start(other)) == ("simulated", "real")
    assert (runtime.unenforced(matching), runtime.unenforced(other)) == (["simulated"], ["real"])


async def test_a_container_is_recalled_from_the_runtime_that_started_it() -> None:
    runtime, _, _ = mixture("namespace=default")
    now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    assert await runtime.recall(work("apps"), "simulated://uid/c/0", since=now) == "simulated"
    assert await runtime.recall(work("default"), "process://4711", since=now) == "real"


async def test_both_forget_and_close() -> None:
    runtime, real, simulated = mixture("namespace=default")
    runtime.forget("u")
    await runtime.close()
    assert real.calls == simulated.calls == ["forget u", "close"]


@pytest.mark.parametrize("text", ["default", "namespace=", "=x", "node=n", "namespace"])
def test_rules_that_mean_nothing(text: str) -> None:
    with pytest.raises(errors.InvalidValueError, match="must be namespace=NAME"):
        mixed.Rule.parse(text)
