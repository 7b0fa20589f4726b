"""Admission: named steps that complete or refuse a write depending on the state of the cluster."""
