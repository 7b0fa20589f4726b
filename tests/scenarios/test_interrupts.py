"""Commands that a signal ends: no traceback, a code that is not zero, and no process left behind."""

import pathlib
import signal
import subprocess

import pytest

from drachma.process import localcluster
from tests import patience
from tests.scenarios import processes

POD = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers: [{name: c, image: i, command: [sleep, "1"]}]
  restartPolicy: Never
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_check_of_a_driver(number: signal.Signals, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "pid"
    script = tmp_path / "driver.sh"
    script.write_text(f"echo $$ > {file}.new; mv {file}.new {file}; exec sleep 1000\n")
    checking = subprocess.Popen(
        [*processes.DRACHMA, "driver", "check", "--command", f"sh {script}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        patience.until(file.exists, bool, what="the driver starts")
        driver = int(file.read_text())
        checking.send_signal(number)
        output, _ = checking.communicate(timeout=patience.SECONDS)
    finally:
        checking.kill()
    assert checking.returncode not in (0, None)
    assert "Traceback" not in output
    assert localcluster.process_start(driver) == "", "the driver is gone"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_play(number: signal.Signals, tmp_path: pathlib.Path) -> None:
    (tmp_path / "pod.yaml").write_text(POD)
    arguments = ["play", "-f", str(tmp_path / "pod.yaml"), "--wait", "scheduled", "--timeout", "600"]
    playing = subprocess.Popen(
        [*processes.DRACHMA, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with pytest.raises(subprocess.TimeoutExpired):
        # Without nodes the pod is never scheduled.
        playing.communicate(timeout=5)
    playing.send_signal(number)
    _, problems = playing.communicate(timeout=patience.SECONDS)
    assert playing.returncode not in (0, None)
    assert "Traceback" not in problems
