"""Floor 0: what an agent is. Pure: no I/O, no clock, no randomness, no async.

Start with `entries` (what a conversation is made of), then `loop` (what happens next) and the `steps` it asks for.
`journal` and `recording` are protocols of what is written down, `events` is what a run says, `errors` what it raises,
`tools` what is known of a tool and decided about a call. `limits`, `repeats` and `words` serve the loop; so does
`context` (what is sent and how full the window is), with `window`, `summary` and `tokens`. `compacting` is a second
controller, which only sums up. `resolving` is about calls of which nobody knows whether they happened, `setup` how a
run was set up and `heard` which answers it heard, for replays, `visible` text with nothing hidden in it, `jsonlines`
how exports and recordings are read.
"""
