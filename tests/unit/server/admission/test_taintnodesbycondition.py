"""New nodes take no pods before they are seen to be ready."""

import pytest

from tests.unit.server import client

PATH = "/api/v1/nodes"
TAINT = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
OTHER = {"key": "dedicated", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("taints", "want"),
    [
        pytest.param([], [TAINT], id="none"),
        pytest.param([OTHER], [OTHER, TAINT], id="beside-others"),
        pytest.param([{**TAINT, "value": "mine"}], [{**TAINT, "value": "mine"}], id="has-it"),
        pytest.param(
            [{**TAINT, "effect": "NoExecute"}], [{**TAINT, "effect": "NoExecute"}, TAINT], id="of-another-effect"
        ),
    ],
)
async def test_new_nodes_are_tainted(taints: list[dict[str, str]], want: list[dict[str, str]]) -> None:
    server = await client.start(disabled_plugins=())
    made = await server.call("POST", PATH, {"metadata": {"name": "n"}, "spec": {"taints": taints}})
    assert made.body["spec"]["taints"] == want
    made.body["spec"]["taints"] = []
    changed = await server.call("PUT", f"{PATH}/n", made.body)
    assert "taints" not in changed.body["spec"]


async def test_the_plugin_can_be_left_out() -> None:
    server = await client.start(disabled_plugins=("TaintNodesByCondition",))
    made = await server.call("POST", PATH, {"metadata": {"name": "n"}})
    assert "taints" not in made.body["spec"]
