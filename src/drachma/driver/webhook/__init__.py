"""The admission webhook of a driver, made from the type of its parameters (KEP-4381, admission webhook).

It refuses claims, templates and classes with invalid parameters when they are written, with the messages that
preparation would give later. ``reviews`` decides, ``server`` serves, and ``webhookmanifests`` makes the
certificate and the objects by which a cluster calls it.
"""
