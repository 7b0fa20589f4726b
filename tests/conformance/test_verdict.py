"""What a real API server answered to new objects, against ``drachma validate``'s verdict, which has no cluster.

Lines that the rest of a cluster decided (403) are taken: nothing is wrong with the objects themselves.
"""

from datetime import UTC, datetime

from drachma.api import gates
from drachma.server.pipeline import verdict
from tests.conformance import vectors
from tests.conformance.vectors import Line

NOW = datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC)
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}


@vectors.each("apiserver-create")
async def test_apiserver_create_verdict(case: Line) -> None:
    judge = verdict.Judge(gates=gates.ALL, clock=lambda: NOW)
    await judge.assume([NAMESPACE, case["object"]])
    ours = await judge.judge(case["object"])
    if case["code"] in (400, 422):
        assert ours.refusal is not None, f"taken, though: {case['status']}"
        # A recorded Status has no more than what differs from one refusal to another.
        assert {key: ours.refusal.get(key) for key in case["status"]} == case["status"]
    else:
        assert ours.refusal is None
