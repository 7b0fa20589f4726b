"""Kubeconfig files: from a path, ``$KUBECONFIG`` or ``~/.kube/config`` to one :class:`access.Access`.

Several files count as one; the first file that names an entry wins, as with kubectl. Every error is an
``errors.AccessError`` that names the file, the entry and the field: files that cannot be read, broken YAML, values of a
wrong type, contexts, clusters and users that do not exist, and settings that contradict each other.
"""

import base64
import binascii
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from drachma import errors
from drachma.api import manifest, shape
from drachma.client import access, kubeconfigfile
from drachma.client.kubeconfigfile import Cluster, Config, User

ItemT = TypeVar("ItemT")

_AUTHENTICATION = "client.authentication.k8s.io/"


def load(
    path: pathlib.Path | None = None,
    *,
    context: str = "",
    environment: Mapping[str, str],
    home: pathlib.Path,
) -> access.Access:
    """Return the access of a context, the current one unless another is named.

    ``path`` must exist if given. Files in ``$KUBECONFIG`` that do not exist are ignored.
    """
    paths = _candidates(path, environment, home=home)
    files = [_File(each, _read(each)) for each in paths if path is not None or each.exists()]
    if not files:
        listed = ", ".join(map(str, paths))
        raise errors.AccessError(f"no kubeconfig: {listed} does not exist; name one, or set KUBECONFIG")
    return _Chooser(files).choose(context)


def load_content(content: bytes, *, name: str) -> access.Access:
    """Return the access of the current context of a kubeconfig that is no file, such as that in a Secret.

    It may come from another user. So it must not name files or programs of this machine.
    """
    path = pathlib.Path(name)
    config = _parse(content, path)
    local_fields = [
        *((each.name, "certificate-authority", each.cluster.certificate_authority) for each in config.clusters),
        *((each.name, "client-certificate", each.user.client_certificate) for each in config.users),
        *((each.name, "client-key", each.user.client_key) for each in config.users),
        *((each.name, "tokenFile", each.user.token_file) for each in config.users),
        *((each.name, "exec", each.user.exec) for each in config.users),
    ]
    for owner, field, value in local_fields:
        if value:
            raise errors.AccessError(f"kubeconfig {path}: {owner}: {field}: files and programs are not allowed here")
    return _Chooser([_File(path, config)]).choose("")


def _candidates(path: pathlib.Path | None, environment: Mapping[str, str], *, home: pathlib.Path) -> list[pathlib.Path]:
    if path is not None:
        return [path]
    listed = [pathlib.Path(part) for part in environment.get("KUBECONFIG", "").split(":") if part]
    return listed or [home / ".kube" / "config"]


def _read(path: pathlib.Path) -> Config:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise errors.AccessError(f"kubeconfig {path}: cannot be read: {error.strerror}") from None
    return _parse(text, path)


def _parse(text: bytes, path: pathlib.Path) -> Config:
    if not text.strip():
        return Config()
    try:
        documents = manifest.read(text)
    except errors.DecodeError as error:
        raise errors.AccessError(f"kubeconfig {path}: {error}") from None
    if len(documents) != 1 or not isinstance(documents[0].content, dict):
        raise errors.AccessError(f"kubeconfig {path}: expected one object with clusters, users and contexts")
    content: dict[str, Any] = documents[0].content
    if content.get("kind", "Config") != "Config":
        raise errors.AccessError(f"kubeconfig {path}: kind: expected Config, found {shape.describe(content['kind'])}")
    examined = shape.examine(content, kubeconfigfile.Config)
    if examined.mismatches:
        raise errors.AccessError(f"kubeconfig {path}: " + "; ".join(map(str, examined.mismatches)))
    return msgspec.convert(examined.document, kubeconfigfile.Config)


class _File(NamedTuple):
    path: pathlib.Path
    config: Config


class _Entry(msgspec.Struct, frozen=True):
    """Position of an entry for messages, and the folder that its relative paths start from."""

    path: pathlib.Path
    label: str

    def fail(self, field: str, problem: str) -> errors.AccessError:
        return errors.AccessError(f"kubeconfig {self.path}: {self.label}: {field}: {problem}")

    def data(self, fields: tuple[str, str], encoded: str, file: str) -> bytes | None:
        """Return the content of a field that is given in base64 or as the name of a file. The base64 field wins."""
        if encoded:
            try:
                return base64.b64decode("".join(encoded.split()), validate=True)
            except binascii.Error as error:
                raise self.fail(fields[0], f"is not base64: {error}") from None
        if not file:
            return None
        try:
            return self.resolve(file).read_bytes()
        except OSError as error:
            raise self.fail(fields[1], f"{self.resolve(file)} cannot be read: {error.strerror}") from None

    def resolve(self, file: str) -> pathlib.Path:
        return self.path.parent / file


