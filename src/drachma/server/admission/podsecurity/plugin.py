"""PodSecurity: pods comply with the standard that the labels of their namespace name.

A pod that violates the enforced standard is refused. Templates of workloads are never refused, only audited and warned
of. Labels of namespaces have to be valid, and a client that makes a namespace stricter is warned of the pods in it.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from drachma.server import status
from drachma.server.admission.podsecurity import existingpods, podviews, policies
from drachma.server.admission.podsecurity.checks import evaluate
from drachma.server.admission.podsecurity.configuration import Configuration
from drachma.server.admission.podsecurity.policies import Level, Policy
from drachma.server.admission.proposal import Proposal
from drachma.store import record
from drachma.validation import fielderror
from drachma.values import quotation

Document: TypeAlias = Mapping[str, Any]

NAMESPACES: Final = frozenset({"namespaces"})
_TEMPLATES: Final[Mapping[str, tuple[str, ...]]] = {
    "apps/daemonsets": ("spec", "template"),
    "apps/deployments": ("spec", "template"),
    "apps/replicasets": ("spec", "template"),
    "apps/statefulsets": ("spec", "template"),
    "batch/cronjobs": ("spec", "jobTemplate", "spec", "template"),
    "batch/jobs": ("spec", "template"),
    "podtemplates": ("template",),
    "replicationcontrollers": ("spec", "template"),
}
"""Paths of pod templates, by resource."""

WORKLOADS: Final = frozenset(_TEMPLATES)

_UNCHECKED_SUBRESOURCES: Final = frozenset(
    {"attach", "binding", "eviction", "exec", "log", "portforward", "proxy", "status"}
)
_ENFORCE_ANNOTATION: Final = f"{policies.PREFIX}enforce-policy"
_AUDIT_ANNOTATION: Final = f"{policies.PREFIX}audit-violations"
_PRIVILEGED: Final = str(policies.PRIVILEGED)
_EXEMPT_ANNOTATION: Final = f"{policies.PREFIX}exempt"
_ERROR_ANNOTATION: Final = f"{policies.PREFIX}error"
_MODES: Final = (
    ("enforce", policies.ENFORCE, policies.ENFORCE_VERSION),
    ("audit", policies.AUDIT, policies.AUDIT_VERSION),
    ("warn", policies.WARN, policies.WARN_VERSION),
)
_NO_LABELS: Final[Mapping[str, str]] = {}


class PodSecurity:
    """Upstream's admission plugin of that name."""

    def __init__(self, configuration: Configuration) -> None:
        self._defaults: Final = configuration.defaults
        self._exemptions: Final = configuration.exemptions

    def validate_pod(self, proposal: Proposal) -> None:
        """Refuse a pod that violates the enforced standard of its namespace; audit and warn by the other two.

        Changes of a pod count only if they change an image or add an ephemeral container.
        """
        write = proposal.write
        if write.subresource in _UNCHECKED_SUBRESOURCES or self._is_exempt(proposal):
            return
        labels = _namespace_labels(proposal)
        if labels is None:
            detail = f"failed to lookup namespace {quotation.quote(write.namespace)}"
            write.annotations[_ERROR_ANNOTATION] = detail
            raise status.internal(detail)
        labelled = policies.read_labels(labels, self._defaults)
        if not labelled.errors and labelled.policy.is_privileged:
            write.annotations[_ENFORCE_ANNOTATION] = _PRIVILEGED
            return
        pod = proposal.document()
        if proposal.stored is not None and not _changes_images(pod["spec"], proposal.stored.value["spec"]):
            return
        self._check(proposal, pod, labelled, is_enforced=True)

    def validate_workload(self, proposal: Proposal) -> None:
        """Audit and warn by the pod template of a workload."""
        write = proposal.write
        if write.subresource or self._is_exempt(proposal):
            return
        labels = _namespace_labels(proposal)
        if labels is None:
            name = quotation.quote(write.namespace)
            write.annotations[_ERROR_ANNOTATION] = f"failed to lookup namespace {name}: namespaces {name} not found"
            return
        labelled = policies.read_labels(labels, self._defaults)
        policy = labelled.policy
        if not (labelled.errors or policy.audit.level or policy.warn.level):
            return
        template: Any = proposal.document()
        for field in _TEMPLATES[write.resource.key]:
            template = template.get(field) or {}
        if template:
            self._check(proposal, template, labelled, is_enforced=False)

    def validate_namespace(self, proposal: Proposal) -> None:
        """Refuse labels that name no policy, and warn of pods that violate a stricter one."""
        write, metadata = proposal.write, proposal.subject.metadata
        if write.subresource:
            return
        name, labels = metadata["name"], metadata.get("labels") or _NO_LABELS
        labelled = policies.read_labels(labels, self._defaults)
        if proposal.stored is None:
            if labelled.errors:
                raise _invalid(proposal, labelled.errors)
            if name in self._exemptions.namespaces:
                self._warn_of_exemption(proposal, labelled.policy)
            return
        old = policies.read_labels(proposal.stored.value["metadata"].get("labels") or _NO_LABELS, self._defaults)
        if labelled.errors and labelled.errors != old.errors:
            raise _invalid(proposal, labelled.errors)
        enforce, before = labelled.policy.enforce, old.policy.enforce
        is_relaxed = enforce.minor == before.minor and enforce.level <= before.level
        if is_relaxed or enforce.level == Level.PRIVILEGED:
            return
        if name in self._exemptions.namespaces:
            self._warn_of_exemption(proposal, labelled.policy)
            return
        question = existingpods.Question(
            namespace=name, standard=enforce, exempt_runtime_classes=self._exemptions.runtime_classes
        )
        (warnings,) = write.consultation.answers(question)
        for text in warnings:
            write.warn(text)

    def _is_exempt(self, proposal: Proposal) -> bool:
        """Return True for an exempt namespace or user, and annotate the audit event."""
        write = proposal.write
        if write.namespace in self._exemptions.namespaces:
            write.annotations[_EXEMPT_ANNOTATION] = "namespace"
        elif write.user.name in self._exemptions.usernames:
            write.annotations[_EXEMPT_ANNOTATION] = "user"
        else:
            return False
        return True

    def _check(
        self, proposal: Proposal, pod: Document, labelled: policies.LabelledPolicy, *, is_enforced: bool
    ) -> None:
        """Evaluate a pod or pod template by all modes that apply to it."""
        write, policy = proposal.write, labelled.policy
        spec: Document = pod.get("spec") or {}
        if spec.get("runtimeClassName") in self._exemptions.runtime_classes:
            write.annotations[_EXEMPT_ANNOTATION] = "runtimeClass"
            return
        if labelled.errors:
            write.annotations[_ERROR_ANNOTATION] = f"Failed to parse policy: {_join(labelled.errors)}"
        modes = policy if is_enforced else (policy.audit, policy.warn)
        view = podviews.view(pod.get("metadata") or {}, spec)
        evaluations = {standard: evaluate(view, standard) for standard in set(modes)}
        if evaluations[policy.audit].violations:
            write.annotations[_AUDIT_ANNOTATION] = f"would violate {evaluations[policy.audit].message}"
        if is_enforced:
            write.annotations[_ENFORCE_ANNOTATION] = str(policy.enforce)
            if evaluations[policy.enforce].violations:
                raise proposal.forbidden(f"violates {evaluations[policy.enforce].message}")
        if evaluations[policy.warn].violations:
            write.warn(f"would violate {evaluations[policy.warn].message}")

    def _warn_of_exemption(self, proposal: Proposal, policy: Policy) -> None:
        """Warn that the labels of an exempt namespace have no effect."""
        if policy.is_privileged or policy.is_equivalent(self._defaults):
            return
        metadata = proposal.subject.metadata
        labels = metadata.get("labels") or _NO_LABELS
        parts = [
            f"{mode}={standard}"
            for (mode, level, version), standard in zip(_MODES, policy, strict=True)
            if standard.level != Level.PRIVILEGED and (level in labels or version in labels)
        ]
        proposal.write.warn(
            f"namespace {quotation.quote(metadata['name'])} is exempt from Pod Security, and the policy "
            f"({', '.join(parts)}) will be ignored"
        )


