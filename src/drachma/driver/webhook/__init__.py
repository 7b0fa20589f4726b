"""The admission webhook of a driver, made from the type of its parameters (KEP-4381, admission webhook).

It refuses claims, templates and classes with invalid parameters when they are written, with the messages that
preparation would give later. ``reviews`` decides, ``server`` serves, ``certificates`` and ``webhookmanifests`` make
what a cluster needs to call it.
"""
