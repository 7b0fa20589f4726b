"""The steps of drachma's API server, phase by phase, in upstream's order."""

import functools
import random
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, TypedDict

from drachma.api import gates as feature
from drachma.server.access import authorization
from drachma.server.admission import (
    certificaterequests,
    escalation,
    hooks,
    limitranger,
    mutatingadmissionpolicy,
    mutatingadmissionwebhook,
    mutationchain,
    namespacelifecycle,
    newobjects,
    nodedeclaredfeatures,
    noderestriction,
    parameteraccess,
    pluginnames,
    podspecs,
    priority,
    resourcequota,
    runtimeclass,
    serviceaccount,
    serviceaddresses,
    validatingadmissionpolicy,
    validatingadmissionwebhook,
)
from drachma.server.admission.podsecurity import configuration as security_configuration
from drachma.server.admission.podsecurity import plugin as podsecurity
from drachma.server.admission.proposal import Proposal
from drachma.server.pipeline import fieldowners, identity, preconditions
from drachma.server.pipeline.phases import (
    COPIES_NAMES,
    STORES,
    Auditor,
    Operation,
    Phase,
    Phases,
    RemovalStep,
    Step,
    read_names,
)
from drachma.server.reads.reader import Reader
from drachma.server.surface import verbs
from drachma.server.surface.strategy import Write
from drachma.values import serviceranges

_NEW: Final = frozenset({Operation.CREATE, Operation.UPSERT})
_CHANGES: Final = frozenset({Operation.UPDATE, Operation.STATUS})
_PRECONDITIONED: Final = _CHANGES | {Operation.FINALIZERS}
_NAMED: Final = _CHANGES | {Operation.UPSERT}
_WHOLE: Final = _NEW | {Operation.UPDATE}
_RESIZING: Final = _NEW | {Operation.STATUS}
"""Operations that can change the resources a pod requests; a pod is resized through a subresource."""
_CREATE: Final = frozenset({Operation.CREATE})
_UPDATE: Final = frozenset({Operation.UPDATE})
_STATUS: Final = frozenset({Operation.STATUS})
_UPSERT: Final = frozenset({Operation.UPSERT})


def make(
    store: Reader,
    *,
    authoriser: authorization.Authoriser,
    gates: feature.Gates,
    rng: random.Random,
    disabled_plugins: Collection[str] = pluginnames.PLUGINS,
    pod_security: security_configuration.Configuration = security_configuration.STANDARD,
    audit: tuple[Auditor, ...] = (),
    functions: Sequence[hooks.Hook] = (),
    service_ranges: serviceranges.ServiceRanges = serviceranges.DEFAULT,
) -> Phases:
    """Return the phases of drachma's API server, by default without the plugins that need controllers.

    ``functions`` are hooks in the same process. They run before the webhooks that clients have registered.
    """
    admission = _Admission(store, authoriser, gates=gates, disabled_plugins=disabled_plugins, functions=functions)
    checks = (
        *_check_deletions_and_upserts(authoriser),
        *admission.check_pods(),
        *_check_pod_security(podsecurity.PodSecurity(pod_security)),
        *admission.check_priority_classes(),
        *_check_certificates(authoriser),
        *admission.check_runtime_classes(),
        *_check_node_features(nodedeclaredfeatures.NodeDeclaredFeatureValidator(store, gates)),
        *admission.check_extensions(),
    )
    phases = Phases(
        (
            Phase("identity", _IDENTITY),
            Phase("ownership", _OWNERSHIP),
            Phase("mutate", (*admission.mutate(), *admission.mutate_by_extensions(), *_check_roles(store, authoriser))),
            Phase("prepare", _prepare(identity.NewIdentity(rng))),
            Phase("validate", _validate(parameteraccess.ParameterAccess(store, authoriser))),
            Phase("check", checks),
            Phase("quota", _charge(resourcequota.ResourceQuota(store, gates), service_ranges)),
        ),
        authoriser=authoriser,
        audit=audit,
    )
    return phases.without_plugins(disabled_plugins) if disabled_plugins else phases


_IDENTITY: Final = (
    Step("namespace", identity.place, reads_names=COPIES_NAMES),
    Step("name", identity.check_name, on=_NAMED, reads_names=COPIES_NAMES),
    Step("owner references", identity.merge_owners, reads_names=COPIES_NAMES),
    Step("preconditions", preconditions.check, on=_PRECONDITIONED, reads_names=COPIES_NAMES),
    Step("absence", preconditions.check_absence, on=_UPSERT, reads_names=COPIES_NAMES),
    Step("nothing there", identity.drop_version, on=_UPSERT, reads_names=COPIES_NAMES),
    Step("system fields", identity.reset, on=_NEW, reads_names=COPIES_NAMES),
)

