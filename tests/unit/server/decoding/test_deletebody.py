"""Bodies of deletes: which are read, and upstream's words for the others."""

import pytest

from drachma.server import mediatypes, status
from drachma.server.decoding import deletebody


@pytest.mark.parametrize(
    ("data", "want"),
    [
        pytest.param("null", {}, id="null"),
        pytest.param('{"dryRun":["All"]}', {"dryRun": ["All"]}, id="no-type"),
        pytest.param('{"kind":"DeleteOptions","apiVersion":"apps/v1"}', None, id="any-group"),
        pytest.param('{"bogus":1,"gracePeriodSeconds":null}', None, id="unknown-field"),
    ],
)
def test_read(data: str, want: object) -> None:
    found = deletebody.read(data.encode(), mediatypes.JSON)
    assert want is None or found == want


def test_yaml() -> None:
    assert deletebody.read(b"dryRun: [All]", mediatypes.YAML) == {"dryRun": ["All"]}


@pytest.mark.parametrize(
    ("data", "want"),
    [
        pytest.param(
            "{bad",
            "couldn't get version/kind; json parse error: invalid character 'b' looking for beginning of object key "
            "string",
            id="no-json",
        ),
        pytest.param(
            "[]",
            "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct "
            r'{ APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }',
            id="no-object",
        ),
        pytest.param(
            '{"kind":1}',
            "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of "
            "type string",
            id="kind-of-wrong-type",
        ),
        pytest.param(
            '{"kind":"DeleteOptions","apiVersion":"a/b/c"}',
            "unexpected GroupVersion string: a/b/c",
            id="impossible-version",
        ),
        pytest.param(
            '{"kind":"Pod","apiVersion":"v1"}',
            'no kind "Pod" is registered for version "v1" in scheme '
            '"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"',
            id="another-kind",
        ),
        pytest.param(
            '{"kind":"ListOptions","apiVersion":"meta.k8s.io/v1"}',
            "converting (v1.ListOptions) to (v1.DeleteOptions): unknown conversion",
            id="other-options",
        ),
        pytest.param(
            '{"gracePeriodSeconds":"soon"}',
            "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
            id="text-for-seconds",
        ),
        pytest.param(
            '{"propagationPolicy":1}',
            "json: cannot unmarshal number into Go struct field DeleteOptions.propagationPolicy of type "
            "v1.DeletionPropagation",
            id="number-for-policy",
        ),
        pytest.param(
            '{"preconditions":{"uid":1}}',
            "json: cannot unmarshal number into Go struct field Preconditions.preconditions.uid of type types.UID",
            id="number-for-uid",
        ),
    ],
)
def test_refused(data: str, want: str) -> None:
    with pytest.raises(status.StatusError) as caught:
        deletebody.read(data.encode(), mediatypes.JSON)
    assert (caught.value.code, str(caught.value)) == (400, want)


def test_broken_yaml() -> None:
    with pytest.raises(status.StatusError, match=r"^yaml: line 1: did not find expected node content$"):
        deletebody.read(b"a: [", mediatypes.YAML)
