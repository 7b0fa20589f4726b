"""Labels of namespaces and the policies that they name."""

import pytest

from drachma.server.admission.podsecurity import policies
from drachma.server.admission.podsecurity.policies import LATEST, Level, LevelVersion, Policy

BASELINE = LevelVersion(Level.BASELINE, LATEST)
RESTRICTED = LevelVersion(Level.RESTRICTED, LATEST)


def labels(**values: str) -> dict[str, str]:
    return {f"pod-security.kubernetes.io/{name.replace('_', '-')}": value for name, value in values.items()}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("latest", LATEST, id="latest"),
        pytest.param("v1.0", 0, id="first"),
        pytest.param("v1.25", 25, id="minor"),
        pytest.param("v1.99", 99, id="future"),
        pytest.param(f"v1.{2**63 - 1}", 2**63 - 1, id="largest"),
        pytest.param(f"v1.{2**63}", None, id="too-large"),
        pytest.param("v1.025", None, id="leading-zero"),
        pytest.param("v1.²", None, id="other-digits"),
        pytest.param("1.25", None, id="no-v"),
        pytest.param("v2.0", None, id="major"),
        pytest.param("v1.25.1", None, id="patch"),
        pytest.param("v1.25\n", None, id="newline"),
        pytest.param("", None, id="empty"),
    ],
)
def test_parse_version(text: str, want: int | None) -> None:
    assert policies.parse_version(text) == want


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param({}, Policy(), id="none"),
        pytest.param({"other": "restricted"}, Policy(), id="others"),
        pytest.param(labels(enforce="privileged"), Policy(), id="privileged"),
        pytest.param(labels(enforce="baseline"), Policy(enforce=BASELINE, warn=BASELINE), id="enforced-warns"),
        pytest.param(
            labels(enforce="baseline", warn="privileged"), Policy(enforce=BASELINE), id="warning-label-decides"
        ),
        pytest.param(
            labels(enforce="baseline", enforce_version="v1.20"),
            Policy(enforce=LevelVersion(Level.BASELINE, 20), warn=LevelVersion(Level.BASELINE, 20)),
            id="warning-in-enforced-version",
        ),
        pytest.param(
            labels(enforce="baseline", enforce_version="v1.20", warn_version="v1.30"),
            Policy(enforce=LevelVersion(Level.BASELINE, 20), warn=LevelVersion(Level.BASELINE, 30)),
            id="warning-version-decides",
        ),
        pytest.param(labels(audit="restricted"), Policy(audit=RESTRICTED), id="audit-does-not-warn"),
        pytest.param(
            labels(enforce_version="v1.20"), Policy(enforce=LevelVersion(Level.PRIVILEGED, 20)), id="version-alone"
        ),
    ],
)
def test_read_labels(given: dict[str, str], want: Policy) -> None:
    assert policies.read_labels(given, Policy()) == policies.LabelledPolicy(want)


def test_defaults_count_where_labels_are_absent() -> None:
    defaults = Policy(enforce=BASELINE, audit=RESTRICTED, warn=RESTRICTED)
    assert policies.read_labels({}, defaults).policy == defaults
    # Only an explicit label that is stricter than the default changes what is warned of.
    relaxed = policies.read_labels(labels(enforce="privileged"), defaults).policy
    assert relaxed == Policy(LevelVersion(Level.PRIVILEGED, LATEST), RESTRICTED, RESTRICTED)


@pytest.mark.parametrize(
    ("given", "want", "messages"),
    [
        pytest.param(
            labels(enforce="super", enforce_version="x"),
            Policy(enforce=RESTRICTED),
            [
                (
                    'metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "super": '
                    "must be one of privileged, baseline, restricted"
                ),
                (
                    'metadata.labels[pod-security.kubernetes.io/enforce-version]: Invalid value: "x": '
                    'must be "latest" or "v1.x"'
                ),
            ],
            id="enforcing-fails-closed",
        ),
        pytest.param(
            labels(audit="Restricted", warn=""),
            Policy(),
            [
                (
                    'metadata.labels[pod-security.kubernetes.io/audit]: Invalid value: "Restricted": '
                    "must be one of privileged, baseline, restricted"
                ),
                (
                    'metadata.labels[pod-security.kubernetes.io/warn]: Invalid value: "": '
                    "must be one of privileged, baseline, restricted"
                ),
            ],
            id="audit-and-warning-fail-open",
        ),
    ],
)
def test_bad_labels(given: dict[str, str], want: Policy, messages: list[str]) -> None:
    labelled = policies.read_labels(given, Policy())
    assert labelled.policy == want
    assert list(map(str, labelled.errors)) == messages


@pytest.mark.parametrize(
    ("one", "other", "want"),
    [
        pytest.param(LevelVersion(Level.PRIVILEGED, 1), policies.PRIVILEGED, True, id="privileged"),
        pytest.param(LevelVersion(Level.BASELINE, 1), BASELINE, False, id="versions"),
        pytest.param(BASELINE, RESTRICTED, False, id="levels"),
    ],
)
def test_equivalence(one: LevelVersion, other: LevelVersion, *, want: bool) -> None:
    assert one.is_equivalent(other) is want
    assert Policy(enforce=one).is_equivalent(Policy(enforce=other)) is want


def test_names_of_standards() -> None:
    assert str(RESTRICTED) == "restricted:latest"
    assert str(LevelVersion(Level.BASELINE, 7)) == "baseline:v1.7"
