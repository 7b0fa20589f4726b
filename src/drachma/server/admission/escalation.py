"""Protection against escalation: a user who writes or binds a role must have its permissions.

Upstream checks this in the storage of roles, between mutating admission and validation. Members of ``system:masters``
are exempt, and so are users who may ``escalate`` or ``bind`` the role.
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
    """Refuses roles and bindings that give more permissions than their author has."""

    def __init__(self, store: Reader, authoriser: Authoriser) -> None:
        self._store = store
        self._authoriser = authoriser

    def admit_role(self, proposal: Proposal) -> None:
        """Refuse a role with rules that its author lacks."""
        write = proposal.write
        if self._is_exempt(proposal) or self._may(proposal, "escalate", write.resource.plural, write.name):
            return
        content = proposal.subject.content
        self._confirm(proposal, policyrules.read(content.get("rules")))
        old = proposal.stored.value if proposal.stored is not None else {}
        if (_is_aggregated(content) or _is_aggregated(old)) and self._missing(proposal, policyrules.EVERYTHING):
            raise _forbidden(proposal, "must have cluster-admin privileges to use the aggregationRule")

    def admit_binding(self, proposal: Proposal) -> None:
        """Refuse the binding of a role whose rules its author lacks."""
        reference: Mapping[str, str] = proposal.subject.content.get("roleRef") or {}
        plural, name = _PLURALS.get(reference.get("kind", "")), reference.get("name", "")
        if plural is None or self._is_exempt(proposal) or self._may(proposal, "bind", plural, name):
            return
        namespace = proposal.write.namespace if plural == "roles" else ""
        role = self._store.get(record.Key(f"{rbac.GROUP}/{plural}", namespace, name))
        if role is None:
            # As in upstream, whose message calls the role a binding.
            raise status.not_found(proposal.write.resource, name)
        self._confirm(proposal, policyrules.read(role.value.get("rules")))

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
        return policyrules.find_missing(owned.rules, rules)

    def _confirm(self, proposal: Proposal, rules: Sequence[Rule]) -> None:
        lacking = self._missing(proposal, rules)
        if not lacking:
            return
        user = proposal.write.user
        groups = " ".join(map(quotation.quote, user.groups))
        rules_text = "\n".join(sorted({str(rule) for rule in policyrules.compact(lacking)}))
        detail = (
            f"user {quotation.quote(user.name)} (groups=[{groups}]) is attempting to grant RBAC permissions not "
            f"currently held:\n{rules_text}"
        )
        problem = self._authoriser.rules(user, proposal.write.namespace).problem
        raise _forbidden(proposal, f"{detail}; resolution errors: [{problem}]" if problem else detail)


def _forbidden(proposal: Proposal, detail: str) -> status.StatusError:
    return status.forbidden(proposal.write.resource, proposal.subject.metadata.get("name", ""), detail=detail)


def _is_aggregated(role: Mapping[str, Any]) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _is_collected(proposal: Proposal) -> bool:
    """Return True for a change by the garbage collector that grants nothing."""
    if proposal.stored is None:
        return False
    return documents.same(_granted_fields(proposal.document()), _granted_fields(proposal.stored.value))


def _granted_fields(document: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in document["metadata"].items() if key not in _KEPT_BY_COLLECTOR}
    return {**document, "metadata": metadata}
