"""Kubeconfig files: what is found in them, and what is said about those that cannot be used."""

import base64
import pathlib
from typing import Any

import pytest
import yaml

from drachma import errors
from drachma.client import access, kubeconfig


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def config(*, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "clusters": [{"name": "here", "cluster": {"server": "https://10.0.0.1:6443", **(cluster or {})}}],
        "users": [{"name": "me", "user": user or {}}],
        "contexts": [{"name": "main", "context": {"cluster": "here", "user": "me"}}],
    }


def load(directory: pathlib.Path, content: Any, *, context: str = "") -> access.Access:
    path = directory / "config"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return kubeconfig.load(path, context=context, environment={}, home=directory)


def test_the_current_context_is_read(tmp_path: pathlib.Path) -> None:
    content = config(
        cluster={"certificate-authority-data": encoded("the authority"), "tls-server-name": "kubernetes"},
        user={"client-certificate-data": encoded("certificate"), "client-key-data": encoded("key")},
    )
    content["contexts"][0]["context"]["namespace"] = "team"
    result = load(tmp_path, content)
    assert result == access.Access(
        server="https://10.0.0.1:6443",
        source=f"kubeconfig {tmp_path / 'config'}, context 'main'",
        namespace="team",
        certificate_authority=b"the authority",
        tls_server_name="kubernetes",
        key_pair=access.KeyPair(b"certificate", b"key"),
    )


def test_another_context_can_be_named(tmp_path: pathlib.Path) -> None:
    content = config(user={"token": "secret"})
    content["clusters"].append({"name": "there", "cluster": {"server": "http://there/prefix/"}})
    content["contexts"].append({"name": "other", "context": {"cluster": "there", "user": "me"}})
    result = load(tmp_path, content, context="other")
    assert (result.server, result.token, result.namespace) == ("http://there/prefix", "secret", "default")


def test_relative_paths_start_from_the_file(tmp_path: pathlib.Path) -> None:
    (tmp_path / "ca.pem").write_text("authority")
    content = config(
        cluster={"certificate-authority": "ca.pem"},
        user={
            "tokenFile": "token",
            "exec": {"command": "./bin/login", "apiVersion": "client.authentication.k8s.io/v1"},
        },
    )
    result = load(tmp_path, content)
    assert result.certificate_authority == b"authority"
    assert result.token_file == tmp_path / "token"
    assert result.plugin is not None
    assert result.plugin.command == str(tmp_path / "bin" / "login")


def test_a_plugin_is_read(tmp_path: pathlib.Path) -> None:
    plugin = {
        "command": "cloud-login",
        "args": ["--cluster", "one"],
        "env": [{"name": "REGION", "value": "north"}],
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "installHint": "get cloud-login from your cloud",
        "provideClusterInfo": True,
        "interactiveMode": "IfAvailable",
    }
    assert load(tmp_path, config(user={"exec": plugin})).plugin == access.Plugin(
        command="cloud-login",
        arguments=("--cluster", "one"),
        environment={"REGION": "north"},
        api_version="client.authentication.k8s.io/v1beta1",
        install_hint="get cloud-login from your cloud",
        wants_cluster=True,
    )


def test_impersonation_is_read(tmp_path: pathlib.Path) -> None:
    user = {"as": "jane", "as-uid": "7", "as-groups": ["dev"], "as-user-extra": {"scope": ["a", "b"]}}
    assert load(tmp_path, config(user=user)).impersonation == access.Impersonation(
        user="jane", uid="7", groups=("dev",), extra={"scope": ("a", "b")}
    )


def test_the_first_of_several_files_wins(tmp_path: pathlib.Path) -> None:
    first = {"contexts": [{"name": "main", "context": {"cluster": "here", "user": "other"}}]}
    second = config(user={"token": "mine"})
    second["users"].append({"name": "other", "user": {"token": "theirs"}})
    for name, content in (("first", first), ("second", second)):
        (tmp_path / name).write_text(yaml.safe_dump(content))
    listed = f"{tmp_path / 'first'}:{tmp_path / 'absent'}:{tmp_path / 'second'}"
    result = kubeconfig.load(environment={"KUBECONFIG": listed}, home=tmp_path)
    assert result.token == "theirs"


def test_the_home_directory_is_looked_in_last(tmp_path: pathlib.Path) -> None:
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text(yaml.safe_dump(config(user={"token": "home"})))
    assert kubeconfig.load(environment={}, home=tmp_path).token == "home"


def changed(path: str, value: Any) -> dict[str, Any]:
    """A good file but for one value; the path is written with dots."""
    content: Any = config()
    *steps, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    place = content
    for step in steps:
        place = place[step]
    place[last] = value
    return dict(content)


