"""Kueue's recorded webhooks: what they refuse beside what schemas do."""

from collections.abc import Callable
from typing import Any

from drachma.queueing import gates, queuerules, workloadrules
from drachma.queueing.kinds import clusterqueue, decoding, resourceflavor, workload
from drachma.validation.fielderror import FieldError
from drachma.values import fieldtext
from tests.conformance import kueueforms, vectors


@vectors.each("kueue-webhooks")
def test_kueue_webhooks(case: vectors.Line) -> None:
    recorded, answer = case["input"], case["answer"]

    errors = _CHECKS[case["kind"]](recorded["object"], recorded.get("oldObject"), kueueforms.switched(case))

    assert kueueforms.errors(errors) == kueueforms.recorded_errors(answer["errors"])
    if "error" in answer and "immutable" not in answer["error"]:
        assert fieldtext.together(map(str, errors)) == answer["error"]


def _queue(new: Any, old: Any, switched: gates.Gates) -> tuple[FieldError, ...]:
    before = None if old is None else decoding.decode(old, clusterqueue.ClusterQueue)
    return queuerules.check_queue(decoding.decode(new, clusterqueue.ClusterQueue), before, gates=switched)


def _cohort(new: Any, _old: Any, _switched: gates.Gates) -> tuple[FieldError, ...]:
    return queuerules.check_cohort(decoding.decode(new, clusterqueue.Cohort))


def _flavor(new: Any, _old: Any, _switched: gates.Gates) -> tuple[FieldError, ...]:
    return queuerules.check_flavor(decoding.decode(new, resourceflavor.ResourceFlavor))


def _workload(new: Any, old: Any, switched: gates.Gates) -> tuple[FieldError, ...]:
    before = None if old is None else decoding.decode(old, workload.Workload)
    return workloadrules.check(decoding.decode(new, workload.Workload), before, gates=switched)


_CHECKS: dict[str, Callable[[Any, Any, gates.Gates], tuple[FieldError, ...]]] = {
    "clusterqueue": _queue,
    "cohort": _cohort,
    "resourceflavor": _flavor,
    "workload": _workload,
}
