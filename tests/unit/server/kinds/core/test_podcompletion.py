"""New pods completed without a server: equal to the answer of the server's pipeline."""

from datetime import UTC, datetime
from typing import Any

import pytest

from drachma.api import gates
from drachma.server import status
from drachma.server.kinds.core import podcompletion
from drachma.server.pipeline import verdict

NOW = datetime(2026, 1, 2, tzinfo=UTC)
CONTAINER = {"name": "c", "image": "i"}
OWNER = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}


def pod(spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "one", **metadata},
        "spec": {"containers": [CONTAINER], **(spec or {})},
    }


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(pod(), id="plain"),
        pytest.param(pod(namespace="team"), id="other-namespace"),
        pytest.param(pod(name="", generateName="one-"), id="generated-name"),
        pytest.param(pod(ownerReferences=[OWNER, OWNER]), id="repeated-owner"),
        pytest.param(pod(annotations={"kubernetes.io/config.mirror": "x"}), id="mirror-pod-without-node"),
        pytest.param(pod({"schedulingGates": [{"name": "example.com/wait"}]}), id="scheduling-gate"),
        pytest.param(pod({"tolerations": [{"operator": "Exists"}]}), id="tolerates-everything"),
        pytest.param(pod({"serviceAccountName": "robot"}), id="own-account"),
        pytest.param(pod({"resourceClaims": [{"name": "a", "source": {"resourceClaimName": "b"}}]}), id="claim-source"),
        pytest.param(pod({"containers": []}), id="no-containers"),
        pytest.param(pod({"containers": "none"}), id="wrong-type"),
        pytest.param(pod({"color": "red"}), id="unknown-field"),
        pytest.param(pod(name="One"), id="invalid-name"),
    ],
)
async def test_a_completed_pod_equals_the_pod_that_the_pipeline_stores(document: dict[str, Any]) -> None:
    judge = verdict.Judge(gates=gates.ALL, clock=lambda: NOW)
    await judge.assume([document])
    want = await judge.judge(document)
    completer = podcompletion.PodCompleter(gates.ALL)
    if want.refusal is not None:
        with pytest.raises(status.StatusError) as raised:
            completer.complete(document, now=NOW)
        assert raised.value.document == want.refusal
        return
    assert want.stored is not None
    assert _comparable(completer.complete(document, now=NOW)) == _comparable(dict(want.stored))


def test_the_given_document_stays_unchanged() -> None:
    document = pod()
    podcompletion.PodCompleter(gates.ALL).complete(document, now=NOW)
    assert document == pod()


def _comparable(stored: dict[str, Any]) -> dict[str, Any]:
    """Return a stored pod without its random UID and without owners of fields, which completion does not record."""
    metadata = {key: value for key, value in stored["metadata"].items() if key not in ("uid", "managedFields")}
    return {**stored, "metadata": metadata}
