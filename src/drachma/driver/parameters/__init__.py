"""The kit for parameters of the first alpha: a vendor's own kinds, resolved into what the scheduler understands.

A driver's controller says for each of its kinds which Python type it has and what it asks for
(:class:`~drachma.driver.parameters.vendorkind.ClaimKind`, :class:`~drachma.driver.parameters.vendorkind.ClassKind`);
:class:`~drachma.driver.parameters.parametercontroller.ParameterController` keeps ResourceClaimParameters and
ResourceClassParameters in step with objects of these kinds.
"""

from drachma.driver.parameters.parametercontroller import ParameterController
from drachma.driver.parameters.vendorkind import ClaimKind, ClassKind, Filter, Request, Wish

__all__ = ["ClaimKind", "ClassKind", "Filter", "ParameterController", "Request", "Wish"]
