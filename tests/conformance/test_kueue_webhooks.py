"""Kueue's recorded webhooks: what they refuse beside what schemas do."""

from drachma.queueing.rules import webhooks
from drachma.values import fieldtext
from tests.conformance import kueueforms, vectors

_KINDS = {
    "clusterqueue": "ClusterQueue",
    "cohort": "Cohort",
    "resourceflavor": "ResourceFlavor",
    "workload": "Workload",
}


@vectors.each("kueue-webhooks")
def test_kueue_webhooks(case: vectors.Line) -> None:
    recorded, answer = case["input"], case["answer"]

    kind = {"kind": _KINDS[case["kind"]]}
    errors = webhooks.queue_problems(recorded["object"] | kind, recorded.get("oldObject"), kueueforms.switched(case))

    assert kueueforms.errors(errors) == kueueforms.recorded_errors(answer.get("errors"))
    if "error" in answer and "immutable" not in answer["error"]:
        assert fieldtext.together(map(str, errors)) == answer["error"]
