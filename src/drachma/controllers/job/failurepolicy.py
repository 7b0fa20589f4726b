"""Pod failure policy of a job: the consequence of a failed pod. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from drachma.api import pod
from drachma.controllers.job import model

FAIL_JOB: Final = "FailJob"
FAIL_INDEX: Final = "FailIndex"
IGNORE: Final = "Ignore"


class Verdict(NamedTuple):
    """Action of the first matching rule, if any, and the message of a job that fails by it."""

    action: str = ""
    message: str = ""

    @property
    def is_counted(self) -> bool:
        """True if the failure counts towards limits."""
        return self.action != IGNORE


COUNTED: Final = Verdict()


def judge(policy: model.PodFailurePolicy | None, failed: pod.Pod) -> Verdict:
    """Return the verdict on a failed pod. The first rule that matches decides."""
    for number, rule in enumerate(policy.rules if policy is not None else ()):
        cause = _cause(rule, failed)
        if cause:
            message = f"{cause} matching {rule.action} rule at index {number}" if rule.action == FAIL_JOB else ""
            return Verdict(rule.action, message)
    return COUNTED


def job_failure(current: model.Job, failed: Iterable[pod.Pod]) -> str:
    """Return the message of a job that fails because of one of its failed pods, or an empty text."""
    policy = current.spec.pod_failure_policy
    return next((verdict.message for each in failed if (verdict := judge(policy, each)).message), "")


def _cause(rule: model.PodFailurePolicyRule, failed: pod.Pod) -> str:
    """Return the reason for which a rule matches a pod, or an empty text."""
    name = f"{failed.metadata.namespace}/{failed.metadata.name}"
    if rule.on_exit_codes is not None:
        for status in (*failed.status.container_statuses, *failed.status.init_container_statuses):
            code = status.state.terminated.exit_code if status.state.terminated is not None else 0
            if code and _is_about(rule.on_exit_codes, status.name, code):
                return f"Container {status.name} for pod {name} failed with exit code {code}"
        return ""
    patterns = {(pattern.type, pattern.status) for pattern in rule.on_pod_conditions}
    for condition in failed.status.conditions:
        if (condition.type, condition.status) in patterns:
            return f"Pod {name} has condition {condition.type}"
    return ""


def _is_about(requirement: model.OnExitCodes, container: str, code: int) -> bool:
    if requirement.container_name not in (None, container):
        return False
    return (code in requirement.values) == (requirement.operator == "In")