_OWNERSHIP: Final = (
    Step("readable managed fields", fieldowners.drop_unreadable, reads_names=COPIES_NAMES),
    Step("owner of all", fieldowners.own_created, on=_NEW, reads_names=COPIES_NAMES),
    Step("owner of changes", fieldowners.own_updated, on=_PRECONDITIONED, reads_names=COPIES_NAMES),
)


class _Admission:
    """Admission plugins that have steps in more than one phase, and the extensions of users."""

    def __init__(
        self,
        store: Reader,
        authoriser: authorization.Authoriser,
        *,
        gates: feature.Gates,
        disabled_plugins: Collection[str],
        functions: Sequence[hooks.Hook],
    ) -> None:
        self._store = store
        self._gates = gates
        self._functions = functions
        self._has_accounts = pluginnames.ACCOUNTS not in disabled_plugins
        self._accounts = serviceaccount.ServiceAccount(store)
        self._limits = limitranger.LimitRanger(store)
        self._priorities = priority.Priority(store, gates)
        self._runtime_classes = runtimeclass.RuntimeClass(store)
        self._restriction = noderestriction.NodeRestriction(store, authoriser)
        self._mutating_webhooks = mutatingadmissionwebhook.MutatingAdmissionWebhook(store, authoriser)
        self._mutations = mutationchain.MutationChain(
            mutatingadmissionpolicy.MutatingAdmissionPolicy(store, authoriser),
            self._mutating_webhooks,
            again=self._complete_again,
        )
        self._policies = validatingadmissionpolicy.ValidatingAdmissionPolicy(store, authoriser)
        self._webhooks = validatingadmissionwebhook.ValidatingAdmissionWebhook(store, authoriser)

    def mutate(self) -> Iterator[Step | RemovalStep]:
        """Yield the steps of the server's own plugins that complete or refuse an object."""
        store, pods = self._store, podspecs.PODS
        lifecycle, priorities = namespacelifecycle.NamespaceLifecycle(store), self._priorities
        storage_classes = newobjects.DefaultStorageClass(store)
        yield Step("NamespaceLifecycle", lifecycle.admit, on=_NEW, needs_cluster=True, reads_names=COPIES_NAMES)
        yield RemovalStep("NamespaceLifecycle", lifecycle.admit_removal, of=namespacelifecycle.KINDS)
        yield Step(
            "LimitRanger",
            self._limits.admit,
            on=_RESIZING,
            of=pods,
            needs_cluster=True,
            reads_names=self._limits.has_ranges,
        )
        yield Step("default account", serviceaccount.name_account, on=_NEW, of=pods, reads_names=COPIES_NAMES)
        yield Step(
            pluginnames.ACCOUNTS,
            self._accounts.admit,
            on=_NEW,
            of=pods,
            needs_cluster=True,
            read_version=self._accounts.read_version,
            reads_names=COPIES_NAMES,
        )
        kinds = noderestriction.KINDS
        yield Step(
            "NodeRestriction", self._restriction.admit, on=STORES, of=kinds, reads_names=noderestriction.concerns
        )
        yield RemovalStep("NodeRestriction", self._restriction.admit_removal, of=noderestriction.KINDS)
        version = priorities.read_version
        yield Step(
            "Priority",
            priorities.admit,
            on=_NEW,
            of=pods,
            needs_cluster=True,
            read_version=version,
            reads_names=COPIES_NAMES,
        )
        yield Step("Priority", priorities.admit_group, on=_NEW, of=priority.ALL_GROUPS, needs_cluster=True)
        yield Step("Priority", priorities.admit_update, on=_UPDATE, of=pods, reads_names=COPIES_NAMES)
        yield Step("DefaultTolerationSeconds", newobjects.add_tolerations, on=_WHOLE, of=pods, reads_names=COPIES_NAMES)
        yield Step(pluginnames.NODE_TAINTS, newobjects.add_not_ready_taint, on=_NEW, of=newobjects.NODES)
        claims = newobjects.VOLUME_CLAIMS
        yield Step("DefaultStorageClass", storage_classes.admit, on=_NEW, of=claims, needs_cluster=True)
        yield Step(pluginnames.STORAGE_IN_USE, newobjects.add_storage_finalizer, on=_NEW, of=newobjects.PROTECTED)
        if self._gates.on(feature.Gate.GENERIC_WORKLOAD):
            yield Step("PodGroupProtection", newobjects.add_group_finalizer, on=_NEW, of=priority.POD_GROUPS)
        runtimes = self._runtime_classes
        version = runtimes.read_version
        yield Step(
            "RuntimeClass",
            runtimes.admit,
            on=_NEW,
            of=pods,
            needs_cluster=True,
            read_version=version,
            reads_names=COPIES_NAMES,
        )

    def mutate_by_extensions(self) -> Iterator[Step | RemovalStep]:
        """Yield the steps of hooks, policies and webhooks that change an object."""
        for hook in self._functions:
            if hook.mutate is not None:
                operations = _WHOLE if hook.mutates_updates else _NEW
                mutate = functools.partial(hooks.mutate, hook, self._store)
                yield Step(hook.name, mutate, on=operations, of=hook.of, **_name_facts(hook))
        mutations = self._mutations
        yield Step("MutationChain", mutations.admit, on=STORES, needs_cluster=True, reads_names=mutations.concerns)
        yield RemovalStep("MutatingAdmissionWebhook", self._mutating_webhooks.admit_removal)

    def check_pods(self) -> Iterator[Step]:
        pods, limits = podspecs.PODS, self._limits
        yield Step(
            "LimitRanger", limits.validate, on=_RESIZING, of=pods, needs_cluster=True, reads_names=limits.has_ranges
        )
        yield Step("LimitRanger", limits.validate, on=_WHOLE, of=limitranger.VOLUME_CLAIMS, needs_cluster=True)
        yield Step(
            pluginnames.ACCOUNTS,
            self._accounts.validate,
            on=_NEW,
            of=pods,
            needs_cluster=True,
            reads_names=COPIES_NAMES,
        )

    def check_priority_classes(self) -> Iterator[Step | RemovalStep]:
        classes = priority.CLASSES
        yield Step("Priority", self._priorities.validate_class, on=_WHOLE, of=classes, needs_cluster=True)
        yield RemovalStep("Priority", self._priorities.validate_removal, of=classes)

    def check_runtime_classes(self) -> Iterator[Step]:
        yield Step(
            "RuntimeClass",
            self._runtime_classes.validate,
            on=_NEW,
            of=podspecs.PODS,
            needs_cluster=True,
            reads_names=COPIES_NAMES,
        )

    def check_extensions(self) -> Iterator[Step | RemovalStep]:
        """Yield the steps of hooks, policies and webhooks that only refuse an object."""
        for hook in self._functions:
            if hook.validate is not None:
                validate = functools.partial(hooks.validate, hook, self._store)
                yield Step(hook.name, validate, of=hook.of, **_name_facts(hook))
        policies, webhooks = self._policies, self._webhooks
        yield Step(
            "ValidatingAdmissionPolicy",
            policies.validate,
            on=STORES,
            needs_cluster=True,
            reads_names=policies.concerns,
        )
        yield RemovalStep("ValidatingAdmissionPolicy", self._policies.validate_removal)
        yield Step(
            "ValidatingAdmissionWebhook",
            webhooks.validate,
            on=STORES,
            needs_cluster=True,
            reads_names=webhooks.concerns,
        )
        yield RemovalStep("ValidatingAdmissionWebhook", self._webhooks.validate_removal)

    def _complete_again(self, proposal: Proposal) -> None:
        """Complete a new pod again after policies or webhooks have changed it."""
        if proposal.stored is None and proposal.write.resource.group_resource in podspecs.PODS:
            serviceaccount.name_account(proposal)
            if self._has_accounts:
                self._accounts.admit(proposal)
            self._priorities.admit(proposal)
            newobjects.add_tolerations(proposal)


