"""The phases of a call in their order, and the steps that make them up.

Every call goes through the same phases. A phase is a tuple of named steps. A step that refuses the call raises a
Status. Steps work on a proposal, and the store is written after the last of them, so a refused call changes nothing.
:mod:`drachma.server.pipeline.standardphases` lists the steps of drachma's API server.

============  ==================================================================================
authenticate  identify the user, from the credentials that the transport carries
authorise     check the user's permission (:mod:`drachma.server.access.authorization`)
decode        read the body, or apply the patch to the stored object, and set defaults
identity      check namespace, name and preconditions
ownership     record which manager owns the fields that the client wrote
mutate        run admission plugins that complete or refuse the object
prepare       set the fields that only the server sets
validate      apply the rules of the kind
check         run admission plugins that only refuse
quota         charge quotas
store         commit everything or nothing; start again at decode if another write was faster
answer        encode the result in the form that the client negotiated
audit         record the user, the action and the result
============  ==================================================================================

A step names the operations and the resources that concern it, and is skipped for all others. Steps of admission have
the names of upstream's plugins and run in upstream's order.
"""

import enum
import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from drachma.server import status
from drachma.server.access import authorization
from drachma.server.admission.proposal import Proposal, Removal
from drachma.server.calls.call import Call, Origin
from drachma.server.pipeline.answer import Answer
from drachma.server.surface.strategy import Write

Finish: TypeAlias = Callable[[Answer | status.StatusError], None]
"""Receives the result of a call."""


class Auditor(Protocol):
    """Records requests and their results."""

    def call(self, call: Call) -> Finish | None:
        """Record the start of a call; return the function that records its result, or None to ignore the call."""

    def request(
        self,
        attributes: authorization.Attributes,
        end: int | status.StatusError,
        *,
        origin: Origin,
        user_agent: str,
        annotations: Mapping[str, str],
    ) -> None:
        """Record a request that did not become a call, with its status code or refusal.

        The user of a request that could not be authenticated has no name.
        """

    async def flush(self) -> None:
        """Return once all events so far are in the log."""


class Operation(enum.Enum):
    """The effect of a write on the stored object.

    STATUS is an update through any subresource that carries the object's own kind. UPSERT is an update or apply that
    creates the object. BIND has its own operation because only some steps of an update apply to it. An eviction is a
    DELETE. FINALIZERS changes only well-known finalizers: no rule of a kind and no admission plugin depends on these,
    so only preconditions and field ownership apply.
    """

    CREATE = "create"
    UPDATE = "update"
    STATUS = "status"
    UPSERT = "upsert"
    BIND = "bind"
    FINALIZERS = "finalizers"
    DELETE = "delete"

    __hash__ = object.__hash__  # Every write looks up its steps. Enum would hash the name each time.


STORES: Final = frozenset(set(Operation) - {Operation.DELETE})
"""Operations that leave an object in the store."""

WRITES: Final = STORES - {Operation.BIND, Operation.FINALIZERS}
"""Operations that concern the content of an object."""

_ALL: Final[frozenset[str]] = frozenset()


COPIES_NAMES: Final = None
"""Declaration of a step that copies names and checks their form, and does nothing else with them."""


def read_names(_write: Write) -> bool:
    """Declare a step that reads the names in every object."""
    return True


class Step(NamedTuple):
    """One step of a write.

    ``of`` names resources by group and plural, in all their versions; an empty set means all resources. A step that
    ``needs_cluster`` reads other objects, and is left out where the cluster is not known.

    ``reads_names`` returns True if the result of a write may depend on the names and uids in its object, apart from
    their form, in other ways than by copying them (:mod:`drachma.server.pipeline.stencil`). A step that says nothing
    is taken to read them, so that forgetting it costs speed and never makes a decision wrong; one that only copies
    them says :data:`COPIES_NAMES`. ``read_version`` returns the version of other objects that the result depends on,
    apart from the namespace.
    """

    name: str
    run: Callable[[Proposal], None]
    on: frozenset[Operation] = WRITES
    of: frozenset[str] = _ALL
    needs_cluster: bool = False
    reads_names: Callable[[Write], bool] | None = read_names
    read_version: Callable[[], int] | None = None


class RemovalStep(NamedTuple):
    """One step of a deletion; ``of`` as in :class:`Step`."""

    name: str
    run: Callable[[Removal], None]
    on: frozenset[Operation] = frozenset({Operation.DELETE})
    of: frozenset[str] = _ALL


class Phase(NamedTuple):
    """A named group of steps."""

    name: str
    steps: tuple[Step | RemovalStep, ...] = ()


