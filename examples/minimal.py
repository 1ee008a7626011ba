"""An agent in one file, with the standard library alone: a model, some tools and a loop.

Run it: python examples/minimal.py. The model plays a script, so no key is needed. For a real one, write a
function that posts {"model": ..., "messages": messages, "tools": tools} to ".../chat/completions" and
returns choices[0]["message"] of the answer. Nothing else changes.
"""

import ast
import json
import operator
from concurrent.futures import ThreadPoolExecutor

# ── Tools: plain functions, and what the model is told about them ────────────────────────────────────

WEATHER = {"Tokyo": "18 °C, light rain", "Beijing": "24 °C, clear"}
NOTES = {"visa": "Apply by the 3rd.", "hotel": "Two nights in Asakusa."}
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def get_weather(city):
    return WEATHER.get(city, f"no weather station in {city}")


def calculate(expression):
    def value(node):
        match node:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                return OPERATORS[type(op)](value(left), value(right))
        raise ValueError("only numbers, + - * / and brackets are understood")

    return f"{expression} = {value(ast.parse(expression, mode='eval').body)}"


def read_note(title):
    if title not in NOTES:
        raise LookupError(f"there is no note {title!r}; there are: {', '.join(NOTES)}")
    return NOTES[title]


TOOLS = {"get_weather": get_weather, "calculate": calculate, "read_note": read_note}


def schema(name, description, parameter):
    parameters = {"type": "object", "properties": {parameter: {"type": "string"}}, "required": [parameter]}
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


SCHEMAS = [
    schema("get_weather", "Current weather in a city.", "city"),
    schema("calculate", "Evaluate an arithmetic expression.", "expression"),
    schema("read_note", "Read one of the user's notes.", "title"),
]

# ── The loop: this is the agent ──────────────────────────────────────────────────────────────────────


def run_agent(model, messages, max_rounds=8):
    """Ask the model and run what it asks for, until it answers or the rounds are used up."""
    for _ in range(max_rounds):
        message = model(messages, SCHEMAS)
        messages.append(message)
        calls = message.get("tool_calls") or []
        if not calls:
            return message["content"]
        with ThreadPoolExecutor() as pool:  # all calls of a turn at once; map keeps their order
            results = list(pool.map(run_call, calls))
        messages.extend(results)
        for call, result in zip(calls, results, strict=True):
            print(f"  {call['function']['name']}({call['function']['arguments']}) -> {result['content']}")
    return model(messages, [])["content"]  # out of rounds: a last answer, without tools to ask for


def run_call(call):
    """One call in, one result out, always. What goes wrong is told to the model, which can do better."""
    name, text = call["function"]["name"], call["function"]["arguments"]  # arguments are a string of JSON
    if name not in TOOLS:
        content = f"Error: there is no tool {name!r}. There are: {', '.join(TOOLS)}."
    else:
        try:
            content = str(TOOLS[name](**json.loads(text)))
        except json.JSONDecodeError as error:
            content = f"Error: the arguments are not valid JSON ({error}). You sent: {text}"
        except Exception as error:
            content = f"Error: {type(error).__name__}: {error}"
    return {"role": "tool", "tool_call_id": call["id"], "content": content}


# ── A model that plays a script ──────────────────────────────────────────────────────────────────────


def asks(*calls):
    """An assistant message that asks for tools, as it comes over the wire."""
    functions = [{"name": name, "arguments": arguments} for name, arguments in calls]
    tool_calls = [{"id": f"call_{f['name']}", "type": "function", "function": f} for f in functions]
    return {"role": "assistant", "content": None, "tool_calls": tool_calls}


def scripted(*replies):
    lines = iter(replies)
    return lambda messages, tools: next(lines)


if __name__ == "__main__":
    question = "How is the weather in Tokyo, what is (15 + 27) * 3, and what does my note on packing say?"
    answer = "Tokyo: 18 °C, light rain. (15 + 27) * 3 is 126. You have no note on packing (only visa, hotel)."
    model = scripted(
        asks(("get_weather", '{"city": "Tokyo"}'), ("calculate", '{"expression": "(15 + 27) * 3"}')),
        asks(("read_note", '{"title": "packing"}')),
        {"role": "assistant", "content": answer},
    )
    print(question)
    print(run_agent(model, [{"role": "user", "content": question}]))
