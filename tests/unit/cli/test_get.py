"""``drachma get``: what is refused before a cluster is asked."""

import pathlib

import pytest
from typer.testing import CliRunner

from drachma import errors
from drachma.cli.root import app


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        pytest.param(("workloads", "--node", "n"), "--node n: does not go with workloads", id="node-of-workloads"),
        pytest.param(("queues", "--class", "c"), "--class c: does not go with queues", id="class-of-queues"),
        pytest.param(("pods", "--queue", "q"), "--queue q: does not go with pods", id="queue-of-pods"),
        pytest.param(("queues", "-w", "-o", "json"), "--watch: goes with tables, not with -o json", id="watched-json"),
    ],
)
def test_options_that_do_not_go_together(arguments: tuple[str, ...], want: str) -> None:
    refused = CliRunner().invoke(app, ["get", *arguments])
    assert str(refused.exception) == want


@pytest.mark.parametrize(
    ("word", "want"),
    [
        pytest.param("devces", "table 'devces': does not exist; did you mean", id="mistyped"),
        pytest.param("podz", "table 'podz': does not exist; did you mean pods?", id="without-other-names-of-it"),
        pytest.param(
            "clusterqeue", "table 'clusterqeue': does not exist; did you mean clusterqueue", id="mistyped-alias"
        ),
        pytest.param("services", "table 'services': does not exist", id="another-kind"),
    ],
)
def test_a_table_that_does_not_exist(word: str, want: str) -> None:
    refused = CliRunner().invoke(app, ["get", word])
    assert str(refused.exception).startswith(want)


@pytest.mark.parametrize("word", ["po", "pod", "Pods", "no", "cq", "wl", "resourceclaims"])
def test_short_names_and_singulars_of_kubectl(word: str, tmp_path: pathlib.Path) -> None:
    refused = CliRunner().invoke(app, ["get", word, "--kubeconfig", str(tmp_path / "none")])
    assert isinstance(refused.exception, errors.AccessError), "the table exists, the cluster does not"
