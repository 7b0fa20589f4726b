"""The first screen of the README does what it says, and its picture shows the true output."""

import html
import re

import pytest

from drachma.cli import root
from tests.newcomer import steps

PICTURE = steps.PROJECT / "docs" / "pictures" / "first-steps.svg"


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> list[steps.TimedStep]:
    return list(steps.run(tmp_path_factory.mktemp("home")))


def test_every_step_does_what_the_readme_says(taken: list[steps.TimedStep]) -> None:
    output = {step.command: step.output for step in taken}
    assert "Cluster drachma is up" in output["drachma up --detach"]
    assert "pod/giant created" in output["drachma example first-steps | drachma apply -f -"]
    assert re.search(r"trainer +Running +node-\d +gpu-\d,gpu-\d|trainer +Pending", output["drachma get pods"])
    assert "smallest change: lower the count of request gpus from 12 to 8" in output["drachma explain pod giant"]
    assert output["drachma down"] == "cluster drachma is stopped\n"


def test_a_running_cluster_answers_questions(taken: list[steps.TimedStep]) -> None:
    output = {step.command: step.output for step in taken}
    assert re.search(r"gpu.simulation.drachma.dev +simulated +3 +24", output["drachma get drivers"])
    assert "gpu.simulation.drachma.dev: 2 of 24 in use (8 %), 3 nodes" in output["drachma top devices --once"]
    assert output["drachma doctor"] == "No problems.\n"
    assert "default/giant would not start now" in output["drachma when pod giant"]
    assert "default/giant still waits: 0/2 nodes are available" in output["drachma whatif --remove-node node-2"]
    assert "pod default/giant: stays pending" in output["drachma plan"]
    assert "2 of 36 devices in use" in output["drachma report"]


def test_the_picture_shows_the_true_explanation(taken: list[steps.TimedStep]) -> None:
    """What differs from run to run is not compared: ages, ports, and the line that the picture wraps."""
    drawn = [html.unescape(text) for text in re.findall(r">([^<]*)</text>", PICTURE.read_text(encoding="utf-8"))]
    explanation = next(step.output for step in taken if "explain" in step.command)
    for line in explanation.splitlines():
        if "kubectl" not in line:
            assert line in drawn, "make the picture again: python scripts/recording.py docs/pictures/first-steps.svg"
    for command in steps.commands()[1:]:
        assert f"$ {command}" in drawn


def test_one_screen_before_the_first_scroll() -> None:
    text = (steps.PROJECT / "README.md").read_text(encoding="utf-8")
    assert text.index("](docs/pictures/first-steps.svg)") < 2_200
    assert text[: text.index("](docs/pictures")].count("\n") < 25


def test_every_command_is_in_the_readme() -> None:
    text = (steps.PROJECT / "README.md").read_text(encoding="utf-8")
    assert [name for name in root.COMMANDS if f"`drachma {name}" not in text] == []
