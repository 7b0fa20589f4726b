"""Commands of simulated containers whose effect is known."""

import math

import pytest

from drachma.node.simulation.commands import Run, read


@pytest.mark.parametrize(
    ("words", "want"),
    [
        pytest.param(["sleep", "5"], Run(5.0), id="sleep"),
        pytest.param(["/bin/sleep", "1m", "30s"], Run(90.0), id="sleep-units-are-added"),
        pytest.param(["sleep", "infinity"], Run(math.inf), id="sleep-for-ever"),
        pytest.param(["sleep", "$(TIME)"], None, id="sleep-unknown-time"),
        pytest.param(["true"], Run(0.0), id="true"),
        pytest.param(["/bin/false"], Run(0.0, 1), id="false"),
        pytest.param(["/pause"], Run(math.inf), id="pause"),
        pytest.param(["tail", "-f", "/dev/null"], Run(math.inf), id="tail"),
        pytest.param(["sh", "-c", "exit 3"], Run(0.0, 3), id="exit"),
        pytest.param(["bash", "-ec", "sleep 2; exit 1"], Run(2.0, 1), id="sleep-and-exit"),
        pytest.param(["/bin/sh", "-c", "sleep 1 && sleep 2"], Run(3.0), id="and"),
        pytest.param(["sh", "-c", "false && sleep 9"], Run(0.0, 1), id="and-after-a-failure"),
        pytest.param(["sh", "-c", "false || sleep 2"], Run(2.0), id="or"),
        pytest.param(["sh", "-c", "true || exit 4"], Run(0.0), id="or-after-a-success"),
        pytest.param(["sh", "-c", 'echo "a; b"; exit 2'], Run(0.0, 2, ("a; b",)), id="echo-with-operators-in-quotes"),
        pytest.param(["sh", "-c", "while true; do sleep 3600; done"], Run(math.inf), id="endless-loop"),
        pytest.param(["sh", "-c", "echo hi\nwhile :; do sleep 1; done"], Run(math.inf, 0, ("hi",)), id="lines"),
        pytest.param(["sh", "-c", "while true; do test -f x && break; done"], None, id="loop-that-may-end"),
        pytest.param(["sh", "-c", "trap : TERM INT; sleep infinity & wait"], Run(math.inf), id="background-and-wait"),
        pytest.param(["sh", "-c", "sleep 9 &"], Run(0.0), id="background"),
        pytest.param(["sh", "-c", "exec sleep 4"], Run(4.0), id="exec"),
        pytest.param(["busybox", "sleep", "7"], Run(7.0), id="busybox"),
        pytest.param(["sh", "-c", "set -e\nsleep 1"], Run(1.0), id="settings"),
        pytest.param(["sh", "-c", "nvidia-smi -L; sleep 9"], None, id="unknown-program-in-a-script"),
        pytest.param(["sh", "-c", "echo a | grep b"], None, id="pipe"),
        pytest.param(["sh", "-c", "echo 'a"], None, id="open-quote"),
        pytest.param(["sh", "script.sh"], None, id="script-file"),
        pytest.param(["python", "train.py"], None, id="unknown-program"),
        pytest.param([], None, id="no-command"),
    ],
)
def test_runs(words: list[str], want: Run | None) -> None:
    assert read(words) == want
