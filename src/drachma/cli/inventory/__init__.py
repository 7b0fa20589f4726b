"""Inventory of a cluster as table rows: devices, pools, claims, nodes and pods. Pure: objects in, rows out."""
