"""``drachma up`` without options, as a new user runs it: banner, context, examples, status, down."""

import json
import os
import pathlib
import subprocess

import pytest
import yaml

from tests import patience
from tests.scenarios import processes


class User:
    """A user with a home directory of their own."""

    def __init__(self, home: pathlib.Path) -> None:
        self.home = home
        self._environment = {**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home / "state")}
        del self._environment["KUBECONFIG"]

    def run(self, *arguments: str, code: int = 0, text: str = "") -> str:
        ended = subprocess.run(
            [*processes.DRACHMA, *arguments],
            env=self._environment,
            input=text,
            capture_output=True,
            text=True,
            timeout=patience.SECONDS,
            check=False,
        )
        assert ended.returncode == code, ended.stdout + ended.stderr
        return ended.stdout + ended.stderr


@pytest.fixture
def user(tmp_path: pathlib.Path) -> User:
    return User(tmp_path)


def test_the_first_ten_minutes(user: User) -> None:
    assert "no cluster in ~/state/drachma/clusters; drachma up starts one" in user.run("status", code=1)
    banner = user.run("up", "--detach", "--listen", "127.0.0.1:0")
    try:
        assert "Cluster drachma is up, serving on https://127.0.0.1:" in banner
        assert "context    drachma, now current in ~/.kube/config" in banner
        assert "nodes      3 simulated (gpu-server), ready" in banner
        assert "devices    24 gpu.simulation.drachma.dev, 12 nic.simulation.drachma.dev" in banner
        assert "already running" in user.run("up", "--detach", code=2)
        # The commands of the banner work as they stand there.
        for line in ("example first-steps", "get pods", "explain pod giant"):
            assert f"drachma {line}" in banner
        applied = user.run("apply", "-f", "-", text=user.run("example", "first-steps"))
        assert "pod/giant created" in applied
        unchanged = user.run("apply", "-f", "-", text=user.run("example", "first-steps"))
        assert [line.split()[1] for line in unchanged.splitlines()] == ["unchanged"] * 4
        patience.until(
            lambda: json.loads(user.run("get", "pods", "-o", "json"))["items"],
            lambda pods: {each["name"]: each["status"] for each in pods} == {"giant": "Pending", "trainer": "Running"},
            what="one pod runs",
        )
        assert "giant" in user.run("explain", "pod", "giant", code=1)
        assert "there is no pod default/gaint; did you mean giant?" in user.run("explain", "pod", "gaint", code=2)
        assert "namespace default has one (-n default)" in user.run("explain", "pod", "giant", "-n", "other", code=2)
        header, row = user.run("get", "pod", "trainer").splitlines()
        assert (header.split()[0], row.split()[:2]) == ("NAME", ["trainer", "Running"])
        assert "pods 'trainr': not found in namespace default; did you mean trainer?" in user.run(
            "get", "pod", "trainr", code=2
        )
        (running,) = json.loads(user.run("status", "-o", "json"))["clusters"]
        assert running["state"] == "running"
    finally:
        assert "cluster drachma is stopped" in user.run("down")
    assert "stopped" in user.run("status", code=1)
    kubeconfig = user.home / ".kube" / "config"
    stopped = yaml.safe_load(kubeconfig.read_text())
    assert ([each["name"] for each in stopped["contexts"]], stopped["current-context"]) == (["drachma"], "")
    log = user.home / "state" / "drachma" / "clusters" / "drachma" / "drachma.log"
    assert "controller starts" not in log.read_text(), "nothing but the banner"
    assert "is deleted" in user.run("down", "--delete")
    config = yaml.safe_load(kubeconfig.read_text())
    assert config["contexts"] == []
    assert config["current-context"] == ""
    assert "there is no cluster drachma" in user.run("down", code=1)


def test_a_cluster_that_does_not_start_says_why(user: User) -> None:
    (user.home / ".kube").mkdir()
    (user.home / ".kube" / "config").write_text("kind: Pod")
    assert "expected one object of kind Config" in user.run("up", "--detach", code=1)
    (user.home / ".kube" / "config").unlink()
    output = user.run("up", "--detach", "--memory", "--listen", "203.0.113.1:1", code=1)
    assert "did not start" in output
    assert "203.0.113.1:1: cannot listen" in output
