"""Bounds on the memory and the effort that clients can make this process spend.

``memory`` limits the bytes that all caches hold together. ``effort`` lets work that runs on an event loop stop when it
turns out to be long, so that its caller can run it again in a thread.
"""
