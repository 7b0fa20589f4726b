"""The phases of a call, in order, and what is done in each of them: all of it is in :func:`standard`.

Every call goes through the same phases, whoever makes it, and a phase is a tuple of named steps. A step that refuses
raises a Status, and nothing is left behind: what the steps look at and change is not in the store before the last of
them is through.

============  ========================================================================================
authenticate  who makes the call: by the door that it comes through, which knows what its clients show
authorise     may this user do this at all (:mod:`drachma.server.access.authorization`)
decode        the object that is wanted: the body, or the stored object with a patch, and its defaults
identity      is it in the right place, under the right name, and the one that the client means
ownership     who owns which field, of those that the client wrote
mutate        admission that completes it, or refuses it
prepare       what the server itself says about it
validate      the rules of its kind
check         admission that only refuses
quota         is there room for it
store         written, all or nothing; from decode on again where another write came first
answer        by the door, in the form that the client wants
audit         who did what, and how it ended
============  ========================================================================================

Steps say on which operations and to which kinds they have something to do, and are left out on all others. Those of
admission have the names of upstream's plugins, and their order.
"""

import enum
import functools
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from drachma.api import gates as feature
from drachma.server import status
from drachma.server.access import authorization
from drachma.server.admission import (
    certificaterequests,
    defaultstorageclass,
    defaulttolerationseconds,
    escalation,
    hooks,
    limitranger,
    mutatingadmissionpolicy,
    mutatingadmissionwebhook,
    mutationchain,
    namespacelifecycle,
    nodedeclaredfeatures,
    noderestriction,
    parameteraccess,
    podspecs,
    priority,
    resourcequota,
    runtimeclass,
    serviceaccount,
    serviceaddresses,
    storageprotection,
    taintnodesbycondition,
    validatingadmissionpolicy,
    validatingadmissionwebhook,
)
from drachma.server.admission.podsecurity import configuration as security_configuration
from drachma.server.admission.podsecurity import plugin as podsecurity
from drachma.server.admission.proposal import Proposal, Removal
from drachma.server.calls.call import Call, Origin
from drachma.server.pipeline import fieldowners, identity, kindrules, preconditions, upsert
from drachma.server.pipeline.answer import Answer
from drachma.server.reads.reader import Reader

ACCOUNTS: Final = "ServiceAccount"
NODE_TAINTS: Final = "TaintNodesByCondition"

STORAGE_IN_USE: Final = "StorageObjectInUseProtection"

PLUGINS: Final = (ACCOUNTS, NODE_TAINTS, STORAGE_IN_USE)
"""The plugins that can be left out, as they need controllers: who makes accounts, takes taints off, lets volumes go."""

POD_SECURITY: Final = "PodSecurity"

DISABLEABLE: Final = (*PLUGINS, POD_SECURITY)
"""Plugins that can be disabled."""

Finish: TypeAlias = Callable[[Answer | status.StatusError], None]
"""Is told how a call ended."""


class Auditor(Protocol):
    """Notes who did what, and how it ended."""

    def call(self, call: Call) -> Finish | None:
        """Notes that a call has come; what is returned is to be told how it ends. None where nothing is noted."""

    def request(
        self,
        attributes: authorization.Attributes,
        end: int | status.StatusError,
        *,
        origin: Origin,
        user_agent: str,
        annotations: Mapping[str, str],
    ) -> None:
        """Notes a request of which no call was made, with the code of its answer or the refusal.

        Nobody, a user without a name, is who could not be authenticated.
        """


class Operation(enum.Enum):
    """What a write does to what is stored.

    A change of the status is one through any subresource that carries the object's own kind. An upsert is an update of
    nothing, which makes a new object. To bind a pod is an operation of its own: steps may refuse it, and the rest of
    what is done to updates is not done to it. To evict a pod is a deletion. A change of nothing but finalizers,
    to those that are well known, cannot break a rule of the kind or concern admission: only the version that is meant
    and the owners of fields are looked at.
    """

    CREATE = "create"
    UPDATE = "update"
    STATUS = "status"
    UPSERT = "upsert"
    BIND = "bind"
    FINALIZERS = "finalizers"
    DELETE = "delete"

    __hash__ = object.__hash__  # There is one of each; every write looks its steps up, and names would be hashed anew.


