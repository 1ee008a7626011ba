"""`glassloop doctor` against LiteLLM's proxy and llama.cpp's server: what it prints is right, by facts about them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.peers.kit import Peer

SMALL = "[settings]\nmax_tokens = 24\ntemperature = 0\nseed = 1\n"
"""A model of 135 million parameters rambles; each of its answers is cut short, as a person would."""


def examine(
    peer: Peer, model: str, folder: Path, *more: str, key: str | None = None
) -> tuple[int, dict[str, Any], str]:
    """The exit code, the report and what went to standard error."""
    command = [sys.executable, "-m", "glassloop", "doctor", "-m", model, "--json", *more]
    env = {**os.environ, "GLASSLOOP_BASE_URL": peer.base_url, "GLASSLOOP_API_KEY": key or str(peer.key)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, env=env, cwd=folder)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


def outcomes(report: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["outcome"] for one in report["probes"]}


def codes(report: dict[str, Any]) -> set[str]:
    return {one["code"] for one in report["findings"]}


def faults(report: dict[str, Any]) -> set[str]:
    return {one["code"] for one in report["findings"] if one["level"] in ("broken", "mended")}


# ── LiteLLM ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_gateway_whose_mock_only_talks_is_ready_and_its_model_called_weak(
    litellm: Peer, tmp_path: Path
) -> None:
    """The mock `says` answers anything with one sentence: it takes all, enforces nothing, and never calls."""
    code, report, _ = examine(litellm, "says", tmp_path)
    assert (code, report["verdict"]) == (0, "ready")
    assert {"says", "calls", "relayed"} <= set(report["facts"]["models"])
    ended = outcomes(report)
    assert [ended[name] for name in ("reachable", "key", "model", "plain", "streamed")] == ["ok"] * 5
    assert report["facts"]["stream_done"] is True
    assert report["facts"]["calls_by_itself"] == 0
    assert (ended["tool_choice_required"], ended["tool_choice_named"]) == ("no", "no")
    assert "imagination" in {one["code"] for one in report["diagnoses"]}


def test_calls_that_a_gateway_finishes_with_stop_are_named(litellm: Peer, tmp_path: Path) -> None:
    """LiteLLM gives its mock calls with the finish reason "stop": known from its own tests in `test_litellm.py`."""
    code, report, _ = examine(litellm, "calls", tmp_path, "--quick")
    assert code == 0
    assert "shape:finish_reason:is_stop" in faults(report)


def test_a_model_that_the_gateway_does_not_know_is_said_with_the_nearest(
    litellm: Peer, tmp_path: Path
) -> None:
    code, report, err = examine(litellm, "sayz", tmp_path, "--quick")
    assert (code, report["verdict"]) == (1, "unusable")
    assert outcomes(report)["model"] == "failed"
    assert report["facts"]["nearest_models"][0] == "says"
    assert "says" in err


def test_a_gateway_that_throttles_is_said_to(litellm: Peer, tmp_path: Path) -> None:
    code, report, _ = examine(litellm, "throttled", tmp_path, "--quick")
    assert code == 1
    assert {"throttled", "error:RateLimited"} & codes(report)
    assert "free_tier" in {one["code"] for one in report["diagnoses"]}


# ── llama.cpp ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_server_with_a_very_small_model_is_ready_and_its_window_read(llama: Peer, tmp_path: Path) -> None:
    """Started with a window of 2048 tokens and a key; the build takes a forced tool_choice and does not enforce it."""
    (tmp_path / "glassloop.toml").write_text(SMALL)
    code, report, _ = examine(llama, "smollm2", tmp_path)
    assert (code, report["verdict"]) == (0, "ready"), report["why"]
    assert report["facts"]["models"] == ["smollm2"]
    assert report["facts"]["window"] == 2048
    assert report["learnt"]["context_window"] == 2048
    ended = outcomes(report)
    assert [ended[name] for name in ("reachable", "key", "model", "plain")] == ["ok"] * 4
    assert ended["streamed"] in ("ok", "mended")
    assert report["facts"]["stream_done"] is True
    assert ended["bad_request"] == "ok"
    assert "silent_truncation" not in codes(report)
    assert not [code for code in faults(report) if code.startswith(("transport", "body", "error"))]
    assert "llamacpp_window" in {one["code"] for one in report["diagnoses"]}


def test_a_wrong_key_is_the_only_thing_said_of_a_server_that_wants_another(
    llama: Peer, tmp_path: Path
) -> None:
    code, report, err = examine(llama, "smollm2", tmp_path, "--quick", key="not-the-key-of-this-server")
    assert (code, report["verdict"]) == (1, "unusable")
    assert outcomes(report)["key"] == "failed"
    assert {one["code"] for one in report["diagnoses"]} == {"wrong_key"}
    assert "not-the-key-of-this-server" not in err + json.dumps(report)
