"""What each kind of deviation is and what Glassloop does about it, in words: tables, one row a code.

A mend that has no row here is still found and told in its own words.
"""

from __future__ import annotations

from collections.abc import Mapping

Words = tuple[str, str]
"""What it is, and what Glassloop does about it."""

MENDS: Mapping[str, Words] = {
    "text_call": (
        "tool calls come as text",
        "reads calls out of text, if the tool is known and the arguments fit",
    ),
    "call_in_reasoning": ("tool calls come inside the reasoning", "takes them only where nothing else came"),
    "thinking_in_content": ("thinking stands in the content", "splits it off: it is shown as reasoning"),
    "calls_shape": ("calls come in an unusual place or shape", "reads them all the same"),
    "legacy_function_call": ("calls come as the old function_call", "reads it as a tool call"),
    "calls_in_content": ("calls come as parts of the content", "reads them as tool calls"),
    "empty_call": ("an empty call comes along", "drops it"),
    "bundled_calls": ("calls come bundled in an invented one", "takes the bundle apart"),
    "several_choices": ("several choices come though one was asked for", "merges them into one message"),
    "content_part": ("a part of the content is no text", "leaves it out"),
    "content_shape": ("the content is neither text nor a list of parts", "takes it as JSON text"),
    "tool_name": ("tool names are misspelt", "undoes spelling, and never guesses"),
    "encoded_twice": ("arguments are encoded twice", "decodes them twice"),
    "fenced_arguments": ("arguments stand in a code fence", "takes the fence off"),
    "text_around_arguments": ("text stands around the arguments", "takes the object alone"),
    "repeated_arguments": ("arguments come more than once", "keeps the one that counts"),
    "control_characters": ("raw line breaks stand inside strings", "takes them as they are"),
    "number_as_text": ("a number stands where text is declared", "takes it as it was written"),
    "trailing_comma": ("arguments end in a stray comma", "reads them by relaxed rules"),
    "wrong_escape": ("arguments hold escapes that JSON has not", "reads them by relaxed rules"),
    "escaped_quotes": ("arguments lost their outer quotes", "reads them by relaxed rules"),
    "escapes_between": ("arguments hold escapes outside strings", "reads them by relaxed rules"),
    "template_quotes": ("the template's quote tokens stand in the arguments", "reads them by relaxed rules"),
    "typographic_quotes": ("arguments have typographic quotes", "reads them by relaxed rules"),
    "html_entities": ("arguments are escaped for HTML", "reads them by relaxed rules"),
    "python_literal": ("arguments are Python, not JSON", "reads them as a literal; nothing is run"),
    "json5": ("arguments are relaxed JSON", "reads them by relaxed rules"),
    "unasked_call": ("calls come though none may", "runs none of them"),
    "foreign_shape": ("an answer has another API's shape", "reads it as that"),
    "xml_arguments": ("arguments are XML", "reads the parameters out of it"),
    "empty_list_arguments": ("no arguments come as []", "takes it for none"),
    "list_arguments": ("arguments come as a list of one", "takes the one"),
    "wrapped_arguments": ("arguments come in a wrapper", "takes the wrapper off"),
    "lone_surrogate": ("half a character comes", "replaces it by U+FFFD"),
    "cumulative_chunks": ("each chunk repeats what came before", "reads only what is new in it"),
    "unreadable_chunk": (
        "a chunk of the stream is no JSON",
        "leaves it out, and never if a call may be in it",
    ),
    "invented_turn": ("the model goes on as the user or a tool", "cuts that off"),
    "control_tokens": ("words of the chat template leak into the text", "removes them"),
    "no_terminal": ("streams end without an end mark", "believes it once it has happened twice"),
    "refused_generation": ("the endpoint cannot read its model's calls", "reads the call from the error"),
    "arguments_coerced": ("arguments have the wrong type", "converts what can be converted without loss"),
}

SHAPES: Mapping[str, str] = {
    "tool_calls.id": "gives calls ids of its own",
    "tool_calls.index": "tells calls apart by id, name and complete arguments too",
    "tool_calls.name": "reads the name where it comes; a call without one is sent back",
    "tool_calls.type": "does not need it",
    "tool_calls.function": "reads name and arguments where they stand",
    "arguments": "climbs down a ladder of readings; what is not complete never runs",
    "finish_reason": "goes by what came, not by this word",
    "body": "goes by the first bytes, not by headers",
    "content-type": "goes by the first bytes, not by headers",
    "usage": "takes it as unknown, never as 0",
    "[DONE]": "does not need it after a finish reason",
    "role": "does not need it",
    "event": "reads the data all the same",
    "error": "reads the error, and retries, adapts or raises",
}
"""What is done about a deviation from the published shape, by place."""

READS_IT = "reads it all the same"

BODIES: Mapping[str, Words] = {
    "error_object": ("an error comes with a status of success", "reads the error: retries, adapts or raises"),
    "no_choices": ("an answer without choices comes", "asks again"),
    "not_json": ("an answer that is no JSON comes", "asks again"),
    "html": ("a web page comes in place of an answer", "asks once more, then says so"),
    "empty_body": ("an empty answer comes", "asks again"),
    "cut_off": ("an answer ends before it is complete", "asks again; no call of it runs"),
    "error_finish": ("the model's turn ends in an error", "asks again"),
}
"""Bodies that are no reply."""

