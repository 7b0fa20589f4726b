"""The controller of endpoint slices: says at which addresses the pods of services are, and how they are."""

from drachma.controllers.endpointslice.endpointslicecontroller import EndpointSliceController

__all__ = ["EndpointSliceController"]
