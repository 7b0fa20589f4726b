"""Interfaces between a node agent, its drivers and the container runtime: gRPC services, CDI files, file access."""
