"""Resource versions as numbers, which tell the newer of two states of one kind.

Kubernetes guarantees this order within a kind since 1.35. Components use it to check that an informer has seen their
own writes.
"""


def number(resource_version: str) -> int:
    """Return a resource version as a number, or 0 if it is empty or not a number."""
    return int(resource_version) if resource_version.isdecimal() else 0


def is_newer(one: str, other: str) -> bool:
    """Return True if a resource version is newer than another one. Texts that are not numbers are older than all."""
    try:
        return int(one) > int(other)
    except ValueError:
        return number(one) > number(other)
