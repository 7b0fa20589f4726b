"""Access to parameters: the author of a policy or binding with parameters must be allowed to read them.

Upstream checks this in the storage of policies, for valid ones. Users who may escalate roles are exempt.
"""

from collections.abc import Mapping
from typing import Any, Final

from drachma.server import documents, status
from drachma.server.access.authorization import Attributes, Authoriser
from drachma.server.admission.proposal import Proposal
from drachma.server.authorisers import modes
from drachma.server.reads.reader import Reader
from drachma.server.user import User
from drachma.store import record
from drachma.validation import fielderror
from drachma.validation.path import SPEC, Path

_GROUP: Final = "admissionregistration.k8s.io"
_MUTATING: Final = f"{_GROUP}/mutatingadmissionpolicybindings"
_POLICIES: Final = {
    f"{_GROUP}/validatingadmissionpolicybindings": f"{_GROUP}/validatingadmissionpolicies",
    _MUTATING: f"{_GROUP}/mutatingadmissionpolicies",
}
"""Policies by the kind of their bindings."""

POLICIES: Final = frozenset(_POLICIES.values())
BINDINGS: Final = frozenset(_POLICIES)
_ALL: Final = "*"


class ParameterAccess:
    """Refuses policies and bindings whose authors may not read the parameters."""

    def __init__(self, store: Reader, authoriser: Authoriser) -> None:
        self._store = store
        self._authoriser = authoriser

    def check_policy(self, proposal: Proposal) -> None:
        """Refuse a policy with a kind of parameters that its author may not read."""
        kind = _spec(proposal.subject.content).get("paramKind")
        old = _spec(proposal.stored.value).get("paramKind") if proposal.stored is not None else None
        user = proposal.write.user
        if kind is None or documents.same(kind, old) or modes.MASTERS in user.groups:
            return
        group, version, resource, _ = self._place(proposal, kind)
        question = Attributes(
            user=user, verb="get", group=group, version=version, resource=resource, name=_ALL, namespace=_ALL
        )
        if not self._authoriser.authorise(question).is_allowed:
            detail = (
                f'user {_format_user(user)} must have "get" permission on all objects of the referenced paramKind '
                f"(kind={kind.get('kind', '')}, apiVersion={kind.get('apiVersion', '')})"
            )
            raise _refusal(proposal, SPEC.child("paramKind"), detail)

    def check_binding(self, proposal: Proposal) -> None:
        """Refuse a binding to parameters that its author may not read."""
        spec = _spec(proposal.subject.content)
        old = _spec(proposal.stored.value) if proposal.stored is not None else {}
        reference, user = spec.get("paramRef"), proposal.write.user
        is_same = documents.same(reference, old.get("paramRef")) and spec.get("policyName") == old.get("policyName")
        if reference is None or is_same or modes.MASTERS in user.groups:
            return
        name = spec.get("policyName", "")
        policy = self._store.get(record.Key(_POLICIES[proposal.write.resource.group_resource], "", name))
        kind = _spec(policy.value).get("paramKind") if policy is not None else None
        group, version, resource, is_resolved = self._place(proposal, kind)
        verb = "get" if reference.get("name") else "list"
        question = Attributes(
            user=user,
            verb=verb,
            group=group,
            version=version,
            resource=resource,
            name=reference.get("name", ""),
            namespace=reference.get("namespace", ""),
        )
        if self._authoriser.authorise(question).is_allowed:
            return
        everything = (
            f'user {_format_user(user)} does not have "{verb}" permission for all groups, versions and resources'
        )
        if policy is None:
            detail = f"unable to get policy {name} to determine minimum required permissions and {everything}"
        elif kind is not None and not is_resolved:
            go_text = f"&{{{kind.get('apiVersion', '')} {kind.get('kind', '')}}}"
            detail = f"unable to resolve paramKind {go_text} to determine minimum required permissions and {everything}"
        else:
            who, what = _format_user(user), verb
            if proposal.write.resource.group_resource == _MUTATING:
                # As in upstream, which swaps the two.
                who, what = what, who
            detail = f'user {who} does not have "{what}" permission on the object referenced by paramRef'
        raise _refusal(proposal, SPEC.child("paramRef"), detail)

    def _place(self, proposal: Proposal, kind: Mapping[str, str] | None) -> tuple[str, str, str, bool]:
        """Return group, version and resource of parameters, and True if the kind is served; otherwise each is ``*``."""
        if kind is None:
            return _ALL, _ALL, _ALL, False
        api_version = kind.get("apiVersion", "")
        group, _, version = api_version.rpartition("/")
        resource = proposal.write.surface.find_kind(api_version, kind.get("kind", ""))
        return group, version, resource.plural if resource is not None else _ALL, resource is not None


def _spec(document: Mapping[str, Any]) -> Mapping[str, Any]:
    return document.get("spec") or {}


def _refusal(proposal: Proposal, at: Path, detail: str) -> status.StatusError:
    resource = proposal.write.resource
    causes = [fielderror.forbidden(at, detail)]
    return status.invalid(resource.kind, proposal.subject.metadata.get("name", ""), group=resource.group, causes=causes)


def _format_user(user: User) -> str:
    """Return a user in Go's notation."""
    extra = " ".join(f"{key}:[{' '.join(values)}]" for key, values in sorted(user.extra.items()))
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"