@pytest.mark.parametrize(
    ("content", "want_message"),
    [
        pytest.param("a: b: c", "mapping values are not allowed", id="not-yaml"),
        pytest.param("- 1", "expected one object with clusters, users and contexts", id="no-object"),
        pytest.param({"kind": "Pod"}, 'kind: expected Config, found string "Pod"', id="another-kind"),
        pytest.param({}, "current-context: is not set, and no context was named (there are no contexts)", id="empty"),
        pytest.param(
            changed("current-context", "gone"), "context 'gone' does not exist (contexts: main)", id="no-such-context"
        ),
        pytest.param(
            changed("contexts/0/context/cluster", "gone"),
            "context 'main': cluster: there is no cluster 'gone'",
            id="no-such-cluster",
        ),
        pytest.param(
            changed("contexts/0/context/user", "gone"),
            "context 'main': user: there is no user 'gone'",
            id="no-such-user",
        ),
        pytest.param(changed("contexts/0/context/user", ""), "context 'main': user: is not set", id="user-not-set"),
        pytest.param(
            changed("clusters/0/cluster/server", 6443),
            "clusters[0].cluster.server: expected a string, found number 6443",
            id="server-of-wrong-type",
        ),
        pytest.param(
            changed("clusters/0/cluster/server", "10.0.0.1"),
            "cluster 'here': server: expected a URL that begins with https:// or http://, found string \"10.0.0.1\"",
            id="server-without-scheme",
        ),
        pytest.param(
            config(cluster={"certificate-authority-data": "%%%"}),
            "cluster 'here': certificate-authority-data: is not base64",
            id="authority-not-base64",
        ),
        pytest.param(
            config(cluster={"certificate-authority": "absent.pem"}),
            "absent.pem cannot be read: No such file or directory",
            id="authority-file-absent",
        ),
        pytest.param(
            config(cluster={"certificate-authority-data": encoded("x"), "insecure-skip-tls-verify": True}),
            "cluster 'here': insecure-skip-tls-verify: contradicts certificate-authority",
            id="authority-and-insecure",
        ),
        pytest.param(
            config(user={"client-certificate-data": encoded("x")}),
            "user 'me': client-key: is missing next to client-certificate",
            id="certificate-without-key",
        ),
        pytest.param(
            config(user={"client-key-data": encoded("x")}),
            "user 'me': client-certificate: is missing next to client-key",
            id="key-without-certificate",
        ),
        pytest.param(
            config(user={"token": "a", "username": "b"}),
            "user 'me': token: contradicts username",
            id="token-and-password",
        ),
        pytest.param(
            config(user={"auth-provider": {"name": "gcp"}}),
            "user 'me': auth-provider: is no longer",
            id="auth-provider",
        ),
        pytest.param(
            config(user={"exec": {"apiVersion": "client.authentication.k8s.io/v1"}}),
            "user 'me': exec.command: is not set",
            id="plugin-without-command",
        ),
        pytest.param(
            config(user={"exec": {"command": "x", "apiVersion": "client.authentication.k8s.io/v1alpha1"}}),
            "user 'me': exec.apiVersion: expected client.authentication.k8s.io/v1 or",
            id="plugin-of-old-version",
        ),
        pytest.param(
            config(
                user={
                    "exec": {
                        "command": "x",
                        "apiVersion": "client.authentication.k8s.io/v1",
                        "interactiveMode": "Always",
                    }
                }
            ),
            "user 'me': exec.interactiveMode: is Always",
            id="plugin-that-asks",
        ),
        pytest.param(config(user={"as-groups": ["x"]}), "user 'me': as: is missing next to", id="groups-without-user"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: pathlib.Path, content: Any, want_message: str) -> None:
    with pytest.raises(errors.AccessError) as caught:
        load(tmp_path, content)
    assert want_message in str(caught.value)
    assert str(caught.value).startswith(f"kubeconfig {tmp_path / 'config'}: ")


def test_a_named_file_must_exist(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.AccessError, match="absent: cannot be read: No such file"):
        kubeconfig.load(tmp_path / "absent", environment={}, home=tmp_path)


def test_no_file_at_all(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.AccessError, match=r"no kubeconfig: .*/\.kube/config does not exist"):
        kubeconfig.load(environment={}, home=tmp_path)


def test_content_that_is_no_file_is_read() -> None:
    content = yaml.safe_dump(config(user={"token": "secret"})).encode()
    assert kubeconfig.load_content(content, name="worker").server == "https://10.0.0.1:6443"


@pytest.mark.parametrize(
    ("cluster", "user", "field"),
    [
        pytest.param({"certificate-authority": "/etc/ca"}, {}, "here: certificate-authority", id="authority"),
        pytest.param({}, {"client-key": "/etc/key"}, "me: client-key", id="key"),
        pytest.param({}, {"tokenFile": "/etc/token"}, "me: tokenFile", id="token"),
        pytest.param({}, {"exec": {"command": "rm", "apiVersion": "v1"}}, "me: exec", id="program"),
    ],
)
def test_content_that_is_no_file_names_no_files_and_programs(
    cluster: dict[str, Any], user: dict[str, Any], field: str
) -> None:
    content = yaml.safe_dump(config(cluster=cluster, user=user)).encode()
    with pytest.raises(errors.AccessError, match=field):
        kubeconfig.load_content(content, name="worker")
