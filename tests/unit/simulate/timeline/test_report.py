"""Reports of simulations: documents, lines, CSV and the HTML page."""

import csv
import io
import json
import pathlib
from xml.etree import ElementTree as ET

from typer.testing import CliRunner

from drachma.cli import root
from drachma.simulate.timeline import durations, measures, page, report
from tests.unit.simulate.timeline.histories import History, job, node, shape

WORKLOAD = """
apiVersion: drachma.dev/v1
kind: SimulatedWorkload
spec:
  duration: 2h
  jobs:
  - name: train
    arrivals: {process: poisson, every: 10m}
    runtime: {distribution: exponential, mean: 1h}
    template: {spec: {containers: [{name: c, resources: {requests: {cpu: "16"}}}]}}
"""


def made(title: str = "a <b>") -> report.Report:
    history = History([node("a")])
    history.run([job(0, "low", shape(4), 100), job(4, "high", shape(4, priority=5), 20), job(5, "never", shape(9))])
    return report.make(history.timeline, title=title, seed=3)


def test_documents_have_all_results() -> None:
    document = json.loads(json.dumps(report.to_document(made())))
    assert (document["arrived"], document["started"], document["completed"]) == (3, 2, 2)
    assert (document["evictions"], document["neverStarted"], document["waiting"]) == (1, 1, 1)
    assert document["waitingJobs"][0]["job"] == "default/never"
    assert "Insufficient cpu" in document["waitingJobs"][0]["reason"]
    assert document["utilisation"]["cpu"] == 1.0
    assert {row["priority"] for row in document["waits"]} == {0, 5}


def test_lines_name_evictions_and_waiting_jobs() -> None:
    lines = list(report.lines(made()))
    assert lines[0].startswith("a <b>, seed 3: simulated")
    assert any("1 evictions" in line for line in lines)
    assert any("default/never" in line for line in lines)


def test_csv_has_one_line_for_each_sample() -> None:
    rows = list(csv.DictReader(io.StringIO(report.to_csv([made("one"), made("two")]))))
    assert {row["title"] for row in rows} == {"one", "two"}
    assert all(0 <= float(row["cpu"]) <= 1 for row in rows)


def test_pages_are_well_formed_and_need_no_network() -> None:
    for reports in ([made()], [made("one"), made("two <script>")]):
        text = page.render(reports)
        body = text.removeprefix("<!DOCTYPE html>").replace('<meta charset="utf-8">', "").replace("&#9632;", "")
        assert ET.fromstring(body).tag == "html"
        assert "<script" not in text
        assert "http" not in text


def test_series_stay_bounded_and_keep_both_ends() -> None:
    series = measures.Series()
    for number in range(100_000):
        if series.is_due(float(number)):
            series.append(measures.Sample(float(number), {}, number, 0))
    assert len(series.samples) < 2000
    assert series.samples[0].time == 0
    assert series.samples[-1].time > 99_000


def test_durations_are_shown_as_people_write_them() -> None:
    shown = [durations.show(each) for each in (0, 0.25, 59, 90, 3600, 90_061, 864_000)]
    assert shown == ["0s", "0.2s", "59s", "1m30s", "1h", "1d1h", "10d"]
    assert durations.parse("1h30m", title="x") == 5400


def test_the_command_writes_all_forms(tmp_path: pathlib.Path) -> None:
    (tmp_path / "w.yaml").write_text(WORKLOAD)
    arguments = ["simulate", "run", "--profile", "cpu", "--nodes", "2", "-w", str(tmp_path / "w.yaml"), "-o", "json"]
    files = ["--report", str(tmp_path / "r.html"), "--csv", str(tmp_path / "r.csv")]
    outputs = []
    for _ in range(2):
        result = CliRunner().invoke(root.app, [*arguments, *files])
        assert result.exit_code == 0, result.output
        outputs.append(result.output)
    assert outputs[0] == outputs[1], "a seed decides everything"
    assert json.loads(outputs[0])["arrived"] > 3
    assert (tmp_path / "r.html").read_text().startswith("<!DOCTYPE html>")
    assert (tmp_path / "r.csv").read_text().startswith("title,seed,seconds")


def test_the_command_names_bad_options(tmp_path: pathlib.Path) -> None:
    (tmp_path / "w.yaml").write_text(WORKLOAD)
    result = CliRunner().invoke(
        root.app, ["simulate", "run", "--profile", "cpu", "-w", str(tmp_path / "w.yaml"), "--until", "soon"]
    )
    assert "--until 'soon': must be a duration" in str(result.exception)