_STORES: Final = frozenset(set(Operation) - {Operation.DELETE})
_WRITES: Final = _STORES - {Operation.BIND, Operation.FINALIZERS}
_NEW: Final = frozenset({Operation.CREATE, Operation.UPSERT})
_CHANGES: Final = frozenset({Operation.UPDATE, Operation.STATUS})
_MEANT: Final = _CHANGES | {Operation.FINALIZERS}
_NAMED: Final = _CHANGES | {Operation.UPSERT}
_WHOLE: Final = _NEW | {Operation.UPDATE}
_ASKING: Final = _NEW | {Operation.STATUS}
"""What can change how much a pod asks for: it may be resized through a subresource."""
_CREATE: Final = frozenset({Operation.CREATE})
_UPDATE: Final = frozenset({Operation.UPDATE})
_STATUS: Final = frozenset({Operation.STATUS})
_UPSERT: Final = frozenset({Operation.UPSERT})
_ALL: Final[frozenset[str]] = frozenset()


class Step(NamedTuple):
    """Something that is done to an object that is to be stored.

    ``of`` has resources by group and name, all versions of them; none are all resources.

    A step that ``needs_cluster`` asks for other objects, and cannot say anything where nobody knows them.
    """

    name: str
    run: Callable[[Proposal], None]
    on: frozenset[Operation] = _WRITES
    of: frozenset[str] = _ALL
    needs_cluster: bool = False


class RemovalStep(NamedTuple):
    """Something that is looked at before an object is deleted."""

    name: str
    run: Callable[[Removal], None]
    on: frozenset[Operation] = frozenset({Operation.DELETE})
    of: frozenset[str] = _ALL


class Phase(NamedTuple):
    """Steps that belong together."""

    name: str
    steps: tuple[Step | RemovalStep, ...] = ()


_WriteT = TypeVar("_WriteT")


class _Choice(Generic[_WriteT]):
    """What is done on an operation: to kinds that no step names, and to those that one does."""

    def __init__(self, steps: Sequence[tuple[Callable[[_WriteT], None], frozenset[str]]]) -> None:
        self.common: tuple[Callable[[_WriteT], None], ...] = tuple([run for run, of in steps if not of])
        self.special: Mapping[str, tuple[Callable[[_WriteT], None], ...]] = {
            key: tuple([run for run, of in steps if not of or key in of])
            for key in frozenset[str]().union(*(of for _, of in steps))
        }


class Phases:
    """All phases between a call and the store. ``str`` shows them."""

    def __init__(
        self, phases: Sequence[Phase], *, authoriser: authorization.Authoriser, audit: tuple[Auditor, ...] = ()
    ) -> None:
        self.authoriser: Final = authoriser
        self.audit: Final = audit
        self.phases: Final = tuple(phases)
        steps = [step for phase in phases for step in phase.steps]
        self._removal = _Choice([(step.run, step.of) for step in steps if isinstance(step, RemovalStep)])
        self._write = {
            operation: _Choice(
                [(step.run, step.of) for step in steps if isinstance(step, Step) and operation in step.on]
            )
            for operation in _STORES
        }

    def without_cluster(self) -> "Phases":
        """The same for objects of which one does not know what cluster they are for."""
        alone = [
            Phase(phase.name, tuple(step for step in phase.steps if isinstance(step, Step) and not step.needs_cluster))
            for phase in self.phases
        ]
        return Phases(alone, authoriser=self.authoriser, audit=self.audit)

    def without_plugins(self, names: Collection[str]) -> "Phases":
        """The same without some plugins of admission."""
        rest = [
            Phase(phase.name, tuple(step for step in phase.steps if step.name not in names)) for phase in self.phases
        ]
        return Phases(rest, authoriser=self.authoriser, audit=self.audit)

    def run(self, operation: Operation, proposal: Proposal) -> None:
        """Takes an object through all steps of an operation; the first that refuses it raises a Status."""
        choice = self._write[operation]
        for step in choice.special.get(proposal.write.resource.group_resource, choice.common):
            step(proposal)

    def run_removal(self, removal: Removal) -> None:
        """The same for an object that is to be deleted."""
        choice = self._removal
        for step in choice.special.get(removal.write.resource.group_resource, choice.common):
            step(removal)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield from _lines("authorise", [(self.authoriser.name, "")])
        for phase in self.phases:
            yield from _lines(phase.name, [(step.name, _operations(step)) for step in phase.steps])
        yield from _lines("audit", [(type(each).__name__, "") for each in self.audit])


def _lines(phase: str, steps: Sequence[tuple[str, str]]) -> Iterator[str]:
    for position, (name, operations) in enumerate(steps or [("-", "")]):
        yield f"{'' if position else phase:10} {name:28} {operations}".rstrip()


def _operations(step: Step | RemovalStep) -> str:
    operations = ", ".join(each.value for each in Operation if each in step.on)
    return f"{operations} of {', '.join(sorted(step.of))}" if step.of else operations


