"""``drachma driver new``: the files that it writes, and the names that it refuses."""

import ast
import pathlib

import pytest
from typer.testing import CliRunner

from drachma.cli.root import app


def test_the_files_are_modules_with_the_drivers_name(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "new"
    answer = CliRunner().invoke(app, ["driver", "new", "tpu-v5.example.com", "--folder", str(folder)])
    assert answer.exit_code == 0, answer.output
    assert sorted(path.name for path in folder.iterdir()) == ["test_tpu_v5.py", "tpu_v5.py"]
    module = ast.parse((folder / "tpu_v5.py").read_text())
    (written,) = [each for each in module.body if isinstance(each, ast.ClassDef)]
    assert written.name == "TpuV5"
    assert 'name = "tpu-v5.example.com"' in (folder / "tpu_v5.py").read_text()
    assert "drivers=[tpu_v5.TpuV5]" in (folder / "test_tpu_v5.py").read_text()


@pytest.mark.parametrize(("name", "want"), [("class.example.com", "driver_class"), ("3d.example.com", "driver_3d")])
def test_names_that_are_no_modules(tmp_path: pathlib.Path, name: str, want: str) -> None:
    CliRunner().invoke(app, ["driver", "new", name, "--folder", str(tmp_path)])
    assert sorted(path.stem for path in tmp_path.iterdir()) == [want, f"test_{want}"]


def test_refusals(tmp_path: pathlib.Path) -> None:
    refused = CliRunner().invoke(app, ["driver", "new", "Lamp", "--folder", str(tmp_path)])
    assert "driver 'Lamp': " in str(refused.exception)
    first = CliRunner().invoke(app, ["driver", "new", "lamp.example.com", "--folder", str(tmp_path)])
    again = CliRunner().invoke(app, ["driver", "new", "lamp.example.com", "--folder", str(tmp_path)])
    assert (first.exit_code, str(again.exception)) == (0, f"{tmp_path / 'lamp.py'}: exists already")
