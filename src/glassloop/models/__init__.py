"""Floor 2: models, whatever turns a request into a reply. `model` is the protocol.

A real one over HTTP: `endpoint` is what is known of it, `operation` asks it one question until there is a reply, with
`learning`, `patience` and `outcomes`; `attempt` is one request of that. `http` sends it over a `connection` of the
`pool`; `answer`, `headers`, `decoding`, `watch` and `deadlines`, `urls` and `proxies` serve that. `profiles` keeps what
it taught; `window` and `truncation` look at how much it takes, `prices` at what it cost. `listening` passes on what a
model says. `choose` makes one of what a person wrote, with the facts in `providers`.
Others: `scripted` plays a script, `fallback` asks the next when one fails, `replay` plays a recorded run over the line
of `playback`; `recorded` reads and writes recordings, `differences` shows where a request is not the recorded one.
"""
