"""Combination of resource lists, by the rules of limits and requests."""

from collections.abc import Callable, Mapping

from drachma.api import pod
from drachma.values import quantity

Combine = Callable[[quantity.Quantity, quantity.Quantity], quantity.Quantity]


def merge(first: pod.ResourceList, second: pod.ResourceList, combine: Combine) -> dict[str, quantity.Quantity]:
    """Return all resources of both lists; resources of both are combined."""
    merged = dict(first)
    for name, amount in second.items():
        merged[name] = combine(merged[name], amount) if name in merged else amount
    return merged


def first(one: quantity.Quantity, _other: quantity.Quantity) -> quantity.Quantity:
    """Return the first value."""
    return one


def largest(one: quantity.Quantity, other: quantity.Quantity) -> quantity.Quantity:
    """Return the larger value; the first if they are equal."""
    return other if one < other else one


def smallest(one: quantity.Quantity, other: quantity.Quantity) -> quantity.Quantity:
    """Return the smaller value; the first if they are equal."""
    return other if one > other else one


def total(one: quantity.Quantity, other: quantity.Quantity) -> quantity.Quantity:
    """Return the sum."""
    return one + other


PerPodSet = Mapping[str, pod.ResourceList]
"""Resource lists by pod set."""


def merge_pod_sets(one: PerPodSet, other: PerPodSet) -> dict[str, pod.ResourceList]:
    """Return the sums for each pod set."""
    merged = dict(one)
    for name, resources in other.items():
        merged[name] = merge(merged.get(name, {}), resources, total)
    return merged
