"""API Priority and Fairness: which requests run now, which wait, and which are refused.

Flow schemas classify a request (:mod:`classification`); each schema belongs to a priority level. Levels share the seats
of the server (:mod:`seats`), and inside a level the flows of users or namespaces share what it has (:mod:`fairqueue`).
All of that decides and waits for nothing; :mod:`control` brings it to the event loop.
"""
