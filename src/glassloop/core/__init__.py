"""Floor 0: what an agent is. Pure: no I/O, no clock, no randomness, no async.

Start with `entries` (what a conversation is made of), then `loop` (what happens next).
"""