class _NameFacts(TypedDict):
    reads_names: Callable[[Write], bool] | None
    read_version: Callable[[], int] | None


def _name_facts(hook: hooks.Hook) -> _NameFacts:
    """Return what the step of a hook says about names in objects."""
    return {"reads_names": read_names if hook.reads_names else COPIES_NAMES, "read_version": hook.read_version}


def _check_roles(store: Reader, authoriser: authorization.Authoriser) -> Iterator[Step]:
    """Yield the steps against escalation, and the step that must see the object after all mutations."""
    escalations = escalation.Escalation(store, authoriser)
    yield Step("escalation", escalations.admit_role, on=_WHOLE, of=escalation.ROLES)
    yield Step("escalation", escalations.admit_binding, on=_WHOLE, of=escalation.BINDINGS)
    yield Step("times of owners", fieldowners.keep_times, on=_CHANGES, reads_names=COPIES_NAMES)


def _prepare(new_identity: identity.NewIdentity) -> tuple[Step, ...]:
    return (
        Step("generated name", new_identity.name, on=_CREATE, reads_names=COPIES_NAMES),
        Step("uid and time", new_identity.identify, on=_NEW, reads_names=COPIES_NAMES),
        Step("carry over", identity.carry_over, on=_CHANGES, reads_names=COPIES_NAMES),
    )


