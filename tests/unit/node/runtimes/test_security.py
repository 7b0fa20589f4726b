"""Containers that may not run as root."""

import pytest

from drachma.api import meta
from drachma.node.runtimes.security import Security, non_root_violation

POD = meta.ObjectMeta(name="p", namespace="ns", uid="u1")
ABOUT = '(pod: "p_ns(u1)", container: c)'


@pytest.mark.parametrize(
    ("security", "image_user", "want"),
    [
        pytest.param(Security(), "", None, id="nothing-is-asked-for"),
        pytest.param(Security(is_non_root=True, user=7), "", None, id="user"),
        pytest.param(
            Security(is_non_root=True, user=0), "7", "container's runAsUser breaks non-root policy", id="user-root"
        ),
        pytest.param(Security(is_non_root=True), "7:0", None, id="image"),
        pytest.param(
            Security(is_non_root=True), "", "container has runAsNonRoot and image will run as root", id="no-user"
        ),
        pytest.param(
            Security(is_non_root=True), "00", "container has runAsNonRoot and image will run as root", id="image-root"
        ),
        pytest.param(
            Security(is_non_root=True),
            "app:app",
            "container has runAsNonRoot and image has non-numeric user (app), cannot verify user is non-root",
            id="name",
        ),
    ],
)
def test_violations(security: Security, image_user: str, want: str | None) -> None:
    violation = non_root_violation(security, image_user=image_user, pod=POD, container="c")
    assert violation == (None if want is None else f"{want} {ABOUT}")
