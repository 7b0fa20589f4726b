import pytest

from drachma.server import mediatypes, status
from drachma.server.presentation import negotiation
from drachma.server.presentation.negotiation import Form, Output

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "want"),
    [
        pytest.param("", Output(), id="nothing-said"),
        pytest.param("*/*", Output(), id="anything"),
        pytest.param("application/*", Output(), id="any-application"),
        pytest.param("application/yaml", Output("application/yaml"), id="yaml"),
        pytest.param("application/vnd.kubernetes.protobuf,application/json", Output(), id="falls-back-to-json"),
        pytest.param("application/json;q=0.1,application/yaml", Output("application/yaml"), id="quality-decides"),
        pytest.param(f"{TABLE},application/json", Output(form=Form.TABLE), id="table"),
        pytest.param(
            "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
            Output(form=Form.TABLE, meta_version="v1beta1"),
            id="old-table",
        ),
        pytest.param("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", Output(), id="unknown-table"),
        pytest.param(
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            Output(form=Form.METADATA_LIST),
            id="metadata-of-a-list",
        ),
        pytest.param("application/json;stream=watch", Output(), id="stream"),
        pytest.param("application/json;pretty=1", Output(is_pretty=True), id="pretty-parameter"),
    ],
)
def test_output(accept: str, want: Output) -> None:
    assert negotiation.output(accept) == want


@pytest.mark.parametrize(
    "accept",
    [
        pytest.param("application/vnd.kubernetes.protobuf", id="protobuf"),
        pytest.param("application/vnd.kubernetes.protobuf;as=Table", id="protobuf-as-a-table"),
    ],
)
def test_not_acceptable(accept: str) -> None:
    with pytest.raises(status.StatusError) as caught:
        negotiation.output(accept)
    assert caught.value.code == 406
    assert str(caught.value) == "only the following media types are accepted: application/json, application/yaml"


@pytest.mark.parametrize(
    ("agent", "pretty", "want"),
    [
        pytest.param("curl/8.0", "", True, id="people-use-curl"),
        pytest.param("curl/8.0", "false", False, id="unless-they-say-no"),
        pytest.param("kubectl/v1.37", "", False, id="programs-do-not-care"),
        pytest.param("kubectl/v1.37", "true", True, id="unless-they-do"),
    ],
)
def test_pretty(agent: str, pretty: str, want: bool) -> None:
    assert negotiation.output("", agent, pretty=pretty).is_pretty is want


def test_body_type() -> None:
    assert negotiation.body_type("") == "application/json"
    assert negotiation.body_type("application/json; charset=utf-8") == "application/json"
    with pytest.raises(status.StatusError, match="the body of the request was in an unknown format") as caught:
        negotiation.body_type("application/cbor")
    assert caught.value.code == 415


def test_patch_type() -> None:
    assert negotiation.patch_type("application/merge-patch+json; charset=utf-8") == mediatypes.MERGE_PATCH
    with pytest.raises(status.StatusError) as caught:
        negotiation.patch_type("application/json")
    assert caught.value.code == 415
    assert str(caught.value).endswith(", ".join(mediatypes.PATCH_TYPES))
