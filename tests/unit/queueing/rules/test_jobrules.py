"""Rules and defaults of Kueue's webhooks for Jobs, JobSets and pods."""

from collections.abc import Mapping
from typing import Any

import pytest

from drachma.queueing.configuration.gates import DEFAULT
from drachma.queueing.integrations.appwrapper import AppWrapper
from drachma.queueing.integrations.batchjob import BatchJob
from drachma.queueing.integrations.kubeflow import JAXJob, MPIJob, PyTorchJob
from drachma.queueing.integrations.trainjob import TrainJob
from drachma.queueing.jobs.settings import JobSettings, Management
from drachma.queueing.jobs.suspendable import SuspendableJob
from drachma.queueing.rules import jobrules, jobwebhooks
from drachma.queueing.rules.jobwebhooks import Place
from drachma.values.labels import Selector

QUEUE = "kueue.x-k8s.io/queue-name"
PREBUILT = "kueue.x-k8s.io/prebuilt-workload-name"
ELASTIC = {"kueue.x-k8s.io/elastic-job": "true"}
GATES = "kueue.x-k8s.io/admission-gated-by"
GROUP = "kueue.x-k8s.io/pod-group-name"
TOTAL = "kueue.x-k8s.io/pod-group-total-count"
RETRIABLE = "kueue.x-k8s.io/retriable-in-group"

Document = dict[str, Any]


