"""Estimates of ``drachma when`` on replayed openb windows, held against the starts that followed.

Run it with ``python -m bench eta``. A few machines run tasks of the trace in the order of their arrival, with the
running times of the trace and more load than they can take, so that tasks wait. At some moments every waiting task is
asked about. The estimate knows the running times of the tasks before the window, and not those of the tasks that run or
wait.
"""

import csv
import os
import pathlib
import random
import statistics
from datetime import UTC, datetime, timedelta

from msgspec import structs

from bench import timing
from drachma.api import meta
from drachma.offline import openbtraces
from drachma.simulate import ClusterState, Simulation
from drachma.simulate.timeline import durations, future
from drachma.simulate.timeline.events import Arrival
from drachma.simulate.timeline.jobrun import JobRun
from drachma.simulate.timeline.timeline import Timeline

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
MACHINES = 3
LOAD = 1.15
TASKS = 500
MOMENTS = 4
SAMPLES = 20
HORIZON = 400 * 86_400.0


def main() -> None:
    """Print the errors and the calibration; say so if the traces are absent."""
    default = pathlib.Path(__file__).resolve().parents[2] / "shared" / "traces" / "openb"
    folder = pathlib.Path(os.environ.get("DRACHMA_TRACES", default))
    if not folder.is_dir():
        print(f"eta: {folder} is absent; set DRACHMA_TRACES to the folder of the openb traces")
        return
    rows = []
    all_places: list[int] = []
    # Even windows have set the range of estimates.
    for window in range(1, 2 * int(os.environ.get("DRACHMA_ETA_WINDOWS", "3")), 2):
        replayed = Window(folder, window)
        answers = replayed.answers()
        if not answers:
            continue
        errors = [abs(estimate - truth) for estimate, truth, _ in answers]
        waits = [truth for _, truth, _ in answers]
        places = [place for _, _, place in answers]
        all_places += places
        rows.append(
            (
                str(window),
                str(len(answers)),
                durations.show(statistics.median(waits)),
                durations.show(statistics.median(errors)),
                *(f"{100 * places.count(place) / len(places):.0f} %" for place in (-1, 0, 1)),
            )
        )
    shares = (f"{100 * all_places.count(place) / max(len(all_places), 1):.0f} %" for place in (-1, 0, 1))
    rows.append(("all", str(len(all_places)), "", "", *shares))
    timing.table(
        f"estimates of starts on {MACHINES} machines, {SAMPLES} futures each",
        ("window", "estimates", "median wait", "median error", "before", "inside the 80 % range", "after"),
        rows,
    )


class Window:
    """Machines and tasks of one window of the trace."""

    def __init__(self, folder: pathlib.Path, number: int) -> None:
        self._number = number
        rng = random.Random(number)
        tasks = openbtraces.OpenbTasks(folder / "openb_pod_list_default.csv")
        with (folder / "openb_node_list_gpu_node.csv").open(encoding="utf-8") as lines:
            gpus = {row["sn"]: int(row["gpu"]) for row in csv.DictReader(lines)}
        chosen = set(rng.sample(sorted(name for name in gpus if gpus[name]), MACHINES))
        objects = openbtraces.read_nodes(folder / "openb_node_list_gpu_node.csv")
        self._objects = [
            *(each for each in objects if _machine(each) in chosen | {""}),
            *tasks.objects(),
        ]
        everything = [each for each in tasks.arrivals() if each.duration and each.duration < 10 * 86_400]
        begin = len(everything) * (number % 5 + 1) // 6
        self._history = tuple(each.duration or 0.0 for each in everything[:begin])
        candidates = everything[begin : begin + TASKS]
        capacity = sum(gpus[name] for name in chosen)
        span = candidates[-1].time - candidates[0].time
        demand = sum(_gpus(each) * (each.duration or 0.0) for each in candidates) / span / capacity
        kept = [each for each in candidates if rng.random() < LOAD / demand] if demand > LOAD else candidates
        # Where the window has too little load, time passes faster.
        speed = max(LOAD / demand, 1.0)
        self.tasks = [each._replace(time=(each.time - candidates[0].time) / speed) for each in kept]

    def answers(self) -> list[tuple[float, float, int]]:
        """Return estimate, true wait, and -1, 0 or 1 for a truth before, inside or after the range, for each task."""
        starts: dict[str, float] = {}

        def note(what: str, time: float, run: JobRun, where: str) -> None:
            if what == "start":
                starts.setdefault(run.key, time)

        timeline = Timeline(Simulation(ClusterState.of(self._objects)), observer=note)
        last = self.tasks[-1].time
        rng = random.Random(self._number)
        moments = [last * (number + 0.5 + rng.random() / 2) / MOMENTS for number in range(MOMENTS)]
        asked: list[tuple[float, dict[str, future.Forecast]]] = []
        remaining = list(self.tasks)
        for moment in moments:
            due = [each for each in remaining if each.time <= moment]
            remaining = remaining[len(due) :]
            timeline.run(due, until=moment)
            assumption = future.Assumption(history=self._history)
            now = self._now(timeline, moment)
            forecasts = future.forecast_all(now, assumption=assumption, samples=SAMPLES, horizon=HORIZON)
            asked.append((moment, forecasts))
        timeline.run(remaining)
        answers = []
        for moment, forecasts in asked:
            for key, forecast in forecasts.items():
                median, (low, high) = forecast.percentile(50), forecast.likely_range()
                start = starts.get(key.rpartition("-")[0])
                if median is None or start is None:
                    continue
                truth = start - moment
                place = -1 if truth < (low or 0.0) else int(high is not None and truth > high)
                answers.append((median, truth, place))
        return answers

    def _now(self, timeline: Timeline, moment: float) -> future.ClusterNow:
        """Return the simulated cluster at a moment as a client of its API would read it."""
        objects: list[meta.Object] = [*self._objects, *timeline.cluster.snapshot.claims]
        for run in timeline.jobs.values():
            for running in run.running.values():
                begin = EPOCH + timedelta(seconds=running.started)
                bound = structs.replace(running.pod, spec=structs.replace(running.pod.spec, node_name=running.node))
                created = EPOCH + timedelta(seconds=run.arrival.time)
                metadata = structs.replace(bound.metadata, creation_timestamp=created)
                status = structs.replace(bound.status, start_time=begin)
                objects.append(structs.replace(bound, metadata=metadata, status=status))
            for index in run.waiting:
                waiting = run.make_pod(index)
                created = EPOCH + timedelta(seconds=run.arrival.time)
                metadata = structs.replace(waiting.metadata, creation_timestamp=created)
                objects.append(structs.replace(waiting, metadata=metadata))
        return future.ClusterNow(ClusterState.of(objects), (), EPOCH + timedelta(seconds=moment))


def _machine(each: meta.Object) -> str:
    name = str(each.metadata.name)
    return name.removesuffix("-gpus") if name.startswith("openb-node") else ""


def _gpus(task: Arrival) -> float:
    """Return the GPUs that a task requests, by the name of its claim template, such as gpu-1x460."""
    total = 0.0
    for claim in task.shape.spec.resource_claims:
        size = str(claim.resource_claim_template_name).split("-")[1]
        count, _, milli = size.partition("x")
        total += int(count) * int(milli) / 1000
    return total
