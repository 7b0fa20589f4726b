"""ServiceAccount: a pod runs as an account of its namespace, which must exist, and gets a token of it.

The volume of the token has a name that follows from the account, so that like pods share one spec. Upstream draws a
name for each pod.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from drachma.server import status
from drachma.server.admission import podspecs
from drachma.server.admission.podspecs import Spec
from drachma.server.admission.proposal import Proposal
from drachma.server.kinds.core import podspec
from drachma.server.reads.reader import Reader
from drachma.store import record
from drachma.validation.podspec import pod as pod_rules
from drachma.values import generatedname, quotation

MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
ENFORCES_SECRETS: Final = "kubernetes.io/enforce-mountable-secrets"

_VOLUME: Final = "kube-api-access-"
_TRUE: Final = ("1", "t", "T", "TRUE", "true", "True")
_SOURCE: Final[dict[str, Any]] = {
    "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {
            "downwardAPI": {
                "items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]
            }
        },
    ],
    "defaultMode": 420,
}
"""Token, certificate authority of the API server, and namespace, as files."""


def name_account(proposal: Proposal) -> None:
    """Set the default account of a new pod; the kubelet decides about mirror pods."""
    if not _is_mirror(proposal):
        podspecs.change(proposal, podspec.with_account)


class ServiceAccount:
    """Upstream's admission plugin of that name, for pods whose account is set."""

    def __init__(self, store: Reader) -> None:
        self._store = store

    def read_version(self) -> int:
        """Return the revision of the last change of an object that pods depend on here."""
        return self._store.changed("serviceaccounts")

    def admit(self, proposal: Proposal) -> None:
        """Give a new pod the token and pull secrets of its account; refuse it if the account does not exist."""
        if _is_mirror(proposal):
            _check_mirror(proposal)
            return
        account = self._account(proposal)
        content = account.value
        mounts = content.get("automountServiceAccountToken")
        secrets = tuple(each.get("name", "") for each in content.get("imagePullSecrets") or ())
        volume = generatedname.derived(_VOLUME, account.uid)
        podspecs.change(proposal, _mount_token, volume, mounts is not False)
        if secrets:
            podspecs.change(proposal, _add_pull_secrets, secrets)
        self.validate(proposal)

    def validate(self, proposal: Proposal) -> None:
        """Refuse mirror pods with accounts or secrets, and pods with secrets that their account does not allow."""
        if _is_mirror(proposal):
            _check_mirror(proposal)
            return
        account = self._account(proposal)
        annotations: Mapping[str, str] = account.value["metadata"].get("annotations") or {}
        if annotations.get(ENFORCES_SECRETS, "") in _TRUE:
            problem = next(_foreign_secrets(proposal.subject.content["spec"], account.value), None)
            if problem is not None:
                raise proposal.forbidden(problem)

    def _account(self, proposal: Proposal) -> record.Record:
        namespace, name = proposal.write.namespace, proposal.subject.content["spec"].get("serviceAccountName", "")
        key = record.Key("serviceaccounts", namespace, name)
        account = self._store.get(key)
        if account is not None:
            return account
        detail = (
            f"error looking up service account {namespace}/{name}: serviceaccount {quotation.quote(name)} not found"
        )
        refusal = proposal.forbidden(detail)
        # A controller creates the default account of a new namespace.
        raise AbsentObjectError(refusal, key) if name == podspec.DEFAULT_ACCOUNT else refusal


def _is_mirror(proposal: Proposal) -> bool:
    return pod_rules.MIRROR_ANNOTATION in (proposal.subject.metadata.get("annotations") or ())


def _add_pull_secrets(spec: Spec, secrets: tuple[str, ...]) -> Spec:
    if spec.get("imagePullSecrets"):
        return spec
    return {**spec, "imagePullSecrets": [{"name": name} for name in secrets]}