_WriteT = TypeVar("_WriteT")
_ResultT = TypeVar("_ResultT")


class _Selection(Generic[_WriteT, _ResultT]):
    """The steps of one operation, by resource: ``common`` for resources that no step names, ``special`` for others."""

    def __init__(self, steps: Sequence[tuple[Callable[[_WriteT], _ResultT], frozenset[str]]]) -> None:
        self.common: tuple[Callable[[_WriteT], _ResultT], ...] = tuple(
            [run for run, resources in steps if not resources]
        )
        self.special: Mapping[str, tuple[Callable[[_WriteT], _ResultT], ...]] = {
            key: tuple([run for run, resources in steps if not resources or key in resources])
            for key in frozenset[str]().union(*(resources for _, resources in steps))
        }


class Phases:
    """All phases between a call and the store. ``str`` prints them as a table."""

    def __init__(
        self, phases: Sequence[Phase], *, authoriser: authorization.Authoriser, audit: tuple[Auditor, ...] = ()
    ) -> None:
        self.authoriser: Final = authoriser
        self.audit: Final = audit
        self.phases: Final = tuple(phases)
        steps = [step for phase in phases for step in phase.steps]
        self._removal = _Selection([(step.run, step.of) for step in steps if isinstance(step, RemovalStep)])
        self._write = {
            operation: _Selection(
                [(step.run, step.of) for step in steps if isinstance(step, Step) and operation in step.on]
            )
            for operation in STORES
        }
        self._versions: dict[Operation, _Selection[Write, int]] = {
            operation: _Selection(
                [
                    (functools.partial(_ignore_write, step.read_version), step.of)
                    for step in steps
                    if isinstance(step, Step) and step.read_version is not None and operation in step.on
                ]
            )
            for operation in STORES
        }
        self._name_readers: dict[Operation, _Selection[Write, bool]] = {
            operation: _Selection(
                [
                    (step.reads_names, step.of)
                    for step in steps
                    if isinstance(step, Step) and step.reads_names is not None and operation in step.on
                ]
            )
            for operation in STORES
        }

    def without_cluster(self) -> "Phases":
        """Return the phases for objects whose cluster is not known."""
        alone = [
            Phase(phase.name, tuple(step for step in phase.steps if isinstance(step, Step) and not step.needs_cluster))
            for phase in self.phases
        ]
        return Phases(alone, authoriser=self.authoriser, audit=self.audit)

    def without_plugins(self, names: Collection[str]) -> "Phases":
        """Return the phases without the named admission plugins."""
        enabled = [
            Phase(phase.name, tuple(step for step in phase.steps if step.name not in names)) for phase in self.phases
        ]
        return Phases(enabled, authoriser=self.authoriser, audit=self.audit)

    def run(self, operation: Operation, proposal: Proposal) -> None:
        """Run all steps of an operation on an object; the first step that refuses it raises a Status."""
        selection = self._write[operation]
        for step in selection.special.get(proposal.write.resource.group_resource, selection.common):
            step(proposal)

    def reads_names(self, operation: Operation, write: Write) -> bool:
        """Return True if a step of an operation depends on names in the object."""
        selection = self._name_readers[operation]
        steps = selection.special.get(write.resource.group_resource, selection.common)
        return any(step(write) for step in steps)

    def read_versions(self, operation: Operation, write: Write) -> tuple[int, ...]:
        """Return the versions of other objects that the steps of an operation depend on."""
        selection = self._versions[operation]
        steps = selection.special.get(write.resource.group_resource, selection.common)
        return tuple([step(write) for step in steps])

    def run_removal(self, removal: Removal) -> None:
        """Run all steps of a deletion; the first step that refuses it raises a Status."""
        selection = self._removal
        for step in selection.special.get(removal.write.resource.group_resource, selection.common):
            step(removal)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield from _lines("authorise", [(self.authoriser.name, "")])
        for phase in self.phases:
            yield from _lines(phase.name, [(step.name, _operations(step)) for step in phase.steps])
        yield from _lines("audit", [(type(auditor).__name__, "") for auditor in self.audit])


def _ignore_write(read_version: Callable[[], int], _write: Write) -> int:
    return read_version()


def _lines(phase: str, steps: Sequence[tuple[str, str]]) -> Iterator[str]:
    for position, (name, operations) in enumerate(steps or [("-", "")]):
        yield f"{'' if position else phase:10} {name:28} {operations}".rstrip()


def _operations(step: Step | RemovalStep) -> str:
    operations = ", ".join(operation.value for operation in Operation if operation in step.on)
    return f"{operations} of {', '.join(sorted(step.of))}" if step.of else operations
