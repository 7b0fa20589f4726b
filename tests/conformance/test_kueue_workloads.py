"""Kueue's recorded reading of workloads: what they ask for, when their turn comes, what their status becomes."""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from drachma.api import hooks, limitrange
from drachma.queueing.configuration import configuration, durations
from drachma.queueing.devices import requests as devicerequests
from drachma.queueing.kinds import classes, decoding, workload
from drachma.queueing.workloads import podadjustment, requests, workloadstate
from drachma.values import quantity
from tests.conformance import kueueforms, vectors


@vectors.each("kueue-workload-requests-random")
def test_kueue_workload_requests_random(case: vectors.Line) -> None:
    recorded, answer = case["input"], case["answer"]
    limits = _limits(recorded.get("limitRanges", []))
    adjusted = podadjustment.adjust(
        kueueforms.read_workload(recorded["workload"]),
        limits=limits,
        runtime_classes=_runtime_classes(recorded.get("runtimeClasses", [])),
    )

    total = requests.total(
        adjusted,
        counting=_counting(
            case, prefixes=recorded.get("excludeResourcePrefixes", []), rules=recorded.get("transformations", [])
        ),
        devices=_charges(recorded["draRequestsPerPod"]),
    )

    assert _pod_sets(adjusted) == answer["adjustedPodSets"]
    assert _totals(total) == kueueforms.compact(answer["totalRequests"])
    assert kueueforms.errors(podadjustment.check_requests(adjusted)) == kueueforms.recorded_errors(answer.get("errors"))
    found = kueueforms.errors(podadjustment.check_limits(adjusted, limits))
    assert found == kueueforms.recorded_errors(answer.get("limitRangeErrors"))


@vectors.each("kueue-workload")
def test_kueue_workload(case: vectors.Line) -> None:
    _REPLAYS[case["kind"]](case)


def _limits(documents: list[Any]) -> podadjustment.Summary:
    return podadjustment.summarize(decoding.decode(each, limitrange.LimitRange) for each in documents)


def _runtime_classes(documents: list[Any]) -> dict[str, classes.RuntimeClass]:
    runtime_classes = [decoding.decode(each, classes.RuntimeClass) for each in documents]
    return {each.metadata.name: each for each in runtime_classes}


def _counting(case: vectors.Line, *, prefixes: list[str], rules: list[Any]) -> requests.Counting:
    transformations = [
        msgspec.convert(each, configuration.ResourceTransformation, dec_hook=hooks.decode) for each in rules
    ]
    return requests.Counting.of(
        excluded_prefixes=prefixes, transformations=transformations, gates=kueueforms.switched(case)
    )


def _charges(lists: dict[str, dict[str, str]]) -> devicerequests.DeviceRequests:
    return devicerequests.DeviceRequests(
        {pod_set: {name: quantity.Quantity.parse(text) for name, text in of.items()} for pod_set, of in lists.items()}
    )


def _pod_sets(of: workload.Workload) -> list[dict[str, Any]]:
    return [decoding.document(each) for each in of.spec.pod_sets]


def _totals(total: tuple[requests.PodSetRequests, ...]) -> list[dict[str, Any]]:
    documents = [
        {"count": each.count, "name": each.name, "requests": dict(each.requests), "flavors": dict(each.flavors)}
        for each in total
    ]
    slim: list[dict[str, Any]] = kueueforms.compact(documents)
    return slim


def _info(case: vectors.Line) -> None:
    options = case["input"].get("options", {})
    counting = _counting(
        case,
        prefixes=options.get("excludedResourcePrefixes", []),
        rules=list(options.get("resourceTransformations", {}).values()),
    )
    devices = _charges(options.get("dra", {}).get("preprocessedDRAResources", {}))

    total = requests.total(kueueforms.read_workload(case["input"]["workload"]), counting=counting, devices=devices)

    for recorded in case["answer"].get("totalRequests", []):
        # Topology aware scheduling is not carried out here.
        recorded.pop("topologyRequest", None)
    assert _totals(total) == kueueforms.compact(case["answer"].get("totalRequests", []))


