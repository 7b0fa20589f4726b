"""The HTTP side of the server: ASGI, sockets, limits, health and metrics."""
