"""For all tests: nothing depends on how fast the machine is, nor on what is drawn by chance."""

import gc
import os
from collections.abc import Iterator
from unittest import mock

import hypothesis
import pytest

from drachma.runtime import defects

# The same examples in every run: who changes something is not told of what somebody else's examples happen to find.
# New ones, and more of them, are looked for by ``make soak``.
hypothesis.settings.register_profile(
    "patient",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile(
    "exploring", hypothesis.settings.get_profile("patient"), derandomize=False, max_examples=200
)
hypothesis.settings.load_profile("patient")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep collected tests out of garbage collections: they are 1.7 million objects that live until the end.

    A full collection took more than a second with them, and happened in the middle of some fifty tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _private_user_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep clusters and contexts of tests out of the files of the user who runs them."""
    folder = tmp_path_factory.mktemp("user")
    own = {"XDG_STATE_HOME": str(folder / "state"), "KUBECONFIG": str(folder / "kubeconfig")}
    with mock.patch.dict(os.environ, own):
        yield


@pytest.fixture(autouse=True)
def _no_defects(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test in which a handler or an index of an informer fails: components survive that, and would hide it."""
    before = defects.PROCESS.components()
    yield
    if request.node.get_closest_marker("defective") is None:
        after = defects.PROCESS.components()
        failed = [name for name, count in after.items() if count > before.get(name, 0)]
        assert not [name for name in failed if name == "index" or name.startswith("informer")], "see the log"
