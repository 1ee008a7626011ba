"""Four mistakes that most first agents make, each run wrong and right, side by side.

Run it: python examples/pitfalls.py. Standard library only; the replies are what endpoints really send.
Every pitfall is a pair of functions: read the one called `..._wrong`, then the one called `..._right`.
"""

import json
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor


def get_weather(city):
    weather = {"Tokyo": "18 °C, light rain", "Beijing": "24 °C, clear"}
    if city not in weather:
        raise LookupError(f"unknown city {city!r}; known: {', '.join(weather)}")
    return weather[city]


def call(arguments):
    """A tool call as it comes over the wire: the arguments are a string that holds JSON."""
    return {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}


def outcome(function, *arguments):
    """What came of it, as text: the value, or the exception that would have ended the agent."""
    try:
        return function(*arguments)
    except Exception as error:
        return f"raises {type(error).__name__}: {error}"


# ── 1. Arguments are a string ────────────────────────────────────────────────────────────────────────


def arguments_wrong(call):
    return get_weather(**call["function"]["arguments"])  # a str, not a dict


def arguments_right(call):
    text = call["function"]["arguments"]
    try:
        arguments = json.loads(text or "{}")  # a call without arguments may come as ""
    except json.JSONDecodeError as error:
        return f"Error: the arguments are not valid JSON ({error}). You sent: {text}"
    if not isinstance(arguments, dict):
        return f"Error: the arguments must be a JSON object. You sent: {text}"
    return get_weather(**arguments)  # what was cut off never gets here: it is not closed and guessed


def arguments_pitfall():
    for text in ('{"city": "Tokyo"}', '{"city": "Tok', '"Tokyo"'):
        yield (
            f"arguments = {text}",
            outcome(arguments_wrong, call(text)),
            outcome(arguments_right, call(text)),
        )


# ── 2. A tool's error belongs to the model ───────────────────────────────────────────────────────────


def model_that_reads(messages):
    """Misspells at first, and corrects itself when it is told what was wrong."""
    results = [message["content"] for message in messages if message["role"] == "tool"]
    if not results:
        return {"role": "assistant", "content": None, "tool_calls": [call('{"city": "Tokio"}')]}
    if results[-1].startswith("Error"):
        return {"role": "assistant", "content": None, "tool_calls": [call('{"city": "Tokyo"}')]}
    return {"role": "assistant", "content": f"In Tokyo: {results[-1]}."}


def run_wrong(call):
    return get_weather(**json.loads(call["function"]["arguments"]))


def run_right(call):
    try:
        return get_weather(**json.loads(call["function"]["arguments"]))
    except Exception as error:
        return f"Error: {type(error).__name__}: {error}"  # type and message; a traceback helps no model


def answer_with(run):
    messages = [{"role": "user", "content": "Weather in Tokio?"}]
    for _ in range(5):
        message = model_that_reads(messages)
        messages.append(message)
        if not message.get("tool_calls"):
            return f"answers after {len(messages)} messages: {message['content']}"
        for each in message["tool_calls"]:
            messages.append({"role": "tool", "tool_call_id": each["id"], "content": run(each)})
    return "gives up"


def tool_error_pitfall():
    yield "the model misspells a city", outcome(answer_with, run_wrong), outcome(answer_with, run_right)


# ── 3. finish_reason lies ────────────────────────────────────────────────────────────────────────────


class Endpoint:
    """Gives its replies in turn, the last one again and again. Its patience is five requests."""

    def __init__(self, *replies):
        self.replies, self.requests = replies, 0

    def __call__(self, messages):
        self.requests += 1
        if self.requests > 5:
            raise RuntimeError("five requests, and it still asks")
        return self.replies[min(self.requests, len(self.replies)) - 1]


def reply(finish_reason, content, tool_calls):
    return finish_reason, {"role": "assistant", "content": content, "tool_calls": tool_calls}


ASKS = [call('{"city": "Tokyo"}')]
CUT_OFF = [call('{"city": "Tokyo", "day": "tomor')]
ANSWER = reply("stop", "It rains.", [])

