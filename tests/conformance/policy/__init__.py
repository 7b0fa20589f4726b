"""Replays recorded scenarios about who may do what, quota, admission, custom resources, clean-up and watches."""
