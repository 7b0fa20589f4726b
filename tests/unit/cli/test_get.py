"""``drachma get``: what is refused before a cluster is asked."""

import pytest
from typer.testing import CliRunner

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
