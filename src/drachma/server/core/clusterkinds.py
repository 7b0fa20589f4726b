"""Namespaces, nodes, priority classes and the small kinds that configure a cluster."""

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from drachma.server import documents, objectmeta
from drachma.server.core.document import Document, DocumentStrategy, taken
from drachma.server.strategy import Subject, Traits, Write
from drachma.validation import fielderror, metadata, printed
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, Path
from drachma.values import names

NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"
NAMESPACE_FINALIZER: Final = "kubernetes"

_PREEMPTION_POLICIES: Final = ("Never", "PreemptLowerPriority")
_HIGHEST_USER_PRIORITY: Final = 1_000_000_000
_SYSTEM_PREFIX: Final = "system-"
_CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")


def _label(name: str, *, is_prefix: bool) -> Sequence[str]:
    """The rule for names that become DNS labels; a prefix may end in a dash, because more follows."""
    return names.dns1123_label(name[:-1] + "a" if is_prefix and name.endswith("-") else name)


def _key_problems(key: str) -> Iterator[str]:
    """What keeps a key of a config map or secret from being a file name."""
    if len(key) > names.SUBDOMAIN_LENGTH:
        yield f"must be no more than {names.SUBDOMAIN_LENGTH} characters"
    if not _CONFIG_KEY.fullmatch(key):
        yield (
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
            "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
        )
    if key == ".":
        yield "must not be '.'"
    elif key.startswith(".."):
        yield "must not be '..'" if key == ".." else "must not start with '..'"


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

    def check(self, content: Document, subject: Subject) -> Errors:
        for position, name in enumerate((content.get("spec") or {}).get("finalizers") or ()):
            if "/" not in name and name != NAMESPACE_FINALIZER:
                detail = "name is neither a standard finalizer name nor is it fully qualified"
                yield fielderror.invalid(SPEC.child("finalizers").item(position), printed.named(name), detail)

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from self.check(content, subject)
        phase = (content.get("status") or {}).get("phase")
        if subject.metadata.get("deletionTimestamp") and phase != "Terminating":
            detail = "may only be 'Terminating' if `deletionTimestamp` is not empty"
            yield fielderror.invalid(Path("status").child("Phase"), printed.named(phase or ""), detail)


class NodeStrategy(DocumentStrategy):
    """Nodes bring their status along when they are created: kubelet registers them so."""

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        current = content.get("status") or {}
        if current.get("capacity") and not current.get("allocatable"):
            content["status"] = {**current, "allocatable": dict(current["capacity"])}

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content.setdefault("spec", {})

    def prepare_status(self, content: Document, old: Mapping[str, Any], subject: Subject, write: Write) -> None:
        taken(content, old, "spec")

    def check(self, content: Document, subject: Subject) -> Errors:
        seen = set()
        for position, taint in enumerate((content.get("spec") or {}).get("taints") or ()):
            at = SPEC.child("taints").item(position)
            for message in names.label_key(taint.get("key", "")):
                yield fielderror.invalid(at.child("key"), taint.get("key", ""), message)
            if taint.get("effect") not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
                allowed = ("NoSchedule", "PreferNoSchedule", "NoExecute")
                yield fielderror.not_supported(at.child("effect"), printed.named(taint.get("effect", "")), allowed)
            identity = (taint.get("key"), taint.get("effect"))
            if identity in seen:
                yield fielderror.duplicate(at, printed.wire(taint))
            seen.add(identity)


class PriorityClassStrategy(DocumentStrategy):
    counts_generations = True

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        if not content.get("preemptionPolicy"):
            content["preemptionPolicy"] = "PreemptLowerPriority"
        content.setdefault("value", 0)

    def check(self, content: Document, subject: Subject) -> Errors:
        value, name = content["value"], subject.metadata.get("name", "")
        if value > _HIGHEST_USER_PRIORITY and not name.startswith(_SYSTEM_PREFIX):
            detail = f"maximum allowed value of a user defined priority is {_HIGHEST_USER_PRIORITY}"
            yield fielderror.forbidden(Path("value"), detail)
        policy = content["preemptionPolicy"]
        if policy not in _PREEMPTION_POLICIES:
            allowed = ("PreemptLowerPriority", "Never")
            yield fielderror.not_supported(Path("preemptionPolicy"), printed.named(policy), allowed)

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        if content["value"] != old.get("value", 0):
            yield fielderror.forbidden(Path("value"), "may not be changed in an update.")
        if content["preemptionPolicy"] != old.get("preemptionPolicy"):
            yield fielderror.invalid(
                Path("preemptionPolicy"), printed.named(content["preemptionPolicy"]), metadata.IMMUTABLE
            )

    def _is_changed(self, content: Document, old: Mapping[str, Any]) -> bool:
        return False


class ConfigStrategy(DocumentStrategy):
    """Config maps and secrets: keys that can be file names, and no change once they are immutable."""

    fields: tuple[str, ...] = ("data", "binaryData")

    def check(self, content: Document, subject: Subject) -> Errors:
        seen: set[str] = set()
        for field in self.fields:
            for key in content.get(field) or {}:
                for message in _key_problems(key):
                    yield fielderror.invalid(Path(field).key(key), key, message)
                if key in seen:
                    detail = f"duplicate of key present in {self.fields[0]}"
                    yield fielderror.invalid(Path(field).key(key), key, detail)
                seen.add(key)

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        if not old.get("immutable"):
            return
        if not content.get("immutable"):
            yield fielderror.forbidden(Path("immutable"), "field is immutable when `immutable` is set")
        for field in self.fields:
            if not documents.same(content.get(field) or {}, old.get(field) or {}):
                yield fielderror.forbidden(Path(field), "field is immutable when `immutable` is set")


class SecretStrategy(ConfigStrategy):
    fields = ("data",)

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        if not content.get("type"):
            content["type"] = "Opaque"
        plain = content.pop("stringData", None)
        if plain:
            encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
            content["data"] = {**(content.get("data") or {}), **encoded}

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        if content["type"] != old.get("type"):
            yield fielderror.invalid(Path("type"), printed.named(content["type"]), metadata.IMMUTABLE)
        yield from super().check_update(content, old, subject)


class ServiceAccountStrategy(DocumentStrategy):
    traits = Traits(returns_deleted=True)


class ResourceQuotaStrategy(DocumentStrategy):
    traits = Traits(returns_deleted=True)


class EventStrategy(DocumentStrategy):
    traits = Traits(creates_on_update=True, has_dependents=False)

    def check(self, content: Document, subject: Subject) -> Errors:
        about = (content.get("involvedObject") or {}).get("namespace", "")
        own = subject.metadata.get("namespace", "")
        # Events about objects of cluster scope are kept in the default namespace.
        if about != own and not (not about and own == "default"):
            at = Path("involvedObject").child("namespace")
            yield fielderror.invalid(at, about, "does not match event.namespace")


class LeaseStrategy(DocumentStrategy):
    traits = Traits(creates_on_update=True)

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
