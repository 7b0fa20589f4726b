"""Kueue's recorded admission with topology aware scheduling: one cycle, and whole runs."""

from typing import Any

from drachma.queueing.admission.topologyplacement import needs_second_pass
from drachma.queueing.kinds import decoding
from drachma.queueing.workloads import workloadstate
from tests.conformance import kueueforms, kueueruns, vectors

_MOST_CYCLES = 8


def _is_complete(line: vectors.Line) -> bool:
    """Return False for a line whose API server refused a write, which the line's objects do not show."""
    return not line["input"].get("hook")


@vectors.each("kueue-tas-schedule", where=_is_complete)
def test_kueue_tas_schedule(case: vectors.Line) -> None:
    _check_cycle(case)


@vectors.each("kueue-tas-schedule-random")
def test_kueue_tas_schedule_random(case: vectors.Line) -> None:
    if case["kind"] == "cycle":
        _check_cycle(case)
    else:
        _check_run(case)


def _check_cycle(case: vectors.Line) -> None:
    run = kueueruns.Run(case)
    settled = {
        key
        for key, each in run.workloads.items()
        if workloadstate.has_reservation(each) and not needs_second_pass(each)
    }

    report = run.cycle()

    answer = _comparable(case, case["answer"])
    assert run.left() == {name: sorted(keys) for name, keys in answer["left"].items()}
    assert run.parked() == {name: sorted(keys) for name, keys in answer["inadmissible"].items()}
    assigned = {
        key: kueueruns.admission(run.workloads[key]) for key in run.admitter.snapshot.holders if key not in settled
    }
    assert _comparable(case, assigned) == kueueforms.compact(answer["newAssignments"])
    assert _statuses(case, run) == {key: kueueruns.expected(status) for key, status in answer["workloads"].items()}
    events = kueueruns.event_rows(report.events if report is not None else ())
    assert _comparable(case, [list(event) for event in events]) == sorted(
        [each["object"], each["type"], each["reason"], kueueruns.without_duration(each["message"])]
        for each in answer["events"]
    )


def _check_run(case: vectors.Line) -> None:
    run = kueueruns.Run(case)
    cycles: list[dict[str, Any]] = []
    stopped = "cycles"

    for number in range(_MOST_CYCLES):
        if number and not run.left():
            stopped = "empty"
            break
        before = dict(run.workloads)
        places = run.left(), run.parked()
        cycles.append(kueueruns.record(run, run.cycle(), before))
        if number and "admitted" not in cycles[-1] and places == (run.left(), run.parked()):
            stopped = "unchanged"
            break

    answer = _comparable(case, case["answer"])
    assert _comparable(case, cycles) == kueueforms.compact(answer["cycles"])
    assert stopped == answer["stopped"]
    assert _statuses(case, run) == {key: kueueruns.expected(status) for key, status in answer["workloads"].items()}


def _statuses(case: vectors.Line, run: kueueruns.Run) -> Any:
    return {
        key: kueueruns.expected(kueueforms.untimed(_comparable(case, decoding.document(each.status))))
        for key, each in run.workloads.items()
    }


def _comparable(case: vectors.Line, value: Any) -> Any:
    """Return a document in which pod sets of one group are not told apart if Kueue names one of them at random."""
    if not case["answer"].get("podSetNameMayVary"):
        return value
    if isinstance(value, dict):
        return {key: _comparable(case, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_comparable(case, item) for item in value]
    return value.replace("pod set main", "pod set extra") if isinstance(value, str) else value
