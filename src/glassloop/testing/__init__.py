"""Real servers for tests: `server` plays scripted replies, `quirks` plays what real endpoints get wrong.

Without a server: `recording` is a pytest plugin whose fixture records a model once, on a `tape`, and replays it after.
"""
