"""``drachma driver check`` as authors run it: on a module, with a report for people and one for programs."""

import json
import pathlib
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parents[2]
DRACHMA = [sys.executable, "-c", "from drachma.cli import main; main()"]
RULES = ["--only", "registration", "--only", "killed-after-prepare"]


def _check(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DRACHMA, "driver", "check", *arguments],
        cwd=PROJECT / "examples" / "drivers" / "gpu-sim",
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def test_a_driver_that_keeps_to_the_rules() -> None:
    ran = _check("--module", "gpu_sim:Gpus", *RULES)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines()[1:] == ["  registration          ok", "  killed-after-prepare  ok", "2 passed"]


def test_for_programs() -> None:
    ran = _check("--command", f"{sys.executable} gpu_sim.py", "--json", "--only", "registration")
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    assert report["driver"] == "gpu.example.com"
    assert [each["outcome"] for each in report["results"]] == ["passed"]


def test_a_driver_that_does_not_run() -> None:
    ran = _check("--command", f"{sys.executable} -c 'raise SystemExit(3)'")
    assert ran.returncode == 2
    assert "ended with 3" in ran.stderr


def test_what_makes_no_sense_is_refused() -> None:
    assert "name the driver by one of --module, --command and --socket" in _check().stderr
    assert "rule 'no-such-rule': there are registration," in _check("--module", "m", "--only", "no-such-rule").stderr
