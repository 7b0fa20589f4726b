"""Traces of openb: what is read, and how bad lines are refused."""

import pathlib

import pytest

from drachma import errors
from drachma.scheduler.packing.machines import Machine, Task
from drachma.simulate.packing import openb

NODES = "sn,cpu_milli,memory_mib,gpu,model\nb,96000,1024,2,G2\na,64000,512,1,T4\n"
TASKS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\nt1,4000,100,1,470,G2|T4\nt0,8000,200,0,0,\n"


def test_machines_are_in_the_order_of_their_names(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text(NODES)
    assert openb.read_machines(path) == [
        Machine(64000, 512, (1000,), "T4"),
        Machine(96000, 1024, (1000, 1000), "G2"),
    ]


def test_tasks_may_lack_the_column_of_models(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "tasks.csv"
    path.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\nt,1,2,8,1000\n")
    assert openb.read_tasks(path) == [Task(1, 2, 8, 1000, frozenset())]


def test_tasks(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "tasks.csv"
    path.write_text(TASKS)
    assert openb.read_tasks(path) == [
        Task(8000, 200, 0, 0, frozenset()),
        Task(4000, 100, 1, 470, frozenset({"G2", "T4"})),
    ]


@pytest.mark.parametrize(
    ("line", "want"),
    [
        pytest.param("t,-1,2,1,470,", "line 2: cpu_milli '-1': must be a whole number from 0 to", id="negative"),
        pytest.param("t,1,x,1,470,", "line 2: memory_mib 'x': must be a whole number", id="no-number"),
        pytest.param(
            "t,1,2,1,1001,", "line 2: gpu_milli '1001': must be a whole number from 0 to 1000", id="too-large"
        ),
        pytest.param("t,1,2,1,0,", "line 2: gpu_milli '0': must be 1 to 1000 with num_gpu 1", id="no-share"),
        pytest.param("t,1,2,2,500,", "line 2: gpu_milli '500': must be 1000 with num_gpu 2", id="two-shares"),
        pytest.param("t,1", "line 2: memory_mib '': must be a whole number", id="short-line"),
        pytest.param(f"t,{'9' * 5000},2,1,470,", "line 2: cpu_milli '999", id="huge"),
    ],
)
def test_bad_lines_are_named(tmp_path: pathlib.Path, line: str, want: str) -> None:
    path = tmp_path / "tasks.csv"
    path.write_text(f"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n{line}\n")
    with pytest.raises(errors.InvalidValueError, match=r"tasks\.csv") as caught:
        openb.read_tasks(path)
    assert want in str(caught.value)


def test_missing_columns_and_files_are_named(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text("sn,cpu_milli\nx,1\n")
    with pytest.raises(errors.InvalidValueError, match="has no column memory_mib, gpu, model"):
        openb.read_machines(path)
    with pytest.raises(errors.InvalidValueError, match="No such file"):
        openb.read_machines(tmp_path / "absent.csv")
