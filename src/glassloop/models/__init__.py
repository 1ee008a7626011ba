"""Models: whatever turns a request into a reply. `model.py` has the protocol, `endpoint.py` the real thing."""
