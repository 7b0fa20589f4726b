"""Reconcile of workloads outside of admission cycles."""
