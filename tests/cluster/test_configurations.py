"""Configurations that kube-scheduler refuses: its messages are those that drachma's tests expect."""

import json
import pathlib
import re
import subprocess
from typing import Any

import pytest

from tests.cluster import programs
from tests.unit.process import refusedconfigurations

_HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
_NOWHERE = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}],
    "current-context": "c",
}
"""No configuration gets as far as a connection."""


@pytest.mark.parametrize(("fields", "want"), refusedconfigurations.CASES)
def test_kube_scheduler_says_the_same(fields: dict[str, Any], want: str, tmp_path: pathlib.Path) -> None:
    programs.require("kube-scheduler")
    kubeconfig, file = tmp_path / "kubeconfig", tmp_path / "scheduler.json"
    kubeconfig.write_text(json.dumps(_NOWHERE))
    connection = {"kubeconfig": str(kubeconfig), **fields.get("clientConnection", {})}
    file.write_text(json.dumps({**_HEAD, **fields, "clientConnection": connection}))
    command = [str(programs.built("kube-scheduler")), "--config", str(file), "--secure-port", "0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    said = re.search(r'"command failed" err=(".*")', ended.stderr)
    assert said is not None, ended.stderr
    assert json.loads(said[1]) == want
