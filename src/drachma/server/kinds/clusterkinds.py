"""Namespaces, nodes, priority classes and the small kinds that configure a cluster."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy, taken
from drachma.server.kinds.strategy import Subject, Traits, Write
from drachma.validation import configuration, event, fielderror, metadata, node, quota, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, Path
from drachma.values import names

NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"
NAMESPACE_FINALIZER: Final = "kubernetes"
_STANDARD_FINALIZERS: Final = (NAMESPACE_FINALIZER, "orphan", "foregroundDeletion")

_PREEMPTION_POLICIES: Final = ("Never", "PreemptLowerPriority")
_HIGHEST_USER_PRIORITY: Final = 1_000_000_000
_SYSTEM_PREFIX: Final = "system-"
_SYSTEM_CLASSES: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


def _label(name: str, *, is_prefix: bool) -> Sequence[str]:
    """The rule for names that become DNS labels; a prefix may end in a dash, because more follows."""
    return names.dns1123_label(name[:-1] + "a" if is_prefix and name.endswith("-") else name)


class NamespaceStrategy(DocumentStrategy):
    traits = Traits(returns_deleted=True, is_completed=True)
    name_rule = staticmethod(_label)

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        if metadata.get("name"):
            metadata["labels"] = {**metadata.get("labels", {}), NAMESPACE_LABEL: metadata["name"]}

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        metadata["labels"] = {**metadata.get("labels", {}), NAMESPACE_LABEL: metadata.get("name", "")}
        content["status"] = {"phase": "Active"}
        spec = content["spec"] = dict(content.get("spec", {}))
        finalizers = spec.setdefault("finalizers", [])
        if NAMESPACE_FINALIZER not in finalizers:
            spec["finalizers"] = [*finalizers, NAMESPACE_FINALIZER]

    def prepare_update(self, content: Document, old: Mapping[str, Any], write: Write) -> None:
        taken(content, old, "spec", "status")

    def prepare_status(self, content: Document, old: Mapping[str, Any], subject: Subject, write: Write) -> None:
        if write.subresource == "finalize":
            taken(content, old, "status")
        else:
            taken(content, old, "spec")

    def check_new(self, content: Document, subject: Subject) -> Errors:
        for name in (content.get("spec") or {}).get("finalizers") or ():
            yield from _finalizer(name, SPEC.child("finalizers"))

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        if content.get("spec") != old.get("spec"):
            for position, name in enumerate((content.get("spec") or {}).get("finalizers") or ()):
                yield from _finalizer(name, SPEC.child("finalizers").item(position))
            return
        phase = (content.get("status") or {}).get("phase", "")
        wanted, when = (
            ("Terminating", "not empty") if subject.metadata.get("deletionTimestamp") else ("Active", "empty")
        )
        if phase != wanted:
            detail = f"may only be '{wanted}' if `deletionTimestamp` is {when}"
            yield fielderror.invalid(Path("status").child("Phase"), rendering.named(phase), detail)


def _finalizer(name: str, at: Path) -> Errors:
    yield from fielderror.problems(at, name, names.label_key(name))
    if "/" not in name and name not in _STANDARD_FINALIZERS:
        yield fielderror.invalid(at, name, "name is neither a standard finalizer name nor is it fully qualified")


class NodeStrategy(DocumentStrategy):
    """Nodes bring their status along when they are created: kubelet registers them so."""

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        current = content.get("status") or {}
        if current.get("capacity") and not current.get("allocatable"):
            content["status"] = {**current, "allocatable": dict(current["capacity"])}

        spec = content["spec"] = {
            name: value for name, value in content.get("spec", {}).items() if name != "configSource"
        }
        if spec.get("podCIDR") and spec.get("podCIDR") not in (spec.get("podCIDRs") or ())[:1]:
            content["spec"] = {**spec, "podCIDRs": [spec["podCIDR"]]}
        elif spec.get("podCIDRs") and not spec.get("podCIDR"):
            content["spec"] = {**spec, "podCIDR": spec["podCIDRs"][0]}

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content.setdefault("spec", {})

    def prepare_status(self, content: Document, old: Mapping[str, Any], subject: Subject, write: Write) -> None:
        taken(content, old, "spec")

    def check_new(self, content: Document, subject: Subject) -> Errors:
        yield from node.check(content.get("spec") or {}, content.get("status") or {})

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        spec, status = content.get("spec") or {}, content.get("status") or {}
        yield from node.check_update(spec, status, old=old.get("spec") or {})

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from self.check_update(content, old, subject)

    def warnings(self, content: Document, subject: Subject) -> Iterable[str]:
        if (content.get("spec") or {}).get("externalID"):
            yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"


class PriorityClassStrategy(DocumentStrategy):
    counts_generations = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        if not content.get("preemptionPolicy"):
            content["preemptionPolicy"] = "PreemptLowerPriority"
        content.setdefault("value", 0)

    def check(self, content: Document, subject: Subject) -> Errors:
        value, name = content["value"], subject.metadata.get("name", "")
        if name.startswith(_SYSTEM_PREFIX):
            yield from _system_class(name, value)
        elif value > _HIGHEST_USER_PRIORITY:
            detail = f"maximum allowed value of a user defined priority is {_HIGHEST_USER_PRIORITY}"
            yield fielderror.forbidden(Path("value"), detail)
        policy = content["preemptionPolicy"]
        if policy not in _PREEMPTION_POLICIES:
            allowed = ("PreemptLowerPriority", "Never")
            yield fielderror.not_supported(Path("preemptionPolicy"), rendering.named(policy), allowed)

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        if content["value"] != old.get("value", 0):
            yield fielderror.forbidden(Path("value"), "may not be changed in an update.")
        if content["preemptionPolicy"] != old.get("preemptionPolicy"):
            yield fielderror.invalid(
                Path("preemptionPolicy"), rendering.named(content["preemptionPolicy"]), metadata.IMMUTABLE
            )

    def _is_changed(self, content: Document, old: Mapping[str, Any]) -> bool:
        return False


def _system_class(name: str, value: int) -> Errors:
    if _SYSTEM_CLASSES.get(name) == value:
        return
    problem = "is not a known system priority class"
    if name in _SYSTEM_CLASSES:
        problem = f"value of {name} PriorityClass must be {_SYSTEM_CLASSES[name]}"
    shown = problem if name in _SYSTEM_CLASSES else f"{name} {problem}"
    detail = f"priority class names with '{_SYSTEM_PREFIX}' prefix are reserved for system use only. error: {shown}"
    yield fielderror.forbidden(Path("metadata").child("name"), detail)


class ConfigMapStrategy(DocumentStrategy):
    def check(self, content: Document, subject: Subject) -> Errors:
        yield from configuration.check_config_map(content)

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from configuration.check_update(content, old, fields=("data", "binaryData"))


class SecretStrategy(DocumentStrategy):
    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        if not content.get("type"):
            content["type"] = "Opaque"
        plain = content.pop("stringData", None)
        if plain:
            encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
            content["data"] = {**(content.get("data") or {}), **encoded}

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from configuration.check_secret(content, subject.metadata.get("annotations") or {})

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        if content["type"] != old.get("type"):
            yield fielderror.invalid(Path("type"), rendering.named(content["type"]), metadata.IMMUTABLE)
        yield from configuration.check_update(content, old, fields=("data",))


class ServiceAccountStrategy(DocumentStrategy):
    traits = Traits(returns_deleted=True)


class ResourceQuotaStrategy(DocumentStrategy):
    traits = Traits(returns_deleted=True)

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from quota.check(content.get("spec") or {})

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from quota.check_update(content.get("spec") or {}, old.get("spec") or {})

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from quota.check_status(content.get("status") or {})


class EventStrategy(DocumentStrategy):
    """Events come in masses and are soon forgotten; any name will do that fits into a URL."""

    traits = Traits(creates_on_update=True, has_dependents=False)
    name_rule = staticmethod(metadata.path_segment)

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from event.check(content, namespace=subject.metadata.get("namespace", ""))


class LeaseStrategy(DocumentStrategy):
    traits = Traits(creates_on_update=True)

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        """Leaders are not elected by the server: the gate CoordinatedLeaderElection is off, and its fields go."""
        spec = content.get("spec")
        if spec and ("strategy" in spec or "preferredHolder" in spec):
            content["spec"] = {name: spec[name] for name in spec if name not in ("strategy", "preferredHolder")}

    def updates_unconditionally(self, write: Write) -> bool:
        return False

    def check(self, content: Document, subject: Subject) -> Errors:
        spec = content.get("spec") or {}
        if spec.get("leaseDurationSeconds") is not None and spec["leaseDurationSeconds"] <= 0:
            at = SPEC.child("leaseDurationSeconds")
            yield fielderror.invalid(at, spec["leaseDurationSeconds"], "must be greater than 0")
        if spec.get("leaseTransitions") is not None and spec["leaseTransitions"] < 0:
            at = SPEC.child("leaseTransitions")
            yield fielderror.invalid(at, spec["leaseTransitions"], metadata.MUST_NOT_BE_NEGATIVE)
