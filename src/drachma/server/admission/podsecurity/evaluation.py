"""Evaluation of a pod against a level and version of the Pod Security Standards."""

from typing import NamedTuple

from drachma.server.admission.podsecurity import checks
from drachma.server.admission.podsecurity.podviews import PodView, Violation
from drachma.server.admission.podsecurity.policies import LevelVersion


class Evaluation(NamedTuple):
    """Violations of a standard, in the order of messages; none if the pod complies."""

    standard: LevelVersion
    violations: tuple[Violation, ...]

    @property
    def reasons(self) -> str:
        """Reasons without fields and values, for a list of many pods."""
        return ", ".join(violation.reason for violation in self.violations)

    @property
    def message(self) -> str:
        """What the pod violates, for a refusal or, behind ``would``, for a warning."""
        return f'PodSecurity "{self.standard}": {", ".join(map(str, self.violations))}'


def evaluate(pod: PodView, standard: LevelVersion) -> Evaluation:
    """Return the violations of a pod. Takes time in proportion to its containers and volumes."""
    violations = (check(pod) for check in checks.checks_of(standard))
    return Evaluation(standard, tuple(violation for violation in violations if violation is not None))
