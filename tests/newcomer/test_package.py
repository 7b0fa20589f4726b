"""The wheel and the source distribution: what is installed from them works without the repository."""

import os
import pathlib
import subprocess
import sys
import tarfile

import pytest

import drachma
from tests.newcomer import steps


def run(*arguments: str, **variables: str) -> str:
    environment = {**os.environ, **variables}
    return subprocess.run(
        [sys.executable, *arguments], cwd=steps.PROJECT, env=environment, capture_output=True, text=True, check=True
    ).stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("dist")
    run("-m", "hatchling", "build", "--directory", str(folder))
    return folder


def test_both_distributions_have_the_version(built: pathlib.Path) -> None:
    version = drachma.__version__
    assert sorted(path.name for path in built.iterdir()) == [
        f"drachma-{version}-py3-none-any.whl",
        f"drachma-{version}.tar.gz",
    ]


def test_installed_commands_have_their_data(built: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (wheel,) = built.glob("*.whl")
    run("-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--target", str(tmp_path), str(wheel))
    where = run("-c", "import drachma; print(drachma.__file__)", PYTHONPATH=str(tmp_path)).strip()
    assert pathlib.Path(where).is_relative_to(tmp_path)
    example = run("-m", "drachma", "example", "first-steps", PYTHONPATH=str(tmp_path))
    (tmp_path / "pods.yaml").write_text(example)
    report = run("-m", "drachma", "validate", "-f", str(tmp_path / "pods.yaml"), PYTHONPATH=str(tmp_path))
    assert report.splitlines()[-1] == "pod/giant is valid"


def test_the_source_distribution_has_the_sources(built: pathlib.Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/drachma/cli/examplefiles/first-steps.yaml"} <= names
    assert not any(name.startswith(("tests/", "bench/", ".")) for name in names - {".gitignore"})