def _namespace_labels(proposal: Proposal) -> Mapping[str, str] | None:
    """Return the labels of the namespace that the object is in, or None if there is no such namespace."""
    namespace = proposal.get(record.Key("namespaces", "", proposal.write.namespace))
    return None if namespace is None else namespace.value["metadata"].get("labels") or _NO_LABELS


def _changes_images(spec: Document, old: Document) -> bool:
    """Return True if a pod gets another image or one more container."""
    for field in ("containers", "initContainers"):
        if _images(spec, field) != _images(old, field):
            return True
    before = {each.get("name"): each.get("image") for each in old.get("ephemeralContainers") or ()}
    added = spec.get("ephemeralContainers") or ()
    return any(each.get("name") not in before or each.get("image") != before[each.get("name")] for each in added)


def _images(spec: Document, field: str) -> list[str]:
    return [container.get("image", "") for container in spec.get(field) or ()]


def _invalid(proposal: Proposal, errors: tuple[fielderror.FieldError, ...]) -> status.StatusError:
    resource = proposal.write.resource
    return status.invalid(resource.kind, proposal.subject.metadata["name"], group=resource.group, causes=errors)


def _join(errors: tuple[fielderror.FieldError, ...]) -> str:
    """Return errors as Go shows an aggregate of them."""
    texts = list(dict.fromkeys(map(str, errors)))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