def made(
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    *,
    owner: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Document:
    metadata: Document = {"name": "x", "labels": dict(labels or {}), "annotations": dict(annotations or {})}
    if owner is not None:
        metadata["ownerReferences"] = [{**owner, "controller": True}]
    return {"metadata": metadata, "spec": spec}


def _job(document: Document, old: Document | None = None) -> list[str]:
    return [str(each) for each in jobrules.job_problems(document, old, DEFAULT, has_default_queue=False)]


@pytest.mark.parametrize(
    ("document", "old", "want"),
    [
        pytest.param(made({PREBUILT: "Wrong"}), None, f"metadata.labels[{PREBUILT}]: Invalid value", id="prebuilt"),
        pytest.param(
            made(annotations={PREBUILT: "Wrong"}),
            None,
            f"metadata.annotations[{PREBUILT}]: Invalid value",
            id="prebuilt-annotation",
        ),
        pytest.param(
            made({PREBUILT: "b"}),
            made({PREBUILT: "a"}),
            f'metadata.labels[{PREBUILT}]: Invalid value: "b": field is immutable',
            id="prebuilt-while-it-runs",
        ),
        pytest.param(
            made({"kueue.x-k8s.io/max-exec-time-seconds": "9" * 20}),
            None,
            f'parsing "{"9" * 20}": value out of range',
            id="limit-out-of-range",
        ),
        pytest.param(
            made(annotations={**ELASTIC, "kueue.x-k8s.io/job-min-parallelism": "1"}, parallelism=2, completions=2),
            None,
            "partial admission and elastic job cannot be used together",
            id="partial-and-elastic",
        ),
        pytest.param(
            made(annotations=ELASTIC),
            made(),
            "metadata.annotations[kueue.x-k8s.io/elastic-job]: Invalid value: true: field is immutable",
            id="becomes-elastic",
        ),
        pytest.param(made(annotations={GATES: "plain"}), None, "must be a domain-prefixed path", id="gate"),
        pytest.param(
            made(annotations={GATES: "a.io/x"}), made(), "cannot add admission gate after creation", id="later-gate"
        ),
    ],
)
def test_jobs_that_make_no_sense(document: Document, old: Document | None, want: str) -> None:
    (problem,) = _job(document, old)
    assert want in problem


@pytest.mark.parametrize(
    ("document", "old"),
    [
        pytest.param(made({PREBUILT: "b"}, suspend=True), made({PREBUILT: "a"}, suspend=True), id="prebuilt-suspended"),
        pytest.param(made({PREBUILT: "Wrong"}, {PREBUILT: "right"}), None, id="annotation-counts"),
        pytest.param(made(), made(annotations={GATES: "a.io/x"}), id="gate-goes"),
        pytest.param(made(annotations=ELASTIC), None, id="elastic"),
    ],
)
def test_jobs_that_do(document: Document, old: Document | None) -> None:
    assert _job(document, old) == []


def test_only_jobs_are_elastic() -> None:
    of_set = jobrules.job_set_problems(made(annotations=ELASTIC), None, DEFAULT, has_default_queue=False)
    of_pod = jobrules.pod_problems(made(annotations=ELASTIC), None, DEFAULT, has_default_queue=False)
    path = "metadata.annotations[kueue.x-k8s.io/elastic-job]"
    text = "elastic job is not supported for"
    assert [str(each) for each in of_set] == [
        f'{path}: Forbidden: {text} "jobset.x-k8s.io/v1alpha2, Kind=JobSet"',
    ]
    assert [str(each) for each in of_pod] == [f'{path}: Forbidden: {text} "/v1, Kind=Pod"']


@pytest.mark.parametrize(
    ("document", "old", "want"),
    [
        pytest.param(
            made(annotations={GROUP: "g"}),
            None,
            f"metadata.annotations[{TOTAL}]: Required value: "
            f"both the '{TOTAL}' annotation and the '{GROUP}' annotation should be set",
            id="group-by-annotation",
        ),
        pytest.param(
            made({GROUP: "g", PREBUILT: "other"}, {TOTAL: "1"}),
            None,
            f'metadata.labels[{PREBUILT}]: Invalid value: "other": prebuilt workload and pod group should be equal',
            id="group-and-prebuilt",
        ),
        pytest.param(
            made({GROUP: "g"}, {TOTAL: "1"}),
            made({GROUP: "g"}, {TOTAL: "1", RETRIABLE: "false"}),
            f"metadata.annotations[{RETRIABLE}]: Forbidden: unretriable pod group can't be converted to retriable",
            id="retriable-again",
        ),
    ],
)
def test_pods_that_make_no_sense(document: Document, old: Document | None, want: str) -> None:
    problems = jobrules.pod_problems(document, old, DEFAULT, has_default_queue=False)
    assert [str(each) for each in problems] == [want]


_JAX = {"name": "x", "labels": {PREBUILT: "w"}}
_SUSPENDED: Document = {"runPolicy": {"suspend": True}}


def _installed(job: SuspendableJob, old: Document | None = None) -> list[str]:
    return [str(each) for each in jobrules.installed_job_problems(job, old, DEFAULT, has_default_queue=False)]


@pytest.mark.parametrize("is_new", [True, False])
def test_jax_jobs_have_no_prebuilt_workload(is_new: bool) -> None:
    document = {"metadata": _JAX, "spec": _SUSPENDED}
    want = f'metadata.labels[{PREBUILT}]: Forbidden: Is not supported for "kubeflow.org/v1, Kind=JAXJob"'
    assert _installed(JAXJob(document), None if is_new else document) == [want]


@pytest.mark.parametrize(
    ("model", "want"),
    [
        pytest.param(PyTorchJob, 0, id="kubeflow"),
        pytest.param(AppWrapper, 0, id="appwrapper"),
        pytest.param(MPIJob, 1, id="mpi"),
    ],
)
def test_changes_of_some_kinds_are_not_checked_again_for_their_labels(model: type[SuspendableJob], want: int) -> None:
    document = made({"kueue.x-k8s.io/max-exec-time-seconds": "no"}, **_SUSPENDED, suspend=True)
    assert len(_installed(model(document))) == 1
    assert len(_installed(model(document), document)) == want


def test_problems_of_an_mpi_job_are_in_the_order_of_fields() -> None:
    annotations = {"kueue.x-k8s.io/podset-unconstrained-topology": "perhaps"}
    template = {"metadata": {"annotations": annotations}, "spec": {}}
    document = made({QUEUE: "Wrong"}, mpiReplicaSpecs={kind: {"template": template} for kind in ("Worker", "Launcher")})
    document["metadata"]["annotations"] = ELASTIC
    fields = [each.partition(":")[0] for each in _installed(MPIJob(document))]
    assert fields == sorted(fields)
    assert len(fields) == 4


def test_a_train_job_without_its_runtime_is_refused() -> None:
    job = TrainJob(made(runtimeRef={"name": "torch"}, suspend=True))
    assert _installed(job) == ["spec.runtimeRef: Invalid value: runtime 'torch' not found"]


def test_the_default_queue_is_also_for_pods_whose_owner_could_have_one() -> None:
    settings = JobSettings(management=Management(frozenset({"batch/job", "pod"})))
    place = Place({}, has_default_queue=True, has_default_priority=False, owner=lambda *_: made())
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u"}
    pod = jobwebhooks.completed_pod(made(owner=owner), place, settings)
    assert pod is not None
    assert pod["metadata"]["labels"][QUEUE] == "default"


def test_the_default_queue_is_not_for_those_whose_owner_could_have_one() -> None:
    settings = JobSettings(management=Management(frozenset({"batch/job", "jobset.x-k8s.io/jobset"})))
    place = Place({}, has_default_queue=True, has_default_priority=True, owner=lambda *_: made())
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "s", "uid": "u"}
    assert jobwebhooks.completed_job(made(owner=owner), place, settings, model=BatchJob) is None
    alone = jobwebhooks.completed_job(made(owner={**owner, "kind": "Other"}), place, settings, model=BatchJob)
    assert alone is not None
    assert (alone["metadata"]["labels"][QUEUE], alone["spec"]) == ("default", {"suspend": True})


@pytest.mark.parametrize(
    ("namespace", "want"),
    [pytest.param({"team": "a"}, {"suspend": True}, id="managed"), pytest.param({"team": "b"}, {}, id="not-managed")],
)
def test_a_queued_job_is_suspended_only_where_jobs_are_managed(namespace: dict[str, str], want: Document) -> None:
    selector = Selector.from_labels({"team": "a"})
    settings = JobSettings(management=Management(frozenset({"batch/job"})), namespaces=selector)
    place = Place(namespace, has_default_queue=False, has_default_priority=False, owner=lambda *_: None)
    document = made({QUEUE: "q"})
    job = jobwebhooks.completed_job(document, place, settings, model=BatchJob) or document
    assert job["spec"] == want


def test_a_job_whose_owner_is_missing_is_queued_by_itself() -> None:
    settings = JobSettings(management=Management(frozenset({"batch/job", "jobset.x-k8s.io/jobset"})))
    place = Place({}, has_default_queue=False, has_default_priority=False, owner=lambda *_: None)
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "gone", "uid": "u"}
    job = jobwebhooks.completed_job(made({QUEUE: "q"}, owner=owner), place, settings, model=BatchJob)
    assert job is not None
    assert job["spec"] == {"suspend": True}