TRANSPORT: Mapping[str, Words] = {
    "stalled": ("the answer stalls", "hangs up after a while and asks again"),
    "hung_up": ("the connection breaks", "asks again"),
    "certificate": ("the certificate is not trusted", ""),
    "unknown_host": ("the host is not known", ""),
    "unreachable": ("nothing listens there", ""),
    "proxy": ("the proxy on the way fails", ""),
    "no_http": ("the answer is no HTTP", "asks again"),
    "bad_coding": ("the answer cannot be decoded", ""),
}

STATUSES: Mapping[str, Words] = {
    "throttled": ("requests are throttled", "waits as long as it is told, then asks again"),
    "outage": ("requests fail now and then", "asks again, waiting longer each time"),
    "redirect": ("requests are redirected", "follows to the same host only, as POST, and remembers it"),
    "garbled_call": ("streamed calls come garbled", "asks without streaming"),
}

PROBLEMS: Mapping[str, Words] = {
    "cut_off": ("a reply is cut off", "runs no call of it: the model is told"),
    "unknown_tool": ("the model calls a tool that there is none of", "tells the model which tools there are"),
    "no_name": ("a call names no tool", "tells the model"),
    "bad_arguments": ("arguments cannot be read or do not fit", "tells the model what is wrong"),
    "empty": ("the model says nothing", "asks again, then says so"),
    "reasoning_only": ("nothing but reasoning comes", "asks for the answer; else shows the reasoning"),
    "refusal": ("the answer is a refusal", "shows it as the answer"),
    "calls_unasked": ("calls come though no tool was offered", "sends them back; none runs"),
    "overflow": ("the endpoint says that the conversation is too long", "shortens it and asks again"),
    "call_and_draft": ("calls come structured and as text", "takes the structured ones"),
}

ADAPTATIONS: Mapping[str, Words] = {
    "drop": ("{rest} is refused", "does not send {rest}"),
    "rename": ("{rest} is refused under this name", "sends {rest} under the name that is taken"),
    "clamp": ("a value of {rest} is out of range", "stays within the range"),
    "set_fields": ("{rest} must be set", "sets {rest} as it is wanted"),
    "max_output": ("so much output is refused", "asks for at most {rest} tokens"),
    "tool_mode": ("tools are refused", "describes tools in text, and reads calls from text"),
    "tool_choice": ("a tool_choice is refused", "sends another tool_choice in its place ({rest})"),
    "schema_diet": ("a tool's schema is refused", "leaves out of schemas what is refused (step {rest})"),
    "no_properties": ("objects without properties are refused", "leaves such parameters out"),
    "names": ("a tool's name is refused", "sends plain names, and translates them back"),
    "max_tools": ("so many tools are refused", "sends at most {rest} tools"),
    "max_description": ("a tool's description is too long", "cuts descriptions at {rest} characters"),
    "calls_need_tools": (
        "past calls are refused where no tools are sent",
        "sends the past tools, and forbids them",
    ),
    "system": ("the role of the instructions is refused", "sends them as {rest}"),
    "alternate": ("turns must alternate", "merges neighbours"),
    "user_after_tool": ("a user message after a result is refused", "puts it into the result"),
    "parallel_calls": ("several calls in one turn are refused", "sends each as a turn of its own"),
    "call_content": ("the content beside past calls is refused", "spells it otherwise ({rest})"),
    "reasoning_back": ("reasoning that is passed back is refused", "does not pass it back"),
    "reasoning_name": ("reasoning must be passed back", "passes it back as {rest}"),
    "signature": ("a thought signature is missing", "sends the documented placeholder"),
    "call_extra": ("extra fields of past calls are refused", "does not pass them back"),
    "call_index": ("past calls must be numbered", "numbers them"),
    "ids": ("call ids are refused", "sends ids of its own"),
    "arguments": ("past arguments are refused in this form", "sends them as {rest}"),
    "tool_name": ("a result's tool name is wanted otherwise", "sends it, or leaves it out, as wanted"),
    "stream": ("streaming is refused", "asks for whole answers"),
    "stream_only": ("only streams are answered", "always streams"),
    "stream_with_tools": ("streaming is refused where there are tools", "asks for whole answers there"),
    "images": ("images are refused", "describes them in text"),
    "images_in_tools": ("images in results are refused", "sends them in a user message"),
    "files": ("files are refused", "describes them in text"),
    "parts": ("content in parts is refused", "sends text alone"),
    "bare": ("an unnamed field is refused", "leaves out what some endpoints do not know"),
    "redirect": ("requests are redirected", "asks there at once"),
    "streamed_calls": ("streamed calls come garbled", "asks for whole answers where there are tools"),
    "no_terminal": ("streams end without an end mark", "believes their end"),
    "stream_options": ("usage is left out of streams unless asked for", "asks for it"),
    "context_window": ("the context window is known", "shortens conversations in time"),
}
"""What is learned, by the first word of its code; {rest} is what follows it."""


def adaptation(code: str) -> Words:
    """What taught a lesson of this code and what is done from now on; both "" for a code without words."""
    head, _, rest = code.partition(":")
    what, does = ADAPTATIONS.get(head, ("", ""))
    return what.format(rest=rest), does.format(rest=rest)
