"""`ChatServer`: what it counts, and clients that leave."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import struct
import time

import pytest

from glassloop import Agent, Warned
from glassloop.models.endpoint import Endpoint
from glassloop.testing.server import ChatServer, Completion, Raw, Request, says


def test_it_counts_roughly_what_it_was_sent_so_that_nothing_seems_to_be_dropped() -> None:
    async def ask() -> tuple[list[object], int | None]:
        async with ChatServer([says("ok")]) as server:
            agent = Agent(Endpoint(server.base_url, "m"))
            async with agent.stream("a long question. " * 5_000) as run:
                warned = [event async for event in run if isinstance(event, Warned)]
            await agent.model.close()
            return warned, run.result.usage.prompt_tokens

    warned, counted = asyncio.run(ask())
    assert warned == []
    assert counted == pytest.approx(5_000 * 17 / 4, rel=0.01)


BODY = json.dumps({"model": "m", "stream": True, "messages": []}).encode()
REQUEST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY
LEAVING = {
    "while much is written": Completion({"role": "assistant", "content": "x" * 200_000}),
    "between two pieces": Raw([b"data: x\n\n"] * 50, pause=0.01),
}


@pytest.mark.parametrize("case", LEAVING)
def test_a_client_that_hangs_up_is_no_error(case: str, caplog: pytest.LogCaptureFixture) -> None:
    def play(request: Request) -> Completion | Raw:
        return LEAVING[case]

    with caplog.at_level(logging.WARNING), ChatServer(play) as server:
        client = socket.create_connection(("127.0.0.1", server.port))
        client.sendall(REQUEST)
        client.recv(100)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close with a reset
        client.close()
        deadline = time.monotonic() + 5
        while server.open_connections and time.monotonic() < deadline:
            time.sleep(0.01)
        assert server.open_connections == 0
    assert caplog.records == []
