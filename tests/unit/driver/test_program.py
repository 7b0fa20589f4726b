"""The command line of a driver: what it prints, and how it says what is wrong."""

import pytest
import yaml

from drachma import driver


class Gpus(driver.Driver):
    name = "gpu.example.com"


def test_manifests_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    driver.main(Gpus, ["manifests", "--image", "registry.example.com/gpus:7", "--namespace", "drivers"])
    documents = list(yaml.safe_load_all(capsys.readouterr().out))
    (daemon_set,) = (each for each in documents if each["kind"] == "DaemonSet")
    assert daemon_set["metadata"]["namespace"] == "drivers"
    (container,) = daemon_set["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example.com/gpus:7"
    assert {each["name"] for each in container["env"]} >= {"NODE_NAME", "POD_UID"}


def test_a_node_has_to_be_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NODE_NAME", raising=False)
    with pytest.raises(SystemExit) as ended:
        driver.main(Gpus, [])
    assert ended.value.code == 1
    assert capsys.readouterr().err == (
        "gpu.example.com: no node name: set NODE_NAME by the downward API, or --node-name\n"
    )


def test_an_unknown_option_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        driver.main(Gpus, ["run", "--nod-nam", "x"])
    assert ended.value.code == 2
    assert "unrecognized arguments" in capsys.readouterr().err
