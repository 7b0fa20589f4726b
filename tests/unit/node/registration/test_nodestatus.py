"""Status of a node as its agent reports it."""

import datetime as dt
import re

from drachma.api import node
from drachma.node.registration import nodestatus
from drachma.node.registration.addresses import NodeAddress
from drachma.node.simulation import hardware

NOW = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
BEFORE = NOW - dt.timedelta(hours=1)


def _status(address: NodeAddress | None = None) -> nodestatus.NodeStatus:
    return nodestatus.NodeStatus(
        hardware.build("cpu", 1).machines[0], address=address, runtime="simulated://1", features=["Feature"]
    )


def _ready(value: str, *, heartbeat: dt.datetime = BEFORE) -> node.NodeStatus:
    condition = node.NodeCondition(
        type="Ready", status=value, last_heartbeat_time=heartbeat, last_transition_time=BEFORE
    )
    return node.NodeStatus(conditions=(condition,))


def test_a_condition_that_stays_keeps_its_transition_time() -> None:
    content = _status().content(_ready("True"), now=NOW)
    (ready,) = [each for each in content["conditions"] if each["type"] == "Ready"]
    assert (ready["status"], ready["lastTransitionTime"]) == ("True", "2026-01-01T11:00:00Z")
    assert ready["lastHeartbeatTime"] == "2026-01-01T12:00:00Z"


def test_a_condition_that_changes_says_when() -> None:
    content = _status().content(_ready("Unknown"), now=NOW)
    (ready,) = [each for each in content["conditions"] if each["type"] == "Ready"]
    assert (ready["status"], ready["lastTransitionTime"]) == ("True", "2026-01-01T12:00:00Z")


def test_heartbeats_are_not_compared() -> None:
    assert nodestatus.own_part(_ready("True")) == nodestatus.own_part(_ready("True", heartbeat=NOW))
    assert nodestatus.own_part(_ready("True")) != nodestatus.own_part(_ready("Unknown"))


def test_conditions_of_others_are_not_compared() -> None:
    network_condition = node.NodeCondition(type="NetworkUnavailable", status="True")
    stored_status = node.NodeStatus(conditions=(*_ready("True").conditions, network_condition))
    assert nodestatus.own_part(stored_status) == nodestatus.own_part(_ready("True"))


def test_readiness() -> None:
    assert nodestatus.is_ready(_ready("True"))
    assert not nodestatus.is_ready(_ready("Unknown"))
    assert not nodestatus.is_ready(node.NodeStatus())


def test_a_node_says_where_it_is_reached() -> None:
    content = _status(NodeAddress("127.1.0.1", 1234, "192.0.2.1")).content(node.NodeStatus(), now=NOW)
    assert content["addresses"][0] == {"type": "InternalIP", "address": "127.1.0.1"}
    assert content["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 1234}}
    assert "addresses" not in _status().content(node.NodeStatus(), now=NOW)


def test_clients_read_a_version_of_kubernetes() -> None:
    version = _status().content(node.NodeStatus(), now=NOW)["nodeInfo"]["kubeletVersion"]
    assert re.match(r"v1\.\d+\.\d+\+drachma-", version)


def test_a_simulated_machine_reports_the_runtime_that_its_containers_have() -> None:
    """The API server dials pods of other runtimes than the simulated one."""
    machine = hardware.build("cpu", 1).machines[0]
    reported = nodestatus.NodeStatus(machine, address=None, runtime="process://1", features=[])
    info = reported.content(node.NodeStatus(), now=NOW)["nodeInfo"]
    assert info["containerRuntimeVersion"] == "process://1"
