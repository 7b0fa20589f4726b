"""Two runtimes on one node: containers that rules name are simulated, and the others run.

So the controllers of a driver or an operator run as programs, next to workloads that need hardware nobody has here.
"""

import datetime as dt
import enum
import fnmatch
from collections.abc import Sequence, Set
from typing import Final

import msgspec

from drachma import errors
from drachma.api import node
from drachma.node.logs.log import Log
from drachma.node.runtimes import protocol


class RuleKind(enum.StrEnum):
    """What a rule looks at."""

    NAMESPACE = "namespace"
    LABEL = "label"
    IMAGE = "image"


class Rule(msgspec.Struct, frozen=True):
    """Containers of a namespace, of pods with a label, or of images that match a pattern with ``*``."""

    kind: RuleKind
    value: str

    @classmethod
    def parse(cls, text: str) -> "Rule":
        """Parse ``namespace=NAME``, ``label=KEY[=VALUE]`` or ``image=PATTERN``. Raises InvalidValueError."""
        kind, separator, value = text.partition("=")
        if not separator or not value or kind not in set(RuleKind):
            forms = "namespace=NAME, label=KEY[=VALUE] or image=PATTERN"
            raise errors.InvalidValueError(f"--simulate {text!r}: must be {forms}")
        return cls(RuleKind(kind), value)

    def matches(self, work: protocol.Work) -> bool:
        """Return True if the rule names a container."""
        match self.kind:
            case RuleKind.NAMESPACE:
                return work.pod.metadata.namespace == self.value
            case RuleKind.LABEL:
                key, separator, value = self.value.partition("=")
                labels = work.pod.metadata.labels
                return labels.get(key) == value if separator else key in labels
            case RuleKind.IMAGE:
                return fnmatch.fnmatchcase(work.container.image, self.value)


class MixedRuntime:
    """Starts each container in one of two runtimes; see :class:`protocol.Runtime`."""

    def __init__(self, real: protocol.Runtime, simulated: protocol.Runtime, rules: Sequence[Rule]) -> None:
        self._real: Final = real
        self._simulated: Final = simulated
        self._rules: Final = tuple(rules)

    @property
    def name(self) -> str:
        return self._real.name

    @property
    def has_files(self) -> bool:
        return self._real.has_files

    def unenforced(self, work: protocol.Work) -> Sequence[str]:
        return self._of(work).unenforced(work)

    async def start(self, work: protocol.Work) -> protocol.Container:
        return await self._of(work).start(work)

    async def update(self, work: protocol.Work) -> None:
        await self._of(work).update(work)

    async def recall(self, work: protocol.Work, name: str, *, since: dt.datetime) -> protocol.Container | None:
        # The rules may have changed since the container was started; its id tells where it runs.
        owner = self._simulated if name.startswith(node.SIMULATED_RUNTIME) else self._real
        return await owner.recall(work, name, since=since)

    async def retain(self, uids: Set[str]) -> None:
        await self._real.retain(uids)
        await self._simulated.retain(uids)

    def log(self, work: protocol.Work) -> Log | None:
        return self._of(work).log(work)

    def forget(self, uid: str) -> None:
        self._real.forget(uid)
        self._simulated.forget(uid)

    async def close(self) -> None:
        await self._real.close()
        await self._simulated.close()

    def _of(self, work: protocol.Work) -> protocol.Runtime:
        return self._simulated if any(rule.matches(work) for rule in self._rules) else self._real
