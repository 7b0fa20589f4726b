"""Charges of workloads for devices (KEP-2941), and the account of what was agreed at admission."""
