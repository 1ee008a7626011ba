"""How endpoints name a request in the headers of its answer."""

from __future__ import annotations

from collections.abc import Mapping

_REQUEST_IDS = (
    "x-request-id",
    "request-id",
    "x-generation-id",
    "x-ds-trace-id",
    "x-amzn-requestid",
    "apim-request-id",
    "x-ms-request-id",
    "x-trace-id",
    "cf-ray",
)
"""What support asks for, the provider's own before what stands in front of it."""


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """The id of a request, from the headers of its answer, whose names are lower-case or compared without case."""
    return next((headers[name] for name in _REQUEST_IDS if headers.get(name)), None)
