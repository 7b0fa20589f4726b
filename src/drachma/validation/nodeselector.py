"""Rules for node selectors: in the documents of pods, and in the structs of slices, devices and allocations."""

from typing import Final

from drachma.validation import rulenotation

TYPES: Final = rulenotation.load("nodeselector", globals())
check: Final = rulenotation.load_structs("nodeselector", globals())["NodeSelector"]
"""Returns the errors of a selector that is a struct."""
