"""Construction of workloads: names."""

from drachma.queueing.configuration import frameworks, gates
from drachma.queueing.jobs import construction

_JOB = frameworks.KINDS[frameworks.BATCH_JOB]


def test_owners_of_one_name_have_workloads_of_different_names() -> None:
    one = construction.workload_name("train", uid="one", kind=_JOB)
    other = construction.workload_name("train", uid="other", kind=_JOB)
    pod_workload = construction.workload_name("train", uid="one", kind=frameworks.KINDS[frameworks.POD])

    assert one.startswith("job-train-")
    assert pod_workload.startswith("pod-train-")
    assert len({one, other, pod_workload}) == 3


def test_names_are_as_long_as_names_may_be() -> None:
    short = gates.DEFAULT.switched({"ShortWorkloadNames": True})

    assert len(construction.workload_name("x" * 300, uid="u", kind=_JOB)) == 253
    assert len(construction.workload_name("x" * 300, uid="u", kind=_JOB, gates=short)) == 63
