"""A model test: random churn under several schedulers that are killed at random, and what must hold all the while.

``python -m tests.scenarios.churn --operations 10000 --seed 1`` runs one at length, by turns with drivers and claims of
v1 alone and with those of the first alpha among them; a seed always gives the same run.
"""
