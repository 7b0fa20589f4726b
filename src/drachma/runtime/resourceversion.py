"""Resource versions as numbers: which of two states of one kind is the newer one.

Since Kubernetes 1.35 those of one kind can be compared so; components ask whether an informer has seen their own
writes.
"""


def number(resource_version: str) -> int:
    """The number of a resource version; 0, older than all, for none and for what is no number."""
    return int(resource_version) if resource_version.isdecimal() else 0
