"""Entries of a cluster in the user's kubeconfig: nothing else in the file changes."""

import os
import pathlib

import pytest
import yaml

from drachma import errors
from drachma.client import kubeconfig
from drachma.process import kubeconfigentry

OTHER = """\
apiVersion: v1
kind: Config
preferences: {colors: true}
clusters:
- {name: prod, cluster: {server: 'https://prod.example.com', extensions: [{name: e, extension: {a: 1}}]}}
users:
- {name: me, user: {exec: {command: login, apiVersion: client.authentication.k8s.io/v1}}}
contexts:
- {name: prod, context: {cluster: prod, user: me}}
current-context: prod
"""


def merge(path: pathlib.Path, context: str = "drachma", server: str = "https://127.0.0.1:6443") -> str:
    return kubeconfigentry.merge(path, context, server=server, authority=b"authority", token="secret")


def test_a_new_file_works_with_kubectls_rules_and_is_private(tmp_path: pathlib.Path) -> None:
    path = tmp_path / ".kube" / "config"
    assert merge(path) == ""
    access = kubeconfig.load(path, environment={}, home=tmp_path)
    assert (access.server, access.token, access.namespace) == ("https://127.0.0.1:6443", "secret", "default")
    assert access.certificate_authority == b"authority"
    assert path.stat().st_mode & 0o077 == 0
    assert [each.name for each in path.parent.iterdir()] == ["config"], "the lock is gone"


def test_other_entries_and_unknown_fields_stay(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "config"
    path.write_text(OTHER)
    assert merge(path) == "prod"
    merge(path, server="https://127.0.0.1:7443")
    content = yaml.safe_load(path.read_text())
    assert [each["name"] for each in content["contexts"]] == ["prod", "drachma"]
    assert content["current-context"] == "drachma"
    assert kubeconfigentry.remove(path, "drachma", previous="prod")
    assert yaml.safe_load(path.read_text()) == yaml.safe_load(OTHER)
    assert not kubeconfigentry.remove(path, "drachma"), "it is gone already"


def test_a_stopped_cluster_is_not_current_and_keeps_its_entries(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "config"
    assert not kubeconfigentry.leave(path, "drachma")
    path.write_text(OTHER)
    merge(path)
    assert kubeconfigentry.leave(path, "drachma", previous="prod")
    content = yaml.safe_load(path.read_text())
    assert content["current-context"] == "prod"
    assert [each["name"] for each in content["contexts"]] == ["prod", "drachma"]
    assert not kubeconfigentry.leave(path, "drachma", previous="prod"), "another one is current already"


def test_a_context_that_the_user_chose_since_stays_current(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "config"
    merge(path, "drachma-a")
    merge(path, "drachma-b")
    kubeconfigentry.remove(path, "drachma-a", previous="gone")
    assert yaml.safe_load(path.read_text())["current-context"] == "drachma-b"
    kubeconfigentry.remove(path, "drachma-b", previous="gone")
    assert yaml.safe_load(path.read_text())["current-context"] == ""


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("kind: Pod", "expected one object of kind Config", id="another-kind"),
        pytest.param("contexts: 7", "contexts: expected a list of named entries", id="no-list"),
        pytest.param("a: [", "kubeconfig", id="no-yaml"),
    ],
)
def test_a_file_that_is_no_kubeconfig_is_left_alone(tmp_path: pathlib.Path, text: str, want: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(errors.RefusedFileError, match=want):
        merge(path)
    assert path.read_text() == text


def test_the_file_to_change(tmp_path: pathlib.Path) -> None:
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    environment = {"KUBECONFIG": os.pathsep.join(map(str, (first, second, third)))}

    def choose() -> pathlib.Path:
        return kubeconfigentry.choose_file("drachma", environment=environment, home=tmp_path)

    assert choose() == third, "none exists: the last, as with kubectl"
    second.write_text(OTHER)
    assert choose() == second
    merge(third)
    assert choose() == third, "the one that has the context"
    assert kubeconfigentry.choose_file("x", environment={}, home=tmp_path) == tmp_path / ".kube" / "config"