def _validate(parameters: parameteraccess.ParameterAccess) -> tuple[Step, ...]:
    return (
        Step("kind", _create, on=_NEW, reads_names=COPIES_NAMES),
        Step("kind", _update, on=_UPDATE, reads_names=COPIES_NAMES),
        Step("kind", _update_status, on=_STATUS, reads_names=COPIES_NAMES),
        Step("leave to read parameters", parameters.check_policy, on=_WHOLE, of=parameteraccess.POLICIES),
        Step("leave to read parameters", parameters.check_binding, on=_WHOLE, of=parameteraccess.BINDINGS),
    )


def _create(proposal: Proposal) -> None:
    proposal.strategy.create(proposal.subject, proposal.write)


def _update(proposal: Proposal) -> None:
    assert proposal.old is not None, "the step that carries over fields has loaded the stored object"
    proposal.strategy.update(proposal.subject, proposal.old, proposal.write)


def _update_status(proposal: Proposal) -> None:
    assert proposal.old is not None, "the step that carries over fields has loaded the stored object"
    proposal.strategy.update_status(proposal.subject, proposal.old, proposal.write)


def _check_deletions_and_upserts(authoriser: authorization.Authoriser) -> Iterator[Step | RemovalStep]:
    yield RemovalStep("preconditions", preconditions.check_removal)
    yield Step("leave to create", functools.partial(_require_create, authoriser), on=_UPSERT)


def _require_create(authoriser: authorization.Authoriser, proposal: Proposal) -> None:
    """Refuse an update or apply that creates an object if its user may not create objects of the kind."""
    write = proposal.write
    attributes = authorization.Attributes(
        user=write.user,
        verb=verbs.CREATE,
        group=write.resource.group,
        version=write.version,
        resource=write.resource.plural,
        namespace=write.namespace,
        name=write.name,
    )
    authorization.require(authoriser, attributes)


def _check_pod_security(security: podsecurity.PodSecurity) -> Iterator[Step]:
    workloads, namespaces = podsecurity.WORKLOADS, podsecurity.NAMESPACES
    yield Step(
        pluginnames.POD_SECURITY, security.validate_pod, of=podspecs.PODS, needs_cluster=True, reads_names=COPIES_NAMES
    )
    yield Step(pluginnames.POD_SECURITY, security.validate_workload, on=_WHOLE, of=workloads, needs_cluster=True)
    yield Step(pluginnames.POD_SECURITY, security.validate_namespace, on=_WHOLE, of=namespaces, needs_cluster=True)


def _check_certificates(authoriser: authorization.Authoriser) -> Iterator[Step]:
    approvals = certificaterequests.CertificateApproval(authoriser)
    signings = certificaterequests.CertificateSigning(authoriser)
    requests, restrict = certificaterequests.REQUESTS, certificaterequests.restrict_subject
    yield Step("CertificateApproval", approvals.validate, on=_STATUS, of=requests)
    yield Step("CertificateSigning", signings.validate, on=_STATUS, of=requests)
    yield Step("CertificateSubjectRestriction", restrict, on=_NEW, of=requests)


def _check_node_features(features: nodedeclaredfeatures.NodeDeclaredFeatureValidator) -> Iterator[Step]:
    slices = nodedeclaredfeatures.SLICES
    yield Step("NodeDeclaredFeatureValidator", features.validate, on=_WHOLE, of=slices, needs_cluster=True)
    pods = podspecs.PODS
    yield Step(
        "NodeDeclaredFeatureValidator",
        features.validate_pod,
        on=_UPDATE | _STATUS,
        of=pods,
        needs_cluster=True,
        reads_names=nodedeclaredfeatures.concerns,
    )


def _charge(quotas: resourcequota.ResourceQuota, ranges: serviceranges.ServiceRanges) -> tuple[Step, ...]:
    services = serviceaddresses.SERVICES
    return (
        Step(
            "addresses",
            functools.partial(serviceaddresses.reserve, ranges=ranges),
            on=_WHOLE,
            of=services,
            needs_cluster=True,
        ),
        Step("ResourceQuota", quotas.charge, on=_NEW, needs_cluster=True, reads_names=quotas.concerns),
        Step(
            "ResourceQuota",
            quotas.charge,
            on=_CHANGES,
            of=resourcequota.CHANGING,
            needs_cluster=True,
            reads_names=quotas.concerns,
        ),
    )
