"""Limits of pods and volume claims."""

from typing import Any

import msgspec
import pytest

from drachma.accounting import limitranges
from drachma.api import hooks, limitrange, persistentvolumeclaim, pod


def read(document: Any, model: Any) -> Any:
    return msgspec.convert(document, model, dec_hook=hooks.decode)


def item(kind: str = "Container", **fields: Any) -> limitrange.LimitRangeItem:
    made: limitrange.LimitRangeItem = read({"type": kind, **fields}, limitrange.LimitRangeItem)
    return made


def a_pod(*containers: tuple[dict[str, str], dict[str, str]], **spec: Any) -> pod.Pod:
    listed = [{"name": "c", "resources": {"requests": requests, "limits": limits}} for requests, limits in containers]
    made: pod.Pod = read({"spec": {"containers": listed, **spec}}, pod.Pod)
    return made


NOTHING: tuple[dict[str, str], dict[str, str]] = ({}, {})
CPU = {"cpu": "1"}


@pytest.mark.parametrize(
    ("limit", "subject", "want"),
    [
        pytest.param(item(min=CPU, max=CPU), a_pod((CPU, CPU)), [], id="just-right"),
        pytest.param(
            item(min=CPU),
            a_pod(NOTHING),
            ["minimum cpu usage per Container is 1.  No request is specified"],
            id="silent",
        ),
        pytest.param(
            item(min=CPU),
            a_pod(({"cpu": "999m"}, CPU)),
            ["minimum cpu usage per Container is 1, but request is 999m"],
            id="low-request",
        ),
        pytest.param(
            item(min=CPU),
            a_pod((CPU, {"cpu": "500m"})),
            ["minimum cpu usage per Container is 1, but limit is 500m"],
            id="low-limit",
        ),
        pytest.param(
            item(max=CPU),
            a_pod(NOTHING),
            ["maximum cpu usage per Container is 1.  No limit is specified"],
            id="none",
        ),
        pytest.param(
            item(max=CPU),
            a_pod((CPU, {"cpu": "1001m"})),
            ["maximum cpu usage per Container is 1, but limit is 1001m"],
            id="high-limit",
        ),
        pytest.param(
            item(max=CPU),
            a_pod(({"cpu": "2"}, CPU)),
            ["maximum cpu usage per Container is 1, but request is 2"],
            id="high-request",
        ),
        pytest.param(
            item(maxLimitRequestRatio={"cpu": "1500m"}),
            a_pod((CPU, {"cpu": "2"})),
            ["cpu max limit to request ratio per Container is 1500m, but provided ratio is 2.000000"],
            id="ratio",
        ),
        pytest.param(
            item(maxLimitRequestRatio={"cpu": "2"}),
            a_pod(({}, CPU)),
            ["cpu max limit to request ratio per Container is 2, but no request is specified or request is 0"],
            id="ratio-without-request",
        ),
        pytest.param(
            item(maxLimitRequestRatio={"cpu": "2"}),
            a_pod((CPU, {})),
            ["cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0"],
            id="ratio-without-limit",
        ),
        pytest.param(
            item(max={"memory": "8Ei"}),
            a_pod(({}, {"memory": "9Ei"})),
            [],
            id="beyond-what-upstream-can-compare",
        ),
        pytest.param(
            item("Pod", max=CPU),
            a_pod(({}, {"cpu": "600m"}), ({}, {"cpu": "600m"})),
            ["maximum cpu usage per Pod is 1, but limit is 1200m"],
            id="a-pod-is-its-containers",
        ),
        pytest.param(
            item("Pod", min=CPU),
            a_pod((CPU, {}), resources={"requests": {"cpu": "500m"}}),
            ["minimum cpu usage per Pod is 1, but request is 500m"],
            id="or-what-it-states-itself",
        ),
        pytest.param(item("PersistentVolumeClaim", max=CPU), a_pod(NOTHING), [], id="for-others"),
        pytest.param(
            item(min=CPU),
            a_pod((CPU, {}), initContainers=[{"name": "i"}]),
            ["minimum cpu usage per Container is 1.  No request is specified"],
            id="init-containers-too",
        ),
    ],
)
def test_pods(limit: limitrange.LimitRangeItem, subject: pod.Pod, want: list[str]) -> None:
    assert list(limitranges.pod_problems(subject, (limit,))) == want


@pytest.mark.parametrize(
    ("storage", "want"),
    [
        pytest.param({"storage": "2Gi"}, [], id="just-right"),
        pytest.param(
            {"storage": "512Mi"},
            ["minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 512Mi"],
            id="too-little",
        ),
        pytest.param(
            {"storage": "4Gi"},
            ["maximum storage usage per PersistentVolumeClaim is 3Gi, but request is 4Gi"],
            id="too-much",
        ),
        pytest.param(
            {},
            [
                "minimum storage usage per PersistentVolumeClaim is 1Gi.  No request is specified",
                "maximum storage usage per PersistentVolumeClaim is 3Gi.  No request is specified",
            ],
            id="nothing",
        ),
    ],
)
def test_volume_claims(storage: dict[str, str], want: list[str]) -> None:
    limit = item("PersistentVolumeClaim", min={"storage": "1Gi"}, max={"storage": "3Gi"})
    claim = read({"spec": {"resources": {"requests": storage}}}, persistentvolumeclaim.PersistentVolumeClaim)
    assert list(limitranges.volume_claim_problems(claim, (item(), limit))) == want
