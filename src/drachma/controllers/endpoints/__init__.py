"""The controller of Endpoints: where the pods of services are, in the form that came before slices."""

from drachma.controllers.endpoints.endpointscontroller import EndpointsController

__all__ = ["EndpointsController"]
