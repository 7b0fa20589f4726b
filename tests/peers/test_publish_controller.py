"""Random scenarios of publishing: the SDK writes and reports what upstream's ResourceSlice controller does."""

import json
import pathlib
import random
import subprocess
from typing import Any

import pytest

from tests.conformance import test_publish as recorded
from tests.peers import programs, publishscenarios

SCENARIOS = 250


def _program() -> pathlib.Path:
    try:
        return programs.built("publish")
    except programs.MissingError as missing:
        pytest.skip(str(missing))


def _results(scenarios: list[Any]) -> list[list[Any]]:
    lines = "\n".join(map(publishscenarios.text, scenarios))
    done = subprocess.run([_program()], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def _agree(first: list[Any], second: list[Any], pools: int) -> bool:
    """Return True if two runs of upstream's controller had the same result; the order of a map may decide."""
    try:
        for one, other in zip(first, second, strict=True):
            if one is not None:
                recorded.compare(one, other, pools=pools, where="")
    except AssertionError:
        return False
    return True


async def test_writes_are_those_of_the_controller() -> None:
    rng = random.Random(1)
    scenarios = [publishscenarios.make(rng) for _ in range(SCENARIOS)]
    compared = 0
    for scenario, first, second in zip(scenarios, _results(scenarios), _results(scenarios), strict=True):
        pools = len(recorded.pool_names(scenario))
        if not _agree(first, second, pools):
            continue
        stage = recorded.Stage(scenario)
        try:
            for step, want in zip(scenario["steps"], first, strict=True):
                answer = await stage.do(step if want is None else {**step, "want": want})
                if want is not None:
                    recorded.compare(answer, want, pools=pools, where=publishscenarios.text(scenario))
        finally:
            await stage.stop()
        compared += 1
    assert compared > SCENARIOS * 0.95
