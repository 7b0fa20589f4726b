"""Ports: the one listener behind every port that a process opens, its limits, and its share of descriptors."""