def _read_totals(case: vectors.Line) -> list[requests.PodSetRequests]:
    return [
        requests.PodSetRequests(each.get("name", ""), each["requests"], 0, each.get("flavors", {}))
        for each in case["input"].get("totalRequests") or []
    ]


def _usage(case: vectors.Line) -> None:
    total = _read_totals(case)

    assigned = {str(key): amount for key, amount in requests.usage(total).items()}
    usage = case["answer"].get("usage", {})
    assert assigned == usage.get("assigned", {})
    assert requests.unassigned(total) == usage.get("unassigned", {})


def _propagate(case: vectors.Line) -> None:
    lists = workloadstate.request_lists(_read_totals(case))

    assert [decoding.document(each) for each in lists] == case["answer"]["resourceRequests"]


def _adjust(case: vectors.Line) -> None:
    recorded = case["input"]
    adjusted = podadjustment.adjust(
        kueueforms.read_workload(recorded["workload"]),
        limits=_limits(recorded.get("limitRanges", [])),
        runtime_classes=_runtime_classes(recorded.get("runtimeClasses", [])),
    )

    assert _pod_sets(adjusted) == case["answer"]["workload"]["spec"]["podSets"]


def _validate(case: vectors.Line) -> None:
    read = kueueforms.read_workload(case["input"]["workload"])
    if case["test"] == "TestValidateLimitRange":
        documents = [case["input"]["limitRange"]] if "limitRange" in case["input"] else []
        errors = podadjustment.check_limits(read, _limits(documents))
    else:
        errors = podadjustment.check_requests(read)

    assert kueueforms.errors(errors) == kueueforms.recorded_errors(case["answer"].get("errors"))


def _order_time(case: vectors.Line) -> None:
    time = workloadstate.queue_time(
        kueueforms.read_workload(case["input"]["workload"]), timestamp=case["input"]["podsReadyRequeuingTimestamp"]
    )

    assert time == _time(case["answer"]["timestamp"])


def _time(text: str) -> datetime:
    return msgspec.convert(text, datetime)


def _requeue_state(case: vectors.Line) -> None:
    recorded = case["input"]
    state = workloadstate.wait_until(
        kueueforms.read_workload(recorded["workload"]).status.requeue_state,
        _time(recorded["waitUntil"]),
        counts=recorded["incrementCount"],
    )

    assert decoding.document(state) == case["answer"]["requeueState"]


def _not_ready(case: vectors.Line) -> None:
    recorded = case["input"]
    timeouts = None
    if "waitForPodsReady" in recorded:
        settings = recorded["waitForPodsReady"]
        recovery = settings.get("recoveryTimeout")
        timeouts = workloadstate.ReadyTimeouts(
            _duration(settings.get("timeout", "")), None if recovery is None else _duration(recovery)
        )

    late = workloadstate.lateness(kueueforms.read_workload(recorded["workload"]), timeouts, _time(recorded["now"]))

    assert late.cause == case["answer"]["underlyingCause"]
    assert late.recheck_after == _duration(case["answer"]["recheckAfter"])


def _duration(text: str) -> timedelta:
    return timedelta(microseconds=durations.nanoseconds(text) / 1000)


def _checks(case: vectors.Line) -> None:
    recorded = case["input"]
    states = [msgspec.convert(each, workload.AdmissionCheckState) for each in recorded.get("states", [])]

    synced = workloadstate.sync_checks(states, recorded.get("checks", []), datetime.now().astimezone())

    assert [(each.name, each.state, each.message) for each in synced] == [
        (each["name"], each["state"], each["message"]) for each in case["answer"].get("states", [])
    ]
    assert (list(synced) != states) == case["answer"]["changed"]


_REPLAYS = {
    "info": _info,
    "usage": _usage,
    "propagate": _propagate,
    "adjust": _adjust,
    "validate": _validate,
    "ordertime": _order_time,
    "requeuestate": _requeue_state,
    "notready": _not_ready,
    "checks": _checks,
}
