"""Rules for PodDisruptionBudget."""

from collections.abc import Mapping
from typing import Any, Final

from drachma.validation import fielderror, kindrules, rendering, rulenotation, workload
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path


def _check_one_bound(spec: Mapping[str, Any], at: Path) -> Errors:
    if spec.get("minAvailable") is None or spec.get("maxUnavailable") is None:
        return
    display = rendering.internal_fields(
        {**spec, "selector": workload.show_selector(spec.get("selector"))},
        ("MinAvailable", "minAvailable", None),
        ("Selector", "selector", None),
        ("MaxUnavailable", "maxUnavailable", None),
        ("UnhealthyPodEvictionPolicy", "unhealthyPodEvictionPolicy", None),
    )
    yield fielderror.invalid(at, display, "minAvailable and maxUnavailable cannot be both set")


_TYPES: Final = rulenotation.load("poddisruptionbudget", globals())
KINDS: Final = kindrules.read(_TYPES)
