"""Configuration file of admission plugins."""

import pathlib

import pytest

from drachma import errors
from drachma.process import serverfiles
from drachma.server.admission.podsecurity import configuration
from drachma.server.admission.podsecurity.policies import Level

HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n"
SECURITY = (
    "{apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, "
    "defaults: {enforce: baseline}}"
)


def test_without_a_file() -> None:
    assert serverfiles.load_admission(None) == configuration.STANDARD


def test_a_configuration_in_the_file(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "admission.yaml"
    file.write_text(f"{HEAD}plugins:\n- name: PodSecurity\n  configuration: {SECURITY}\n")
    assert serverfiles.load_admission(file).defaults.enforce.level == Level.BASELINE


def test_a_configuration_in_a_file_beside_it(tmp_path: pathlib.Path) -> None:
    (tmp_path / "security.yaml").write_text(SECURITY)
    file = tmp_path / "admission.yaml"
    file.write_text(f"{HEAD}plugins:\n- name: PodSecurity\n  path: security.yaml\n")
    assert serverfiles.load_admission(file).defaults.enforce.level == Level.BASELINE


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            "kind: Pod\napiVersion: v1", "want AdmissionConfiguration of apiserver.config.k8s.io/v1", id="kind"
        ),
        pytest.param(f"{HEAD}plugins: [{{name: Other}}]", "plugin 'Other': only PodSecurity has", id="plugin"),
        pytest.param(f"{HEAD}plugin: []", "unknown field `plugin`", id="field"),
        pytest.param(f"{HEAD}plugins: [{{name: PodSecurity, path: none.yaml}}]", "No such file", id="path"),
        pytest.param("a: [", "did not find", id="syntax"),
    ],
)
def test_bad_files(tmp_path: pathlib.Path, text: str, want: str) -> None:
    file = tmp_path / "admission.yaml"
    file.write_text(text)
    with pytest.raises(errors.InvalidValueError, match="--admission-control-config-file") as caught:
        serverfiles.load_admission(file)
    assert want in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.InvalidValueError, match=r"--admission-control-config-file: .*No such file"):
        serverfiles.load_admission(tmp_path / "none.yaml")
