"""Random CDI files with random changes: drachma answers as the interface's own Go library does."""

import json
import random
import re
import subprocess
from pathlib import Path

import pytest

from tests.peers import cdiquestions, programs

QUESTIONS = 1500
_FOLDER = re.compile(r"/tmp/cdi\d+")


def _program() -> Path:
    try:
        return programs.built("cdi")
    except programs.MissingError as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("seed", [1, 2])
def test_answers_are_those_of_the_library(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    questions = [cdiquestions.ask(rng) for _ in range(QUESTIONS)]
    lines = "\n".join(map(json.dumps, questions))
    done = subprocess.run([_program()], input=lines, capture_output=True, text=True, check=True)
    counts = dict.fromkeys(("valid", "injected"), 0)
    for number, (question, line) in enumerate(zip(questions, done.stdout.splitlines(), strict=True)):
        folder = tmp_path / str(number)
        folder.mkdir()
        answer = cdiquestions.answer(question, folder)
        ours = json.loads(json.dumps(answer).replace(str(folder), "<folder>"))
        theirs = json.loads(_FOLDER.sub("<folder>", line))
        assert cdiquestions.agrees(question, ours, theirs), f"{question}\n{ours}\n{theirs}"
        counts["valid"] += theirs.get("valid") is True
        counts["injected"] += "oci" in theirs
    assert all(count > QUESTIONS / 40 for count in counts.values()), counts
