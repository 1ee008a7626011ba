"""Floor 0: what an agent is. Pure: no I/O, no clock, no randomness, no async.

Start with `entries` (what a conversation is made of), then `loop` (what happens next) and the `steps` it asks for.
`journal` and `recording` are protocols of what is written down, `events` is what a run says, `errors` what it raises,
`tools` what is known of a tool and decided about a call. `limits`, `repeats`, `tokens` and `window` serve the loop.
"""
