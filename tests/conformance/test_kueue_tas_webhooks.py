"""Kueue's recorded validation of topologies: annotations, Jobs, Workloads and the schemas of custom resources."""

import contextlib
import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec
import pytest

from drachma import errors
from drachma.api import meta
from drachma.queueing.integrations.batchjob import BatchJob
from drachma.queueing.jobs import topologyrequest
from drachma.queueing.rules import jobrules, topologyrules, webhooks
from drachma.validation import metadata
from drachma.validation.fielderror import FieldError
from drachma.validation.path import Path
from tests.conformance import crdforms, kueueforms, vectors

_PARSER_PREFIXES: Final = (
    "must be a valid JSON array:",
    "failed to parse multi-layer topology constraints annotation:",
)


@vectors.each("kueue-tas-webhooks")
def test_kueue_tas_webhooks(case: vectors.Line) -> None:
    recorded, answer = case["input"], case["answer"]
    match case["kind"]:
        case "podset-annotations":
            _check_annotations(case)
        case "podset-groups":
            before, _, after = recorded["annotationsPath"].partition("[i].")
            pod_sets = recorded["podSets"]
            paths = {each["name"]: Path(before).item(i).child(after) for i, each in enumerate(pod_sets)}
            _compare(topologyrules.check_groups(pod_sets, paths), answer["errors"])
        case "job":
            _check_job(case)
        case "workload":
            document = recorded["object"] | {"kind": "Workload"}
            problems = webhooks.queue_problems(document, recorded.get("oldObject"), kueueforms.switched(case))
            assert kueueforms.errors(problems) == kueueforms.recorded_errors(answer["errors"])
        case "crd-Topology" | "crd-ResourceFlavor" | "crd-Workload":
            _check_schema(case)
        case kind:
            pytest.fail(f"no such kind of line: {kind}")


def _check_annotations(case: vectors.Line) -> None:
    recorded, answer = case["input"], case["answer"]
    gates, annotations = kueueforms.switched(case), recorded["annotations"]
    path = Path(recorded["path"]).child("annotations")
    problems = list(topologyrules.check_annotations(annotations, path, gates))
    _compare(problems, answer["errors"])
    if "podSetCount" in recorded and not problems:
        bounds = topologyrules.check_upper_bound(annotations, path, recorded["podSetCount"])
        _compare(bounds, answer["upperBoundErrors"])
    with _recorded_error(answer.get("buildError")):
        request = topologyrequest.build(
            annotations,
            gates,
            index_label=recorded.get("podIndexLabel"),
            sub_group_index_label=recorded.get("subGroupIndexLabel"),
            sub_group_count=recorded.get("subGroupCount"),
        )
        assert request == answer.get("topologyRequest")


def _check_job(case: vectors.Line) -> None:
    recorded, answer = case["input"], case["answer"]
    gates = kueueforms.switched(case)
    problems = jobrules.job_problems(recorded["object"], recorded.get("oldObject"), gates, has_default_queue=False)
    _compare(problems, answer["errors"])
    with _recorded_error(answer.get("podSetsError")):
        pod_sets = BatchJob(recorded["object"]).pod_sets(gates)
        names = ("name", "count", "minCount", "topologyRequest")
        assert [{name: each[name] for name in names if name in each} for each in pod_sets] == answer["podSets"]


def _recorded_error(message: str | None) -> contextlib.AbstractContextManager[object]:
    """Expect the error with a recorded message, if there is one."""
    if message is None:
        return contextlib.nullcontext()
    return pytest.raises(errors.InvalidValueError, match=re.escape(_shortened(message)))


def _check_schema(case: vectors.Line) -> None:
    recorded = case["input"]
    kind = case["kind"].removeprefix("crd-")
    structure, _ = crdforms.structures()[kind, recorded["object"]["apiVersion"].partition("/")[2]]
    new = structure.read(recorded["object"]).document
    if case["test"] == "create":
        found = [*_name_problems(new), *structure.check(new)]
    else:
        found = [*structure.check_update(new, structure.read(recorded["oldObject"]).document, [])]
    crdforms.compare(case["answer"], new, found)


def _name_problems(document: Any) -> Iterable[FieldError]:
    subject = msgspec.convert(document["metadata"], meta.ObjectMeta)
    return metadata.check_name(subject, metadata.dns_subdomain)


def _compare(problems: Iterable[FieldError], recorded: Iterable[dict[str, Any]]) -> None:
    assert [(str(each.type), _shortened(str(each))) for each in problems] == [
        (each["type"], _shortened(each["message"])) for each in recorded
    ]


def _shortened(text: str) -> str:
    """Return a text without the message of a JSON parser, which is not compared."""
    for prefix in _PARSER_PREFIXES:
        before, mark, _ = text.partition(prefix)
        if mark:
            return before + mark
    return text