LIES = {
    "'tool_calls' over a text, tool_calls []": [reply("tool_calls", "It rains.", [])],
    "'tool_calls' over a text, tool_calls null": [reply("tool_calls", "It rains.", None)],
    "'function_call' over a text, tool_calls []": [reply("function_call", "It rains.", [])],
    "'tool_calls' over nothing, for ever": [reply("tool_calls", "", [])],
    "'stop' over nothing, once": [reply("stop", "", []), ANSWER],
    "null over nothing, once": [reply(None, None, []), ANSWER],
    "'stop' over a call": [reply("stop", None, ASKS), ANSWER],
    "null over a call": [reply(None, None, ASKS), ANSWER],
    "'length' over half a text": [reply("length", "It rai", [])],
    "'length' over half a call": [reply("length", None, CUT_OFF), ANSWER],
}


def result_of(call):
    return {"role": "tool", "tool_call_id": call["id"], "content": run_right(call)}


def loop_wrong(endpoint):
    messages = [{"role": "user", "content": "Weather in Tokyo?"}]
    while True:
        finish_reason, message = endpoint(messages)
        messages.append(message)
        if finish_reason not in ("tool_calls", "function_call"):
            return f"answers {message['content']!r}"
        messages.extend(result_of(call) for call in message["tool_calls"])


def loop_right(endpoint, rounds=5):
    messages = [{"role": "user", "content": "Weather in Tokyo?"}]
    for _ in range(rounds):
        finish_reason, message = endpoint(messages)
        calls, text = message.get("tool_calls") or [], message.get("content") or ""
        if calls and finish_reason == "length":  # the one finish_reason to believe: half a call never runs
            messages.append({"role": "user", "content": "Your call was cut off. Make it shorter."})
        elif calls:
            messages.extend([message, *map(result_of, calls)])
        elif text.strip():
            return f"answers {text!r}" + (
                ", and says that it is cut off" if finish_reason == "length" else ""
            )
        # No calls and no text is no turn: it is not kept, and the same is asked again.
    return f"says that {rounds} requests brought no answer"


def finish_reason_pitfall():
    for title, replies in LIES.items():
        yield title, outcome(loop_wrong, Endpoint(*replies)), outcome(loop_right, Endpoint(*replies))


# ── 4. A timeout that does not time out ──────────────────────────────────────────────────────────────


class HangingTool:
    """Answers after `seconds`, or as soon as it is let go. A thread cannot be stopped from outside."""

    def __init__(self, seconds):
        self.seconds, self.let_go, self.finished = seconds, threading.Event(), threading.Event()

    def __call__(self):
        self.let_go.wait(self.seconds)
        self.finished.set()
        return "18 °C, light rain"


def timeout_wrong(tool, seconds):
    with ThreadPoolExecutor() as pool:  # leaving this block waits for the thread, timeout or not
        try:
            return pool.submit(tool).result(timeout=seconds)
        except TimeoutError:
            return f"Error: no result within {seconds} s."


def timeout_right(tool, seconds):
    results = []
    thread = threading.Thread(target=lambda: results.append(tool()), daemon=True)  # never holds up the exit
    thread.start()
    thread.join(seconds)
    if results:
        return results[0]
    # It may still be at work, so the model must not be told that nothing happened.
    return (
        f"Error: no result within {seconds} s. It was started and may still finish: check before repeating."
    )


def told(tool, text):
    state = "after the tool was done" if tool.finished.is_set() else "while the tool still hangs"
    tool.let_go.set()
    return f"goes on {state}, with: {text}"


def timeout_pitfall():
    wrong, right = HangingTool(seconds=0.5), HangingTool(seconds=60)
    yield (
        "a tool hangs, its timeout is 0.1 s",
        told(wrong, outcome(timeout_wrong, wrong, 0.1)),
        told(right, outcome(timeout_right, right, 0.1)),
    )


# ── Side by side ─────────────────────────────────────────────────────────────────────────────────────

PITFALLS = {
    "1. Arguments are a string": arguments_pitfall,
    "2. A tool's error belongs to the model": tool_error_pitfall,
    "3. finish_reason lies: look at the calls": finish_reason_pitfall,
    "4. A timeout that does not time out": timeout_pitfall,
}
WIDTH = 46


def side_by_side(left, right):
    columns = textwrap.wrap(left, WIDTH), textwrap.wrap(right, WIDTH)
    for row in range(max(map(len, columns))):
        cells = [column[row] if row < len(column) else "" for column in columns]
        print(f"    {cells[0]:<{WIDTH}}  | {cells[1]}".rstrip())


if __name__ == "__main__":
    for title, pitfall in PITFALLS.items():
        print(f"{title}\n")
        side_by_side("WRONG", "RIGHT")
        for case, wrong, right in pitfall():
            print(f"  {case}")
            side_by_side(wrong, right)
        print()
