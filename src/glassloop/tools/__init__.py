"""Tools: from a Python function to a validated, timed, capped call. `toolbox.py` is where calls are prepared and run."""
