"""Floor 1: what the bytes mean. Pure: bytes in, values out, and back.

`request` writes, `reply` and `stream` read; `profile` is what one endpoint accepts; `rejection` reads its errors.
"""
