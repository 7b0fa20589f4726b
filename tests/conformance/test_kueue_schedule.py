"""Kueue's recorded admission: one cycle, and whole runs until nothing moves any more."""

from typing import Any

from tests.conformance import kueueforms, kueueruns, vectors


@vectors.each("kueue-schedule")
def test_kueue_schedule(case: vectors.Line) -> None:
    run = kueueruns.Run(case)

    report = run.cycle()

    answer = case["answer"]
    assert run.left() == {name: sorted(keys) for name, keys in answer["left"].items()}
    assert run.parked() == {name: sorted(keys) for name, keys in answer["inadmissible"].items()}
    held = {
        key: kueueruns.admission(run.workloads[key])
        for queue in run.admitter.snapshot.queues.values()
        for key in queue.workloads
    }
    assert held == kueueforms.compact(answer["assignments"])
    assert kueueruns.statuses(run.workloads.values()) == {
        key: kueueruns.expected(status) for key, status in answer["workloads"].items()
    }
    assert kueueruns.event_rows(report.events if report is not None else ()) == sorted(
        (each["object"], each["type"], each["reason"], kueueruns.without_duration(each["message"]))
        for each in answer["events"]
    )


@vectors.each("kueue-schedule-random")
def test_kueue_schedule_random(case: vectors.Line) -> None:
    run = kueueruns.Run(case)
    cycles: list[dict[str, Any]] = []
    stopped = "cycles"

    for number in range(10):
        if number and not run.left():
            stopped = "empty"
            break
        before = dict(run.workloads)
        places = run.left(), run.parked()
        cycles.append(kueueruns.record(run, run.cycle(), before))
        is_change = any(name in cycles[-1] for name in ("admitted", "preempted"))
        if number and not is_change and places == (run.left(), run.parked()):
            stopped = "unchanged"
            break
        if number == 0:
            run.retry_all()
        run.put_back_evicted()

    answer = case["answer"]
    assert cycles == kueueforms.compact(answer["cycles"])
    assert stopped == answer["stopped"]
    assert kueueruns.statuses(run.workloads.values()) == {
        key: kueueruns.expected(status) for key, status in answer["workloads"].items()
    }
    usage = {
        name: {str(key): amount for key, amount in queue.node.usage.items()}
        for name, queue in run.admitter.snapshot.queues.items()
    }
    assert kueueforms.compact(usage) == kueueforms.compact(answer["usage"])
