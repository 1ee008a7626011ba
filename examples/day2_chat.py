"""A chat on OpenRouter with four tools: weather, calculator, notes and clock. Needs OPENROUTER_API_KEY in `.env`.

Run it: `python examples/day2_chat.py`. Another model: `GLASSLOOP_MODEL=ollama:qwen3 python examples/day2_chat.py`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from glassloop import Agent, GlassloopError, Model, TextDelta, ToolFinished
from glassloop.tools.builtin import load

MODEL = "openrouter:openai/gpt-oss-120b"
NOTES = Path(__file__).parent / "notes"


def make_agent(model: str | Model) -> Agent[str]:
    names = ("weather", "calculator", "search_notes", "current_time")
    tools = [tool for name in names for tool in load(name, {"notes_folder": str(NOTES)})]
    return Agent(model, tools=tools, instructions="You are a helpful assistant. Use tools rather than guess.")


def chat(agent: Agent[str]) -> None:
    result = None
    print("Ask me anything. quit: leave, history: what was said, clear: start afresh.")
    while True:
        try:
            question = input("\nyou> ").strip()
        except (EOFError, KeyboardInterrupt):
            return
        if question in ("quit", "exit", "q"):
            return
        if question == "clear":
            result = None
        elif question == "history":
            for message in result.messages if result else []:
                print(f"{message['role']}: {message.get('content') or message.get('tool_calls')}")
        elif question:
            try:
                with agent.stream_sync(question, session=result and result.session) as run:
                    for event in run:
                        if isinstance(event, TextDelta):
                            print(event.text, end="", flush=True)
                        elif isinstance(event, ToolFinished):
                            print(f"  [{event.call.name}: {event.result.text}]")
                result = run.result
            except GlassloopError as error:
                print(error)


if __name__ == "__main__":
    try:
        chat(make_agent(os.environ.get("GLASSLOOP_MODEL", MODEL)))
    except GlassloopError as error:  # a missing key, say
        sys.exit(str(error))
