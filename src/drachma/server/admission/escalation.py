"""Roles cannot be used to get more than one has: who writes a role, or binds one, must have what it gives.

Upstream does this where roles are stored, between admission that completes an object and the rules of its kind. Exempt
are members of ``system:masters``, and who may ``escalate`` the role or ``bind`` it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.server import documents, status
from drachma.server.access import policyrules
from drachma.server.access.authorization import Attributes, Authoriser
from drachma.server.access.policyrules import Rule
from drachma.server.admission.proposal import Proposal
from drachma.server.authorisers import modes, roles
from drachma.server.reads.reader import Reader
from drachma.store import record
from drachma.validation import rbac
from drachma.values import quotation

ROLES: Final = frozenset({roles.ROLES, roles.CLUSTER_ROLES})
BINDINGS: Final = frozenset({roles.BINDINGS, roles.CLUSTER_BINDINGS})

_KEPT_BY_COLLECTOR: Final = frozenset({"finalizers", "managedFields", "ownerReferences", "resourceVersion"})
_PLURALS: Final = {"Role": "roles", "ClusterRole": "clusterroles"}


class Escalation:
    """Refuses roles and bindings that give more than their author has."""

    def __init__(self, store: Reader, authoriser: Authoriser) -> None:
        self._store = store
        self._authoriser = authoriser

    def admit_role(self, proposal: Proposal) -> None:
        """Refuses a role with rules that its author does not have."""
        write = proposal.write
        if self._is_exempt(proposal) or self._may(proposal, "escalate", write.resource.plural, write.name):
            return
        content = proposal.subject.content
        self._confirm(proposal, policyrules.read(content.get("rules")))
        old = proposal.stored.value if proposal.stored is not None else {}
        if (_is_aggregated(content) or _is_aggregated(old)) and self._missing(proposal, policyrules.EVERYTHING):
            raise _forbidden(proposal, "must have cluster-admin privileges to use the aggregationRule")

    def admit_binding(self, proposal: Proposal) -> None:
        """Refuses the binding of a role whose rules its author does not have."""
        role: Mapping[str, str] = proposal.subject.content.get("roleRef") or {}
        plural, name = _PLURALS.get(role.get("kind", "")), role.get("name", "")
        if plural is None or self._is_exempt(proposal) or self._may(proposal, "bind", plural, name):
            return
        namespace = proposal.write.namespace if plural == "roles" else ""
        stored = self._store.get(record.Key(f"{rbac.GROUP}/{plural}", namespace, name))
        if stored is None:
            # As upstream, which speaks of the role as if it were a binding.
            raise status.not_found(proposal.write.resource, name)
        self._confirm(proposal, policyrules.read(stored.value.get("rules")))

    def _is_exempt(self, proposal: Proposal) -> bool:
        return modes.MASTERS in proposal.write.user.groups or _is_collected(proposal)

    def _may(self, proposal: Proposal, verb: str, plural: str, name: str) -> bool:
        write = proposal.write
        question = Attributes(
            user=write.user,
            verb=verb,
            group=rbac.GROUP,
            version="*",
            resource=plural,
            name=name,
            namespace=write.namespace,
        )
        return self._authoriser.authorise(question).is_allowed

    def _missing(self, proposal: Proposal, rules: Sequence[Rule]) -> tuple[Rule, ...]:
        owned = self._authoriser.rules(proposal.write.user, proposal.write.namespace)
        return policyrules.missing(owned.rules, rules)

    def _confirm(self, proposal: Proposal, rules: Sequence[Rule]) -> None:
        missing = self._missing(proposal, rules)
        if not missing:
            return
        user = proposal.write.user
        groups = " ".join(map(quotation.quote, user.groups))
        shown = "\n".join(sorted({str(rule) for rule in policyrules.compact(missing)}))
        detail = (
            f"user {quotation.quote(user.name)} (groups=[{groups}]) is attempting to grant RBAC permissions not "
            f"currently held:\n{shown}"
        )
        problem = self._authoriser.rules(user, proposal.write.namespace).problem
        raise _forbidden(proposal, f"{detail}; resolution errors: [{problem}]" if problem else detail)


def _forbidden(proposal: Proposal, detail: str) -> status.StatusError:
    return status.forbidden(proposal.write.resource, proposal.subject.metadata.get("name", ""), detail=detail)


def _is_aggregated(role: Mapping[str, Any]) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _is_collected(proposal: Proposal) -> bool:
    """Whether a change is only one of what the garbage collector changes, and gives nothing to anybody."""
    if proposal.stored is None:
        return False
    return documents.same(_given(proposal.document()), _given(proposal.stored.value))


def _given(document: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in document["metadata"].items() if key not in _KEPT_BY_COLLECTOR}
    return {**document, "metadata": metadata}
