"""Is it there, does it take the key, does it know the model?"""

from __future__ import annotations

import asyncio
import difflib
from urllib.parse import urlsplit

from glassloop.core.errors import (
    AuthenticationFailed,
    ConnectionLost,
    EndpointError,
    ModelNotFound,
    StreamStalled,
)
from glassloop.doctor.findings import Answer, Finding
from glassloop.doctor.patient import Patient
from glassloop.doctor.probe import Probe
from glassloop.doctor.reading import transport_code
from glassloop.doctor.strict import shown
from glassloop.models.window import listed_models, model_id

_NEAREST = 5
_MAY_BE_TLS = ("no_http", "hung_up", "stalled")
_LONGEST_GREETING = 5.0
"""Seconds."""


async def _reachable(patient: Patient) -> Answer:
    """Any answer to a request for the model list is one."""
    listed, error = await patient.look("/models")
    if error is None:
        names = sorted({name for one in listed_models(listed) if (name := model_id(one))})
        return Answer("ok", f"HTTP {patient.exchanges[-1].status}", (("models", names),))
    if error.status is not None or not isinstance(error, ConnectionLost | StreamStalled):
        status = error.status or patient.exchanges[-1].status
        return Answer("ok", f"HTTP {status}", (("models_error", _words(error)), ("models_status", status)))
    code = transport_code(patient.exchanges[-1].error or "")
    finding = Finding(f"transport:{code}", "broken", str(error.args[0]), error.hint, error.url)
    url = patient.endpoint.base_url
    facts = (("speaks_tls", True),) if code in _MAY_BE_TLS and await _speaks_tls(url) else ()
    return Answer("failed", str(error.args[0]), facts, (finding,))


async def _speaks_tls(url: str) -> bool:
    """Whether a port that was asked with http:// takes a TLS greeting. Nothing is sent but that."""
    import ssl

    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname is None:
        return False
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        async with asyncio.timeout(_LONGEST_GREETING):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port or 80, ssl=context)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


async def _models(patient: Patient) -> Answer:
    names = patient.facts.get("models")
    if names:
        return Answer(
            "ok", f"{len(names)}: {', '.join(names[:_NEAREST])}{' …' if len(names) > _NEAREST else ''}"
        )
    return Answer("no", shown(patient.facts.get("models_error") or "an empty list"))


async def _key(patient: Patient) -> Answer:
    """What the first questions came to says whether the key is good; a model list is often open to anybody."""
    error = patient.facts.get("error")
    if error == AuthenticationFailed.__name__:
        return Answer("failed", patient.facts.get("error_words", ""), (("key", False),))
    sent = any(name.lower() in ("authorization", "api-key", "x-api-key") for name in patient.endpoint.headers)
    if error:
        return Answer("no", "not known: no question was answered")
    return Answer("ok", "a key was sent and not refused" if sent else "none was sent, and none is needed")


async def _model(patient: Patient) -> Answer:
    model, names = patient.endpoint.model, patient.facts.get("models") or []
    near = difflib.get_close_matches(model, names, n=_NEAREST, cutoff=0.4)
    facts = (("nearest_models", near),)
    if patient.facts.get("error") == ModelNotFound.__name__:
        others = ", ".join(near or names[:_NEAREST]) or "none is listed"
        return Answer("failed", f"{model} is not known there; nearest: {others}", facts)
    if patient.facts.get("error"):
        return Answer("no", "not known: no question was answered")
    if names and model not in names:
        return Answer("ok", f"{model} answers, though it is not in the list", facts)
    return Answer("ok", f"{model} is listed" if names else f"{model} answers")


def _words(error: EndpointError) -> str:
    return error.provider_text or str(error.args[0])


FIRST = (
    Probe(
        "reachable", "connection", "does anything answer there?", _reachable, tokens=0, needs=(), quick=True
    ),
    Probe("models", "connection", "which models are listed?", _models, 0, 0, ("reachable",), quick=True),
)
AFTER_AN_ANSWER = (
    Probe("key", "connection", "is the key accepted?", _key, 0, 0, ("reachable",), quick=True),
    Probe("model", "connection", "does the model exist?", _model, 0, 0, ("reachable",), quick=True),
)
