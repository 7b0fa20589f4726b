"""Names of workloads: readable, of bounded length, and different for different owners."""

from drachma.queueing.configuration import frameworks, gates
from drachma.queueing.jobs import workloadnames

_JOB = frameworks.KINDS[frameworks.BATCH_JOB]


def test_owners_of_one_name_have_workloads_of_different_names() -> None:
    one = workloadnames.for_owner("train", uid="one", kind=_JOB)
    other = workloadnames.for_owner("train", uid="other", kind=_JOB)
    of_pod = workloadnames.for_owner("train", uid="one", kind=frameworks.KINDS[frameworks.POD])

    assert one.startswith("job-train-")
    assert of_pod.startswith("pod-train-")
    assert len({one, other, of_pod}) == 3


def test_names_are_as_long_as_names_may_be() -> None:
    short = gates.DEFAULT.switched({"ShortWorkloadNames": True})

    assert len(workloadnames.for_owner("x" * 300, uid="u", kind=_JOB)) == 253
    assert len(workloadnames.for_owner("x" * 300, uid="u", kind=_JOB, gates=short)) == 63
