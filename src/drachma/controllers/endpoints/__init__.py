"""The controllers of Endpoints and EndpointSlices: the addresses of the pods of services, and their state."""

from drachma.controllers.endpoints.endpointscontroller import endpoint_slice_controller, endpoints_controller

__all__ = ["endpoint_slice_controller", "endpoints_controller"]
