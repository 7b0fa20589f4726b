"""One server process for all end-to-end tests, and the real clients that talk to it."""

import contextlib
import os
import pathlib
import re
import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests import kubectlprogram, patience
from tests.scenarios import processes

Kubectl = Callable[..., str]
Watch = Callable[..., contextlib.AbstractContextManager[Callable[[], str]]]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[processes.Process]:
    with processes.running(tmp_path_factory.mktemp("e2e") / "data") as started:
        yield started


@pytest.fixture(scope="session")
def kubectl_binary() -> pathlib.Path:
    return kubectlprogram.find()


@pytest.fixture(scope="session")
def environment(server: processes.Process, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of client processes: this server, and nothing of the user's own."""
    home = tmp_path_factory.mktemp("home")
    return {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": str(server.kubeconfig), "TZ": "UTC"}


@pytest.fixture
def kubectl(kubectl_binary: pathlib.Path, environment: dict[str, str], namespace: str) -> Kubectl:
    """Runs kubectl in a namespace of the test's own; what it prints. Fails with its errors, unless these are wanted.

    ``fails`` is None where either will do.
    """

    def run(*arguments: str, stdin: str | None = None, fails: bool | None = False, **variables: str) -> str:
        outcome = subprocess.run(
            [str(kubectl_binary), "--namespace", namespace, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            env={**environment, **variables},
            timeout=120,
            check=False,
        )
        assert fails in (None, outcome.returncode != 0), outcome.stdout + outcome.stderr
        return outcome.stdout + (outcome.stderr if fails else "")

    return run


def eventually(kubectl: Kubectl, *arguments: str, want: str) -> str:
    """What kubectl prints, once a regular expression is found there; until then it may fail, too."""
    return patience.until(
        lambda: kubectl(*arguments, fails=None),
        lambda shown: re.search(want, shown),
        what=f"kubectl {' '.join(arguments)} says {want!r}",
    )


@pytest.fixture
def watch(kubectl_binary: pathlib.Path, environment: dict[str, str], namespace: str) -> Watch:
    """Has kubectl watch meanwhile; gives what reads the next line that it prints."""

    @contextlib.contextmanager
    def watching(*arguments: str) -> Iterator[Callable[[], str]]:
        command = [str(kubectl_binary), "--namespace", namespace, "get", "--watch", *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            try:
                assert process.stdout is not None, "the output is piped"
                yield process.stdout.readline
            finally:
                process.kill()

    return watching


@pytest.fixture
def namespace(request: pytest.FixtureRequest, kubectl_binary: pathlib.Path, environment: dict[str, str]) -> str:
    """A namespace named after the test."""
    name = request.node.name.replace("_", "-").replace("[", "-").strip("]")[:60].rstrip("-")
    subprocess.run(
        [str(kubectl_binary), "create", "namespace", name],
        capture_output=True,
        env=environment,
        timeout=120,
        check=True,
    )
    return str(name)
