"""Classes and parameters as the informers have them."""

from collections.abc import Iterable
from typing import Final

from drachma.api.v1alpha2 import parameters, resourceclass
from drachma.runtime import Informers


class ParameterObjects:
    """Where claims find their classes and parameters."""

    def __init__(self, informers: Informers) -> None:
        self._classes: Final = informers.of(resourceclass.ResourceClass).cache
        self._of_claims: Final = informers.of(parameters.ResourceClaimParameters).cache
        self._of_classes: Final = informers.of(parameters.ResourceClassParameters).cache

    def resource_class(self, name: str) -> resourceclass.ResourceClass | None:
        return self._classes.get(name)

    def claim_parameters(self, namespace: str) -> Iterable[parameters.ResourceClaimParameters]:
        return self._of_claims.in_namespace(namespace)

    def class_parameters(self) -> Iterable[parameters.ResourceClassParameters]:
        return self._of_classes