class _Chooser:
    """Finds the parts of a context in all files and checks them."""

    def __init__(self, files: Sequence[_File]) -> None:
        self._files = files
        self._paths = ", ".join(str(file.path) for file in files)

    def choose(self, requested: str) -> access.Access:
        name = requested or next(filter(None, (file.config.current_context for file in self._files)), "")
        if not name:
            raise errors.AccessError(
                f"kubeconfig {self._paths}: current-context: is not set, and no context was named ({self._contexts()})"
            )
        match = self._find(lambda config: {each.name: each.context for each in config.contexts}, name)
        if match is None:
            raise errors.AccessError(f"kubeconfig {self._paths}: context {name!r} does not exist ({self._contexts()})")
        path, context = match
        entry = _Entry(path, f"context {name!r}")
        for field, value in (("cluster", context.cluster), ("user", context.user)):
            if not value:
                raise entry.fail(field, "is not set")
        cluster = self._find(lambda config: {each.name: each.cluster for each in config.clusters}, context.cluster)
        if cluster is None:
            raise entry.fail("cluster", f"there is no cluster {context.cluster!r}")
        user = self._find(lambda config: {each.name: each.user for each in config.users}, context.user)
        if user is None:
            raise entry.fail("user", f"there is no user {context.user!r}")
        result = access.Access(
            source=f"kubeconfig {path}, context {name!r}",
            server="",
            namespace=context.namespace or "default",
        )
        result = _add_cluster(result, cluster[1], _Entry(cluster[0], f"cluster {context.cluster!r}"))
        return _add_user(result, user[1], _Entry(user[0], f"user {context.user!r}"))

    def _contexts(self) -> str:
        names = dict.fromkeys(each.name for file in self._files for each in file.config.contexts)
        return f"contexts: {', '.join(names)}" if names else "there are no contexts"

    def _find(self, entries: Callable[[Config], Mapping[str, ItemT]], name: str) -> tuple[pathlib.Path, ItemT] | None:
        for file in self._files:
            item = entries(file.config).get(name)
            if item is not None:
                return file.path, item
        return None


def _add_cluster(base: access.Access, cluster: Cluster, entry: _Entry) -> access.Access:
    if not cluster.server.startswith(("https://", "http://")):
        actual = shape.describe(cluster.server) if cluster.server else "nothing"
        raise entry.fail("server", f"expected a URL that begins with https:// or http://, found {actual}")
    authority = entry.data(
        ("certificate-authority-data", "certificate-authority"),
        cluster.certificate_authority_data,
        cluster.certificate_authority,
    )
    if authority and cluster.insecure_skip_tls_verify:
        raise entry.fail("insecure-skip-tls-verify", "contradicts certificate-authority: leave one of them out")
    return msgspec.structs.replace(
        base,
        server=cluster.server.rstrip("/"),
        certificate_authority=authority,
        skips_verification=cluster.insecure_skip_tls_verify,
        tls_server_name=cluster.tls_server_name,
        proxy=cluster.proxy_url,
        plugin=None,
    )


def _add_user(base: access.Access, user: User, entry: _Entry) -> access.Access:
    if user.auth_provider is not None:
        raise entry.fail("auth-provider", "is no longer part of Kubernetes: use exec with the provider's plugin")
    if (user.token or user.token_file) and user.username:
        raise entry.fail("token", "contradicts username: leave one of them out")
    certificate = entry.data(
        ("client-certificate-data", "client-certificate"), user.client_certificate_data, user.client_certificate
    )
    key = entry.data(("client-key-data", "client-key"), user.client_key_data, user.client_key)
    if certificate and not key:
        raise entry.fail("client-key", "is missing next to client-certificate")
    if key and not certificate:
        raise entry.fail("client-certificate", "is missing next to client-key")
    if (user.impersonate_groups or user.impersonate_extra or user.impersonate_uid) and not user.impersonate:
        raise entry.fail("as", "is missing next to as-uid, as-groups or as-user-extra")
    return msgspec.structs.replace(
        base,
        key_pair=access.KeyPair(certificate, key) if certificate and key else None,
        token=user.token,
        token_file=entry.resolve(user.token_file) if user.token_file else None,
        username=user.username,
        password=user.password,
        plugin=_plugin(user.exec, entry) if user.exec is not None else None,
        impersonation=access.Impersonation(
            user=user.impersonate,
            uid=user.impersonate_uid,
            groups=user.impersonate_groups,
            extra=user.impersonate_extra,
        )
        if user.impersonate
        else None,
    )


def _plugin(settings: kubeconfigfile.Exec, entry: _Entry) -> access.Plugin:
    if not settings.command:
        raise entry.fail("exec.command", "is not set")
    if settings.api_version not in (f"{_AUTHENTICATION}v1", f"{_AUTHENTICATION}v1beta1"):
        actual = shape.describe(settings.api_version) if settings.api_version else "nothing"
        raise entry.fail("exec.apiVersion", f"expected {_AUTHENTICATION}v1 or {_AUTHENTICATION}v1beta1, found {actual}")
    if settings.interactive_mode == "Always":
        raise entry.fail("exec.interactiveMode", "is Always, and no user can answer the plugin's questions")
    # A bare name is looked up in PATH; anything with a folder in it starts from where the file is.
    command = settings.command if "/" not in settings.command else str(entry.resolve(settings.command))
    return access.Plugin(
        command=command,
        arguments=settings.args,
        environment={variable.name: variable.value for variable in settings.env},
        api_version=settings.api_version,
        install_hint=settings.install_hint,
        wants_cluster=settings.provide_cluster_info,
    )