def standard(
    store: Reader,
    *,
    authoriser: authorization.Authoriser,
    gates: feature.Gates,
    chance: random.Random,
    disabled_plugins: Collection[str] = PLUGINS,
    pod_security: security_configuration.Configuration = security_configuration.STANDARD,
    audit: tuple[Auditor, ...] = (),
    functions: Sequence[hooks.Hook] = (),
) -> Phases:
    """The phases of drachma's API server, by default without plugins that need controllers.

    ``functions`` are asked where webhooks are, before those that clients have registered.
    """
    accounts = serviceaccount.ServiceAccount(store)
    classes = runtimeclass.RuntimeClass(store)
    storage_classes = defaultstorageclass.DefaultStorageClass(store)
    lifecycle = namespacelifecycle.NamespaceLifecycle(store)
    priorities = priority.Priority(store)
    features = nodedeclaredfeatures.NodeDeclaredFeatureValidator(store, gates)
    limits = limitranger.LimitRanger(store)
    quotas = resourcequota.ResourceQuota(store)
    mutating_webhooks = mutatingadmissionwebhook.MutatingAdmissionWebhook(store, authoriser)
    webhooks = validatingadmissionwebhook.ValidatingAdmissionWebhook(store, authoriser)
    policies = validatingadmissionpolicy.ValidatingAdmissionPolicy(store, authoriser)
    security = podsecurity.PodSecurity(pod_security)

    def look_again(proposal: Proposal) -> None:
        """What is done to pods that were changed on their way, as to new ones."""
        if proposal.stored is None and proposal.write.resource.group_resource in podspecs.PODS:
            serviceaccount.name_account(proposal)
            if ACCOUNTS not in disabled_plugins:
                accounts.admit(proposal)
            priorities.admit(proposal)
            defaulttolerationseconds.admit(proposal)

    mutations = mutationchain.MutationChain(
        mutatingadmissionpolicy.MutatingAdmissionPolicy(store, authoriser), mutating_webhooks, again=look_again
    )
    birth = identity.Birth(chance)
    restriction = noderestriction.NodeRestriction(store, authoriser)
    escalations = escalation.Escalation(store, authoriser)
    parameters = parameteraccess.ParameterAccess(store, authoriser)
    approvals = certificaterequests.CertificateApproval(authoriser)
    signings = certificaterequests.CertificateSigning(authoriser)
    phases = Phases(
        (
            Phase(
                "identity",
                (
                    Step("namespace", identity.place),
                    Step("name", identity.check_name, on=_NAMED),
                    Step("owner references", identity.merge_owners),
                    Step("preconditions", preconditions.check, on=_MEANT),
                    Step("absence", preconditions.check_absence, on=_UPSERT),
                    Step("nothing there", identity.begin_anew, on=_UPSERT),
                    Step("system fields", identity.reset, on=_NEW),
                ),
            ),
            Phase(
                "ownership",
                (
                    Step("readable managed fields", fieldowners.drop_unreadable),
                    Step("owner of all", fieldowners.own_created, on=_NEW),
                    Step("owner of changes", fieldowners.own_updated, on=_MEANT),
                ),
            ),
            Phase(
                "mutate",
                (
                    Step("NamespaceLifecycle", lifecycle.admit, on=_NEW, needs_cluster=True),
                    RemovalStep("NamespaceLifecycle", lifecycle.admit_removal, of=namespacelifecycle.KINDS),
                    Step("LimitRanger", limits.admit, on=_ASKING, of=podspecs.PODS, needs_cluster=True),
                    Step("default account", serviceaccount.name_account, on=_NEW, of=podspecs.PODS),
                    Step(ACCOUNTS, accounts.admit, on=_NEW, of=podspecs.PODS, needs_cluster=True),
                    Step("NodeRestriction", restriction.admit, on=_STORES, of=noderestriction.KINDS),
                    RemovalStep("NodeRestriction", restriction.admit_removal, of=noderestriction.KINDS),
                    Step("Priority", priorities.admit, on=_NEW, of=podspecs.PODS, needs_cluster=True),
                    Step("Priority", priorities.admit_group, on=_NEW, of=priority.POD_GROUPS, needs_cluster=True),
                    Step("Priority", priorities.admit_update, on=_UPDATE, of=podspecs.PODS),
                    Step("DefaultTolerationSeconds", defaulttolerationseconds.admit, on=_WHOLE, of=podspecs.PODS),
                    Step(NODE_TAINTS, taintnodesbycondition.admit, on=_NEW, of=taintnodesbycondition.NODES),
                    Step(
                        "DefaultStorageClass",
                        storage_classes.admit,
                        on=_NEW,
                        of=defaultstorageclass.CLAIMS,
                        needs_cluster=True,
                    ),
                    Step(STORAGE_IN_USE, storageprotection.admit, on=_NEW, of=storageprotection.KINDS),
                    Step("RuntimeClass", classes.admit, on=_NEW, of=podspecs.PODS, needs_cluster=True),
                    *(
                        Step(each.name, functools.partial(hooks.mutate, each, store), on=_NEW, of=each.of)
                        for each in functions
                        if each.mutate is not None
                    ),
                    Step("MutationChain", mutations.admit, on=_STORES, needs_cluster=True),
                    RemovalStep("MutatingAdmissionWebhook", mutating_webhooks.admit_removal),
                    Step("escalation", escalations.admit_role, on=_WHOLE, of=escalation.ROLES),
                    Step("escalation", escalations.admit_binding, on=_WHOLE, of=escalation.BINDINGS),
                    Step("times of owners", fieldowners.keep_times, on=_CHANGES),
                ),
            ),
            Phase(
                "prepare",
                (
                    Step("generated name", birth.name, on=_CREATE),
                    Step("uid and time", birth.identify, on=_NEW),
                    Step("carry over", identity.carry_over, on=_CHANGES),
                ),
            ),
            Phase(
                "validate",
                (
                    Step("kind", kindrules.create, on=_NEW),
                    Step("kind", kindrules.update, on=_UPDATE),
                    Step("kind", kindrules.update_status, on=_STATUS),
                    Step("leave to read parameters", parameters.check_policy, on=_WHOLE, of=parameteraccess.POLICIES),
                    Step("leave to read parameters", parameters.check_binding, on=_WHOLE, of=parameteraccess.BINDINGS),
                ),
            ),
            Phase(
                "check",
                (
                    RemovalStep("preconditions", preconditions.check_removal),
                    Step("leave to create", upsert.Upsert(authoriser).check, on=_UPSERT),
                    Step("LimitRanger", limits.validate, on=_ASKING, of=podspecs.PODS, needs_cluster=True),
                    Step("LimitRanger", limits.validate, on=_WHOLE, of=limitranger.VOLUME_CLAIMS, needs_cluster=True),
                    Step(ACCOUNTS, accounts.validate, on=_NEW, of=podspecs.PODS, needs_cluster=True),
                    Step(POD_SECURITY, security.validate_pod, of=podspecs.PODS, needs_cluster=True),
                    Step(
                        POD_SECURITY,
                        security.validate_workload,
                        on=_WHOLE,
                        of=podsecurity.WORKLOADS,
                        needs_cluster=True,
                    ),
                    Step(
                        POD_SECURITY,
                        security.validate_namespace,
                        on=_WHOLE,
                        of=podsecurity.NAMESPACES,
                        needs_cluster=True,
                    ),
                    Step("Priority", priorities.validate_class, on=_WHOLE, of=priority.CLASSES, needs_cluster=True),
                    RemovalStep("Priority", priorities.validate_removal, of=priority.CLASSES),
                    Step("CertificateApproval", approvals.validate, on=_STATUS, of=certificaterequests.REQUESTS),
                    Step("CertificateSigning", signings.validate, on=_STATUS, of=certificaterequests.REQUESTS),
                    Step(
                        "CertificateSubjectRestriction",
                        certificaterequests.restrict_subject,
                        on=_NEW,
                        of=certificaterequests.REQUESTS,
                    ),
                    Step("RuntimeClass", classes.validate, on=_NEW, of=podspecs.PODS, needs_cluster=True),
                    Step(
                        "NodeDeclaredFeatureValidator",
                        features.validate,
                        on=_WHOLE,
                        of=nodedeclaredfeatures.SLICES,
                        needs_cluster=True,
                    ),
                    *(
                        Step(each.name, functools.partial(hooks.validate, each, store), of=each.of)
                        for each in functions
                        if each.validate is not None
                    ),
                    Step("ValidatingAdmissionPolicy", policies.validate, on=_STORES, needs_cluster=True),
                    RemovalStep("ValidatingAdmissionPolicy", policies.validate_removal),
                    Step("ValidatingAdmissionWebhook", webhooks.validate, on=_STORES, needs_cluster=True),
                    RemovalStep("ValidatingAdmissionWebhook", webhooks.validate_removal),
                ),
            ),
            Phase(
                "quota",
                (
                    Step(
                        "addresses", serviceaddresses.book, on=_WHOLE, of=serviceaddresses.SERVICES, needs_cluster=True
                    ),
                    Step("ResourceQuota", quotas.charge, on=_NEW, needs_cluster=True),
                    Step("ResourceQuota", quotas.charge, on=_CHANGES, of=resourcequota.CHANGING, needs_cluster=True),
                ),
            ),
        ),
        authoriser=authoriser,
        audit=audit,
    )
    return phases.without_plugins(disabled_plugins) if disabled_plugins else phases
