"""Shared code of workload controllers: adoption, expectations, pods, readiness, hashes and history."""
