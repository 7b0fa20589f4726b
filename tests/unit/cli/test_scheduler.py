"""``drachma scheduler --show-profile``."""

from typer import testing

from drachma.cli import root


def test_the_profile_is_printed_without_a_cluster() -> None:
    answer = testing.CliRunner().invoke(root.app, ["scheduler", "--show-profile"])
    assert answer.exit_code == 0
    first, *others = answer.output.splitlines()
    assert first.split() == ["PLUGIN", "WEIGHT", "EXTENSION", "POINTS"]
    assert others[0].split() == ["SchedulingGates", "PreEnqueue,", "EnqueueExtensions"]
    assert [line.split()[0] for line in others][-1] == "ImageLocality"