def _mount_token(spec: Spec, volume: str, is_wanted: bool) -> Spec:  # noqa: FBT001 - facts have no names
    """Return the spec with the token mounted in every container that has no other volume at that path."""
    own = spec.get("automountServiceAccountToken")
    if not (is_wanted if own is None else own):
        return spec
    volumes: list[dict[str, Any]] = spec.get("volumes") or []
    present = next((each["name"] for each in volumes if each.get("name", "").startswith(_VOLUME)), None)
    mount = {"name": present or volume, "readOnly": True, "mountPath": MOUNT_PATH}
    changed = {
        field: [_mount(container, mount) for container in spec[field]]
        for field in ("initContainers", "containers")
        if spec.get(field)
    }
    if all(changed[field] == spec[field] for field in changed):
        return spec
    if present is None:
        changed["volumes"] = [*volumes, {"name": volume, "projected": _SOURCE}]
    return {**spec, **changed}


def _mount(container: dict[str, Any], mount: dict[str, Any]) -> dict[str, Any]:
    mounts: list[dict[str, Any]] = container.get("volumeMounts") or []
    if any(each.get("mountPath") == MOUNT_PATH for each in mounts):
        return container
    return {**container, "volumeMounts": [*mounts, mount]}


def _check_mirror(proposal: Proposal) -> None:
    spec: Spec = proposal.subject.content["spec"]
    if spec.get("serviceAccountName"):
        raise proposal.forbidden("a mirror pod may not reference service accounts")
    if next(_secret_names(spec), None) is not None:
        raise proposal.forbidden("a mirror pod may not reference secrets")
    for volume in spec.get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if source.get("serviceAccountToken"):
                raise proposal.forbidden("a mirror pod may not use ServiceAccountToken volume projections")


def _foreign_secrets(spec: Spec, account: Mapping[str, Any]) -> Iterator[str]:
    """Yield references to secrets that the account does not allow, in upstream's words."""
    name = account["metadata"]["name"]
    owned = {each.get("name", "") for each in account.get("secrets") or ()}
    end = f"is not allowed because service account {name} does not reference that"
    for volume in spec.get("volumes") or ():
        secret = (volume.get("secret") or {}).get("secretName")
        if secret is not None and secret not in owned:
            yield f'volume with secret.secretName="{secret}" {end} secret'
    for field, title in (("initContainers", "init container"), ("containers", "container")):
        for container in spec.get(field) or ():
            for where, secret in _container_secrets(container):
                if secret not in owned:
                    subject = f"{title} {container['name']} with {where}"
                    yield f'{subject} referencing secret.secretName="{secret}" {end} secret'
    pulled = {each.get("name", "") for each in account.get("imagePullSecrets") or ()}
    for position, each in enumerate(spec.get("imagePullSecrets") or ()):
        if each.get("name", "") not in pulled:
            yield f'imagePullSecrets[{position}].name="{each.get("name", "")}" {end} imagePullSecret'


def _container_secrets(container: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the references to secrets in a container's environment, with their places."""
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("secretKeyRef")
        if reference:
            yield f"envVar {variable.get('name', '')}", reference.get("name", "")
    for source in container.get("envFrom") or ():
        if source.get("secretRef"):
            yield "envFrom", source["secretRef"].get("name", "")


def _secret_names(spec: Spec) -> Iterator[str]:
    """Yield the names of all secrets that a pod refers to."""
    for each in spec.get("imagePullSecrets") or ():
        yield each.get("name", "")
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(field) or ():
            for _, secret in _container_secrets(container):
                yield secret
    for volume in spec.get("volumes") or ():
        if (volume.get("secret") or {}).get("secretName"):
            yield volume["secret"]["secretName"]
        for source in (volume.get("projected") or {}).get("sources") or ():
            if source.get("secret"):
                yield source["secret"].get("name", "")


class AbsentObjectError(status.StatusError):
    """A write is refused because an object is missing that may appear in a moment."""

    def __init__(self, refusal: status.StatusError, key: record.Key) -> None:
        super().__init__(refusal.document)
        self.key: Final = key
