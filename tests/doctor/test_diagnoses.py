"""Each ready diagnosis is made from what a server really does, with the command that mends it, and from nothing less."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.doctor.healthy import completion_for, plain
from tests.doctor.test_judgement import Script, report_of

from glassloop.testing.server import Raw, Reply, Request, fails

OLD = "Mon, 01 Jan 2024 00:00:00 GMT"


def _tools_refused(words: str, status: int = 400) -> Script:
    return lambda request: fails(status, words) if (request.body or {}).get("tools") else plain(request)


def _cut(request: Request) -> Reply:
    counted = completion_for(request.body)
    return replace(
        counted, usage={**counted.usage, "prompt_tokens": min(counted.usage["prompt_tokens"], 1000)}
    )


def _dated(request: Request) -> Reply:
    reply = plain(request)
    assert isinstance(reply, Raw)
    return replace(reply, headers={**reply.headers, "Date": OLD})


def _says(status: int, words: str) -> Script:
    return lambda request: fails(status, words)


def _owned(owner: str, **fields: Any) -> dict[str, Any]:
    return {"/v1/models": {"object": "list", "data": [{"id": "m", "owned_by": owner, **fields}]}}


@pytest.mark.parametrize(
    ("code", "script", "gets", "fix"),
    [
        (
            "vllm_tool_parser",
            _tools_refused(
                '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
            ),
            None,
            "--enable-auto-tool-choice --tool-call-parser",
        ),
        ("llamacpp_jinja", _tools_refused("tools param requires --jinja flag", 500), None, "--jinja"),
        (
            "text_tools",
            _tools_refused("m does not support tools"),
            None,
            "glassloop models http://127.0.0.1:",
        ),
        ("ollama_window", _cut, _owned("library"), "OLLAMA_CONTEXT_LENGTH="),
        (
            "lmstudio_context",
            plain,
            _owned("organization_owner", max_model_len=4096),
            "lms load m --context-length",
        ),
        ("llamacpp_window", plain, _owned("llamacpp", max_model_len=2048), "-c 32768"),
        ("wrong_path", _says(404, "404 page not found"), None, "--base-url"),
        ("no_key", _says(401, "Incorrect API key provided"), None, "export GLASSLOOP_API_KEY="),
        ("model_misspelt", _says(404, "The model `m` does not exist"), None, "-m m"),
        ("free_tier", _says(402, "Insufficient Balance"), None, "add credit"),
        ("free_tier", _says(402, "Insufficient Balance"), None, "glassloop models http://127.0.0.1:"),
        (
            "http_for_https",
            _says(400, "Client sent an HTTP request to an HTTPS server."),
            None,
            "https://127.0.0.1",
        ),
        ("proxy", _says(407, "Proxy authentication required by squid"), None, "NO_PROXY=127.0.0.1"),
        ("clock_skew", _dated, None, "timedatectl"),
    ],
)
def test_a_cause_is_named_with_its_fix(
    code: str, script: Callable[[Request], Reply], gets: dict[str, Any] | None, fix: str
) -> None:
    names = ("forced_call", "streamed_call", "call_then_answer", "window", "long_prompt")
    report = report_of(script, names, gets=gets)
    found = {one.code: one for one in report.diagnoses}
    assert code in found, [report.why, *found]
    assert fix in found[code].fix


def test_the_command_about_a_wrong_key_asks_the_same_address() -> None:
    report = report_of(_says(401, "Incorrect API key provided"), ("forced_call",), key="gw-live-7f3a9c2e1b8d")
    (found,) = (one for one in report.diagnoses if one.code == "wrong_key")
    assert f"--base-url {report.base_url} -m m " in found.fix
