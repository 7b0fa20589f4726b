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


def test_what_is_asked_for_is_in_the_profile() -> None:
    answer = testing.CliRunner().invoke(
        root.app, ["scheduler", "--show-profile", "--gangs", "--policy", "domain=gpu.example.com/socket"]
    )
    assert answer.exit_code == 0
    assert "GangScheduling                           PreEnqueue, EnqueueExtensions\n" in answer.output
    assert "DevicePolicy                     10      Score\n" in answer.output
    assert answer.output.splitlines()[-1] == "Devices by policy domain=gpu.example.com/socket"
