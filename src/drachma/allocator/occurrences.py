"""Occurrences: which devices have which elements of an attribute, for all checks of one column.

Most attributes have fewer values than there are devices, and an index by element answers at once. Lists may have
thousands of elements. An index of them would take more memory than the devices, so devices are compared one by one, and
the last answers are kept: the requests of a claim ask about the same elements.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Final

_REMEMBERED: Final = 64


class Occurrences:
    """Elements of an attribute by device, as bits: see :mod:`drachma.allocator.attributes`."""

    __slots__ = ("_answers", "_index", "_is_large", "bits")

    def __init__(self, bits: Sequence[int]) -> None:
        self.bits: Final = bits
        """The value of each position; 0 where a device has none that can be compared."""
        self._index: dict[int, int] | None = None
        self._is_large: bool | None = None
        self._answers: Final[dict[int, int]] = {}

    def holding(self, elements: int) -> int:
        """Return the devices that have one of these elements. Costs the number of elements, or that of devices."""
        devices = 0
        if self._has_many_elements():
            answer = self._answers.get(elements)
            if answer is not None:
                return answer
            for position, bits in enumerate(self.bits):
                if bits & elements:
                    devices |= 1 << position
            if len(self._answers) >= _REMEMBERED:
                self._answers.clear()
            self._answers[elements] = devices
            return devices
        index = self._by_element()
        while elements:
            element = elements & -elements
            devices |= index.get(element, 0)
            elements ^= element
        return devices

    def elements(self, devices: int) -> int:
        """Return all elements that some of these devices have. Costs the number of elements, or that of devices."""
        elements = 0
        if self._has_many_elements():
            for position, bits in enumerate(self.bits):
                if devices >> position & 1:
                    elements |= bits
            return elements
        for element, holders in self._by_element().items():
            if holders & devices:
                elements |= element
        return elements

    def _by_element(self) -> dict[int, int]:
        if self._index is None:
            index: dict[int, int] = {}
            for position, bits in enumerate(self.bits):
                while bits:
                    element = bits & -bits
                    index[element] = index.get(element, 0) | 1 << position
                    bits ^= element
            self._index = index
        return self._index

    def _has_many_elements(self) -> bool:
        """Return True if there are more elements than devices, as in lists."""
        if self._is_large is None:
            self._is_large = functools.reduce(operator.or_, self.bits, 0).bit_count() > len(self.bits)
        return self._is_large
