"""Views of a pod for checks: its containers and security contexts, and the wording that checks share."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

Document: TypeAlias = Mapping[str, Any]

_CONTAINER_FIELDS: Final = ("initContainers", "containers", "ephemeralContainers")
_NOTHING: Final[Mapping[str, Any]] = {}


class Violation(NamedTuple):
    """Reason why a pod violates a standard, in few words, and the fields or values that do."""

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


class PodView(NamedTuple):
    """Pod or pod template as checks read it. ``containers`` are all of them, init containers first."""

    spec: Document
    annotations: Mapping[str, str]
    containers: Sequence[Document]

    @property
    def security(self) -> Document:
        """Security context of the pod; an empty one if the pod has none."""
        return self.spec.get("securityContext") or _NOTHING

    @property
    def is_for_windows(self) -> bool:
        return bool((self.spec.get("os") or _NOTHING).get("name") == "windows")

    @property
    def has_user_namespace(self) -> bool:
        """True if the users of the pod are not those of the host."""
        return self.spec.get("hostUsers") is False

    def names_where(self, is_bad: Callable[[Document], bool]) -> list[str]:
        """Return the names of containers for which a predicate holds."""
        return [container.get("name", "") for container in self.containers if is_bad(container)]


Check: TypeAlias = Callable[[PodView], Violation | None]
"""Control of a standard: returns the violation, or None if the pod complies."""


def except_windows(check: Check) -> Check:
    """Return the check for pods of other operating systems: Windows does not have the field."""
    return lambda pod: None if pod.is_for_windows else check(pod)


def except_user_namespaces(check: Check) -> Check:
    """Return the check for pods with the users of the host: in a user namespace, root is no root."""
    return lambda pod: None if pod.has_user_namespace else check(pod)


def view(metadata: Document, spec: Document) -> PodView:
    """Return the view of a pod with this metadata and spec."""
    containers = [container for field in _CONTAINER_FIELDS for container in spec.get(field) or ()]
    return PodView(spec, metadata.get("annotations") or _NOTHING, containers)


def security_of(container: Document) -> Document:
    """Return the security context of a container; an empty one if the container has none."""
    return container.get("securityContext") or _NOTHING


def quote_all(texts: Iterable[str]) -> str:
    """Return texts in quotation marks, separated by commas. Nothing in them is escaped."""
    return ", ".join(f'"{text}"' for text in texts)


def choose_number(count: int, singular: str, plural: str) -> str:
    """Return the form of a word for a count."""
    return singular if count == 1 else plural


def name_containers(names: Sequence[str]) -> str:
    """Return ``container "a"`` or ``containers "a", "b"``."""
    return f"{choose_number(len(names), 'container', 'containers')} {quote_all(names)}"


def name_setters(names: Sequence[str], *, is_pod: bool) -> str:
    """Return the pod, the containers of these names, or both; an empty text for neither."""
    setters = ["pod"] if is_pod else []
    if names:
        setters.append(name_containers(names))
    return " and ".join(setters)
