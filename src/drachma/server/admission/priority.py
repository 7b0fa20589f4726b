"""Priority: pods get the priority of their class, or of the default class."""

from collections.abc import Mapping
from typing import Any, Final

from drachma.api import gates as feature
from drachma.server import status
from drachma.server.admission import podspecs
from drachma.server.admission.podspecs import Spec
from drachma.server.admission.proposal import Proposal, Removal
from drachma.server.reads.reader import Reader
from drachma.store import record
from drachma.validation import scheduling

_CLASSES: Final = "scheduling.k8s.io/priorityclasses"
CLASSES: Final = frozenset({_CLASSES})
POD_GROUPS: Final = frozenset({"scheduling.k8s.io/podgroups"})
ALL_GROUPS: Final = POD_GROUPS | {"scheduling.k8s.io/compositepodgroups"}
_PREEMPT: Final = "PreemptLowerPriority"
_SET_HERE: Final = ("priority", "preemptionPolicy")


class Priority:
    """Upstream's admission plugin of that name."""

    def __init__(self, store: Reader, gates: feature.Gates) -> None:
        self._store = store
        self._has_group_policies = gates.on(feature.Gate.POD_GROUP_PREEMPTION_POLICY)
        self._listed = -1
        self._default_class: record.Record | None = None

    def read_version(self) -> int:
        """Return the revision of the last change of an object that pods depend on here."""
        return self._store.changed(_CLASSES)

    def admit(self, proposal: Proposal) -> None:
        """Set the priority of a new pod; refuse one with an unknown class, or with another priority."""
        spec: Spec = proposal.subject.content["spec"]
        name = spec.get("priorityClassName") or ""
        priority_class = self._find(name)
        if name and priority_class is None:
            raise proposal.forbidden(f"no PriorityClass with name {name} was found")
        computed = _values(priority_class)
        if spec.get("priority") is not None or spec.get("preemptionPolicy"):
            _check(proposal, spec, computed)
        podspecs.change(
            proposal, _set_priority, priority_class.key.name if priority_class is not None else "", *computed
        )

    def admit_group(self, proposal: Proposal) -> None:
        """Set the priority of a new pod group; raises like :meth:`admit`."""
        spec = dict(proposal.subject.content.get("spec") or {})
        name = spec.get("priorityClassName") or ""
        priority_class = self._find(name)
        if name and priority_class is None:
            raise proposal.forbidden(f"no PriorityClass with name {name} was found")
        priority, policy = _values(priority_class)
        if spec.get("priority") not in (None, priority):
            raise proposal.forbidden(
                f"priority set in the pod group ({spec['priority']}) must match the priority computed ({priority}) "
                "based on the priority class set in the spec"
            )
        own_policy = spec.get("preemptionPolicy") if self._has_group_policies else None
        if own_policy and own_policy != policy:
            raise proposal.forbidden(
                f"the string value of PreemptionPolicy ({own_policy}) must not be provided in pod group spec; "
                f"priority admission controller computed {policy} from the given PriorityClass name"
            )
        spec["priority"] = priority
        if priority_class is not None:
            spec["priorityClassName"] = priority_class.key.name
        proposal.subject.content = {**proposal.subject.content, "spec": spec}

    def admit_update(self, proposal: Proposal) -> None:
        """Keep the priority of a changed pod if the client leaves it out."""
        assert proposal.stored is not None, "an update has a stored object"
        spec: Spec = proposal.subject.content["spec"]
        old_spec: Mapping[str, Any] = proposal.stored.value["spec"]
        missing_fields = {
            field: old_spec[field] for field in _SET_HERE if spec.get(field) is None and field in old_spec
        }
        if missing_fields:
            proposal.subject.content = {**proposal.subject.content, "spec": {**spec, **missing_fields}}

    def validate_class(self, proposal: Proposal) -> None:
        """Refuse a second default class."""
        subject = proposal.subject
        default = self._find("") if subject.content.get("globalDefault") else None
        if default is not None and (proposal.stored is None or proposal.stored.key != default.key):
            detail = f"PriorityClass {default.key.name} is already marked as default. Only one default can exist"
            raise proposal.forbidden(detail)

    def validate_removal(self, removal: Removal) -> None:
        """Refuse the deletion of a class that every cluster needs."""
        write = removal.write
        if write.name in scheduling.SYSTEM_CLASSES:
            detail = "this is a system priority class and cannot be deleted"
            raise status.forbidden(write.resource, write.name, detail=detail)

    def _find(self, name: str) -> record.Record | None:
        """Return the class of that name, or the default class."""
        if name:
            return self._store.get(record.Key(_CLASSES, "", name))
        if self._listed < self._store.changed(_CLASSES):
            self._listed = self._store.revision
            defaults = [each for each in self._store.list(_CLASSES).records if each.value.get("globalDefault")]
            self._default_class = min(defaults, key=lambda each: each.value.get("value", 0), default=None)
        return self._default_class


def _values(priority_class: record.Record | None) -> tuple[int, str]:
    """Return the priority and preemption policy of pods of a class, or of pods without one."""
    if priority_class is None:
        return 0, _PREEMPT
    content = priority_class.value
    return content.get("value", 0), content.get("preemptionPolicy", _PREEMPT)


def _check(proposal: Proposal, spec: Spec, computed: tuple[int, str]) -> None:
    priority, policy = computed
    own_priority: Any = spec.get("priority")
    if own_priority is not None and own_priority != priority:
        raise proposal.forbidden(
            f"the integer value of priority ({own_priority}) must not be provided in pod spec; priority admission "
            f"controller computed {priority} from the given PriorityClass name"
        )
    own_policy = spec.get("preemptionPolicy")
    if own_policy and own_policy != policy:
        raise proposal.forbidden(
            f"the string value of PreemptionPolicy ({own_policy}) must not be provided in pod spec; priority admission "
            f"controller computed {policy} from the given PriorityClass name"
        )


def _set_priority(spec: Spec, class_name: str, priority: int, policy: str) -> Spec:
    class_fields = {"priorityClassName": class_name} if class_name else {}
    return {**spec, **class_fields, "priority": priority, "preemptionPolicy": policy}
