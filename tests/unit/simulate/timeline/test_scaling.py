"""Node groups in virtual time, failed devices, and maintenance that repeats."""

import pytest

from drachma import errors
from drachma.simulate import ClusterState, Simulation
from drachma.simulate.timeline import generation, report, workloadspec
from drachma.simulate.timeline.events import DeviceFault, JobShape, NodeOutage
from drachma.simulate.timeline.jobrun import JobRun
from drachma.simulate.timeline.scaling import Scaling, ScalingRules
from drachma.simulate.timeline.timeline import Timeline
from tests.unit.simulate import objects as clusters
from tests.unit.simulate.timeline.histories import History, job, node, shape


def test_nodes_arrive_after_a_delay_and_leave_when_unneeded() -> None:
    lines: list[str] = []

    def note(what: str, time: float, run: JobRun, where: str) -> None:
        lines.append(f"{time:g} {what} {run.arrival.name} on {where}")

    cluster = Simulation(ClusterState.of([]))
    group = clusters.cpu_group("boxes", price=3.0)
    scaling = Scaling(ScalingRules((group,), delay=300, unneeded=600), cluster)
    timeline = Timeline(cluster, observer=note, scaling=scaling)
    timeline.run([job(0, "one", shape(8), 100), job(5000, "two", shape(8), 100)])
    assert lines == [
        "300 start one on boxes-1",
        "400 end one on boxes-1",
        "5300 start two on boxes-2",
        "5400 end two on boxes-2",
    ]
    (cost,) = report.make(timeline, title="t", seed=0).node_groups
    assert cost.group == "boxes"
    assert cost.node_hours == pytest.approx((700 + 100) / 3600, abs=0.01), "700 s until unneeded, and 100 s at the end"
    assert cost.cost == pytest.approx(3 * (700 + 100) / 3600, abs=0.01)


def test_a_group_grows_only_as_far_as_its_maximum() -> None:
    cluster = Simulation(ClusterState.of([]))
    scaling = Scaling(ScalingRules((clusters.gpu_group("gpus", 1, most=1),), delay=10), cluster)
    timeline = Timeline(cluster, scaling=scaling)
    timeline.run([job(0, f"j{number}", shape(8), None) for number in range(3)], until=200)
    assert (timeline.measures.started, scaling.counts()) == (1, {"gpus": 1})


def test_a_failed_device_evicts_its_pod_and_is_not_used_until_its_repair() -> None:
    kind = JobShape(spec=clusters.gpu_pod("x").spec)
    history = History([*clusters.gpu_node("a", 1), clusters.CLASS, clusters.template("one")])
    lines = history.run([job(0, "one", kind, 100.0), DeviceFault(20, (("a", "gpu-0"),), 70)])
    assert lines == ["0 start one on a", "20 evict one on a", "70 start one on a", "170 end one on a"]
    made = report.make(history.timeline, title="t", seed=0)
    assert (made.evictions, made.lost_device_hours) == (1, round(20 / 3600, 2))


def test_a_returning_node_takes_other_pods_before_its_devices_are_published() -> None:
    with_gpu = JobShape(spec=clusters.gpu_pod("x").spec)
    history = History([*clusters.gpu_node("a", 1), clusters.CLASS, clusters.template("one")])
    jobs = [job(10, "gpu", with_gpu), job(11, "whole", shape(8))]
    lines = history.run([NodeOutage(5, ("a",), 30), *jobs])
    assert [line for line in lines if "start" in line] == ["30 start whole on a", "40 start gpu on a"]


def test_a_fault_of_another_device_changes_nothing() -> None:
    kind = JobShape(spec=clusters.gpu_pod("x").spec)
    history = History([*clusters.gpu_node("a", 2), clusters.CLASS, clusters.template("one")])
    lines = history.run([job(0, "one", kind, 100.0), DeviceFault(20, (("a", "gpu-1"),), None)])
    assert lines == ["0 start one on a", "100 end one on a"]


def spec(**about: object) -> workloadspec.WorkloadSpec:
    jobs = [{"name": "j", "arrivals": {"process": "at", "times": []}, "template": {}}]
    document = {
        "apiVersion": "drachma.dev/v1",
        "kind": "SimulatedWorkload",
        "spec": {"duration": "1d", "jobs": jobs, **about},
    }
    return workloadspec.decode(document)


def made(about: workloadspec.WorkloadSpec) -> list[object]:
    return list(
        generation.events(
            about,
            seed=1,
            nodes=["a"],
            devices=[("a", "gpu-0")],
            decode=lambda document: node("x"),
            read_spec=lambda template: shape().spec,
        )
    )


def test_a_maintenance_window_repeats_until_the_end() -> None:
    windows = made(spec(events=[{"at": "2h", "maintain": ["a"], "lasting": "1h", "every": "10h"}]))
    assert windows == [NodeOutage(7200.0 + 36000 * n, ("a",), 10800.0 + 36000 * n, "maintenance") for n in range(3)]


def test_devices_fail_at_random() -> None:
    faults = made(spec(deviceFailures={"meanTimeBetween": "2h", "meanTimeToRepair": "10m"}))
    assert len(faults) > 3
    assert all(isinstance(each, DeviceFault) and each.devices == (("a", "gpu-0"),) for each in faults)


@pytest.mark.parametrize(
    ("event", "want"),
    [
        pytest.param({"failDevices": ["a/gpu-9"]}, "there is no device 'a/gpu-9'", id="device"),
        pytest.param({"maintain": ["a"], "every": "1h"}, "every: needs lasting", id="every-without-lasting"),
        pytest.param({"maintain": ["a"], "lasting": "2h", "every": "1h"}, "must be at least 1s", id="every-too-short"),
        pytest.param({"fail": ["a"], "failDevices": ["a/gpu-0"]}, "not fail and failDevices", id="both"),
    ],
)
def test_bad_events_are_named(event: dict[str, object], want: str) -> None:
    with pytest.raises(errors.DrachmaError, match=want):
        made(spec(events=[{"at": "1h", **event}]))
