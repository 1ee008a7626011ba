"""Error answers: what is retried, changed, compacted or raised, whoever says it and in whatever shape.

The texts are what a provider's error would say, in many wordings; the rules know word classes, not these texts.
"""

import cProfile
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassloop.core.entries import Image, Reply, System, Text, ToolCall, ToolResult, User
from glassloop.core.errors import EndpointError, RateLimited
from glassloop.core.tools import ToolSpec
from glassloop.wire.judgement import Adapt, Overflow, Raise, Retry, Salvage
from glassloop.wire.profile import Profile
from glassloop.wire.rejection import judge
from glassloop.wire.request import Encoder
from glassloop.wire.sent import Sent

NOW = 1_790_000_000.0
SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "format": "date", "default": "x"},
        "unit": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "additionalProperties": False,
}
TOOLS = tuple(ToolSpec(name, "does it", SCHEMA) for name in ("get_weather", "add"))
SIGNED = {"extra_content": {"google": {"thought_signature": "x"}}}
HISTORY = (
    System("s"),
    User((Text("q"),)),
    Reply(
        tool_calls=(ToolCall("call_abcdefghijkl", "get_weather", {"city": "Oslo"}, extra=SIGNED),),
        reasoning="hm",
        reasoning_field="reasoning_content",
        raw={"reasoning_content": "hm"},
    ),
    ToolResult("call_abcdefghijkl", "get_weather", (Text("ok"),)),
    User((Text("and?"), Image(data=b"x"))),
)
SETTINGS = {
    "temperature": 1.5,
    "max_tokens": 32000,
    "top_p": 0.9,
    "tool_choice": "required",
    "parallel_tool_calls": True,
    "seed": 1,
    "response_format": {"type": "json_object"},
    "stop": ["x"],
    "reasoning_effort": "high",
}


def request_of(profile=None, *, entries=HISTORY, tools=TOOLS, settings=None, stream=True, tried=()):
    profile = profile or Profile()
    settings = SETTINGS if settings is None else settings
    return Sent.of(Encoder(profile).encode("m", entries, tools, settings, stream=stream), profile, tried)


def judged(status, text, sent=None, headers=None):
    try:
        payload = json.loads(text)
    except ValueError:
        payload = {"error": {"message": text}} if text and not text.startswith("<") else None
        text = text if payload is None else json.dumps(payload)
    return judge(status, headers or {}, payload, text, sent or request_of(), now=NOW)


def outcome(judgement):
    match judgement:
        case Adapt(code=code):
            return code
        case Overflow(window=window):
            return f"Overflow:{window}" if window else "Overflow"
        case Retry(after=after):
            return f"Retry:{after}" if after is not None else "Retry"
        case Raise(error=error):
            return type(error).__name__
    return type(judgement).__name__


CASES = [
    (
        500,
        "Cannot pass both content and thinking in an assistant message with tool calls! Put the analysis in one.",
        "reasoning_back:never",
    ),
    (
        500,
        "Jinja Exception: After the optional system message, conversation roles must alternate user and assistant roles except for tool calls and results.",
        "alternate:yes",
    ),
    (400, "Too many input tokens. Max input tokens: 8192, request input token count: 9279", "Overflow:8192"),
    (
        400,
        "Malformed input request: expected maxLength: 50000, actual: 52611, please reformat your input and try again.",
        "Overflow",
    ),
    (400, '{"error": {"message": "Invalid input", "param": "tools.1"}}', "schema_diet:2"),
    (
        400,
        '{"error": {"message": "Invalid schema", "param": "tools[0].function.parameters"}}',
        "schema_diet:2",
    ),
    (
        422,
        '{"detail": [{"type": "extra_forbidden", "loc": ["body", "messages", 2, "reasoning_content"], "msg": "Extra inputs are not permitted"}]}',
        "reasoning_back:never",
    ),
    (
        422,
        '{"detail": [{"type": "extra_forbidden", "loc": ["body", "messages", 3, "name"], "msg": "Extra inputs are not permitted"}]}',
        "tool_name:no",
    ),
    (400, "There is more than one system message in messages", "system:user"),
    (
        429,
        "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day",
        "Retry",
    ),
    (404, "No endpoints found matching your data policy", "RequestRejected"),
    (400, "messages: at least one message is required", "RequestRejected"),
    (400, "We could not parse the JSON body of your request.", "RequestRejected"),
    (400, "Request contains an invalid argument.", "RequestRejected"),
    (400, '{"statusCode":400,"error":"Bad Request","message":"`seed` is not allowed"}', "drop:seed"),
    (400, '{"errors":[{"message":"Unknown field: reasoning_effort"}]}', "drop:reasoning_effort"),
    (
        400,
        '{"error":{"message":"Unsupported value","param":"temperature","code":"unsupported_value"}}',
        "drop:temperature",
    ),
    (
        200,
        '{"base_resp":{"status_code":1004,"status_msg":"login fail: Please carry the API secret key in the Authorization field"}}',
        "AuthenticationFailed",
    ),
    (200, '{"base_resp":{"status_code":1002,"status_msg":"rate limit"}}', "Retry"),
    (200, '{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}', "OutOfCredit"),
    (400, "invalid params, context window exceeds limit (2013)", "Overflow"),
    (400, "Input is too long for requested model.", "Overflow"),
    (400, "Please reduce the length of the messages or completion.", "Overflow"),
    (400, "The prompt is too long: 200000, model maximum context length: 128000", "Overflow:128000"),
    (400, "Prompt exceeds max length", "Overflow"),
    (400, "Prompt 超长", "Overflow"),
    (400, "输入的内容过长，超过模型上下文长度限制", "Overflow"),
    (500, "context size has been exceeded", "Overflow"),
    (
        400,
        "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens",
        "Overflow:4096",
    ),
    (400, "prompt token count of 9000 exceeds the limit of 8192", "Overflow:8192"),
    (400, "Total tokens of image and text exceed max message tokens", "Overflow"),
    (
        400,
        "Invalid 'messages[1].content': string too long. Expected a string with maximum length 1048576, but got a string with length 2000000 instead.",
        "Overflow:1048576",
    ),
    (400, "The input (9000 tokens) exceeds the available context", "Overflow"),
    (400, "temperature: Input should be greater than or equal to 2", "clamp:temperature:2"),
    (400, "max_tokens must be greater than thinking.budget_tokens", "drop:max_tokens"),
    (400, "Tool names must be unique", "RequestRejected"),
    (400, "Invalid parameter: 'tool_choice' is only allowed when 'tools' are specified.", "drop:tool_choice"),
    (
        400,
        "Invalid 'messages[3].name': string does not match pattern. Expected a string that matches the pattern '^[^\\s<|\\\\/>]+$'.",
        "tool_name:no",
    ),
    (
        400,
        "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.",
        "ids:nine",
    ),
    (400, "messages.3: tool_result block(s) that provide toolUseId without a matching tool_use", "ids:nine"),
    (400, 'first message must use the "user" role', "alternate:yes"),
    (
        400,
        'messages: roles must alternate between "user" and "assistant", but found multiple "user" roles in a row',
        "alternate:yes",
    ),
    (400, "Unsupported content type: image_url", "images:no"),
    (400, "This model does not support image inputs", "images:no"),
    (400, "Invalid content type. image_url is only supported by certain models.", "images:no"),
    (400, "At most 0 image(s) may be provided in one request.", "images:no"),
    (400, "content must be a string", "parts:no"),
    (422, "messages.4.content: str type expected", "parts:no"),
    (400, 'JSON schema conversion failed: Unrecognized schema: {"not":{}}', "schema_diet:2"),
    (400, "array schema missing items", "schema_diet:2"),
    (400, "reference to undefined schema at properties.city", "schema_diet:2"),
    (
        400,
        "tools.0.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12",
        "schema_diet:2",
    ),
    (400, "Input JSON schema does not conform", "schema_diet:2"),
    (400, "too many states for serving: schema", "schema_diet:2"),
    (400, "stream is not supported", "stream:no"),
    (
        400,
        "This model only support stream mode, please enable the stream parameter to access the model. ",
        "RequestRejected",
    ),
    (404, "The requested resource was not found", "RequestRejected"),
    (405, "Method Not Allowed", "RequestRejected"),
    (503, "Service Unavailable", "Retry"),
    (403, "Access denied: country not supported", "AuthenticationFailed"),
    (400, "The security token included in the request is invalid", "AuthenticationFailed"),
    (498, "Flex capacity exceeded", "Retry"),
    (400, "Prompt contains too many tokens for free tier; rate limit 10 requests per minute", "Retry"),
    (422, "ensure this value is less than or equal to 8192: max_tokens", "clamp:max_tokens:8192"),
    (400, "logit_bias is not supported", "RequestRejected"),
    (400, "reasoning_effort must be one of: low, medium", "drop:reasoning_effort"),
    (400, "Invalid value: 'high'. Supported values are: 'low' and 'medium'.", "RequestRejected"),
    (
        404,
        "No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs",
        "tool_mode:text",
    ),
    (
        404,
        "No endpoints found that support the provided 'tool_choice' value. To learn more",
        "drop:tool_choice",
    ),
    (404, "No endpoints found that support image input", "images:no"),
    (400, "registry.ollama.ai/library/gemma:2b does not support tools", "tool_mode:text"),
    (400, "`tool calling` is not supported with this model", "tool_mode:text"),
    (500, "tools param requires --jinja flag", "tool_mode:text"),
    (400, "Function call is not supported for this model.", "tool_mode:text"),
    (400, "This model does not support function calling", "tool_mode:text"),
    (400, "Unrecognized request argument supplied: tools", "tool_mode:text"),
    (400, "tool_choice is not supported", "drop:tool_choice"),
    (
        400,
        "Invalid value for tool_choice: 'required'. Only 'auto' and 'none' are supported",
        "drop:tool_choice",
    ),
    (
        400,
        "The tool_choice parameter does not support being set to required or object in thinking mode",
        "drop:tool_choice",
    ),
    (
        400,
        "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.",
        "drop:parallel_tool_calls",
    ),
    (
        400,
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "rename:max_tokens",
    ),
    (
        400,
        "Unsupported value: 'temperature' does not support 1.5 with this model. Only the default (1) value is supported.",
        "drop:temperature",
    ),
    (
        400,
        "max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided 32000.",
        "clamp:max_tokens:16384",
    ),
    (400, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", "clamp:max_tokens:8192"),
    (
        400,
        "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model",
        "clamp:max_tokens:8192",
    ),
    (400, "Range of max_tokens should be [1, 8192]", "clamp:max_tokens:8192"),
    (400, "temperature: Input should be less than or equal to 1", "clamp:temperature:1"),
    (400, "'temperature' must be between 0 and 1", "clamp:temperature:1"),
    (400, "Unsupported value: 'messages[0].role' does not support 'system' with this model.", "system:user"),
    (400, "Developer instruction is not enabled for models/gemma-3-27b-it", "system:user"),
    (500, "System role not supported", "system:user"),
    (400, "System message must be at the beginning of the conversation", "system:user"),
    (400, "unknown variant `tool`, expected one of `system`, `user`, `assistant`", "tool_mode:text"),
    (400, "Only user and assistant roles are supported!", "system:user+tool_mode:text"),
    (
        400,
        "After the optional system message, conversation roles must alternate user/assistant/user/assistant/...",
        "alternate:yes",
    ),
    (
        400,
        "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
        "alternate:yes",
    ),
    (400, "Unexpected role 'user' after role 'tool'", "user_after_tool:fold"),
    (400, "Not the same number of function calls and responses", "ids:nine"),
    (400, "Tool call id was call_abcdefghijkl but must be a-z, A-Z, 0-9, with a length of 9.", "ids:nine"),
    (
        400,
        "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 53 instead.",
        "ids:safe",
    ),
    (400, "messages.2.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", "ids:safe"),
    (
        400,
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call_1",
        "ids:nine",
    ),
    (400, "tool_call_id not found in previous messages", "ids:nine"),
    (
        400,
        "'messages.3' : for 'role:tool' the following must be satisfied[('messages.3' : property 'name' is unsupported)]",
        "tool_name:no",
    ),
    (422, "messages.3.tool.name: Extra inputs are not permitted", "tool_name:no"),
    (
        400,
        "Missing `reasoning_content` field in the assistant message at message index 2. For more information",
        "reasoning_name:reasoning_content",
    ),
    (
        400,
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
        "reasoning_name:reasoning_content",
    ),
    (
        400,
        "The reasoning_content in the thinking mode must be passed back to the API.",
        "reasoning_name:reasoning_content",
    ),
    (400, "Unknown parameter: 'messages[2].reasoning_content'.", "reasoning_back:never"),
    (
        400,
        "Unable to submit request because function call `x` in the 2. content block is missing a `thought_signature`.",
        "signature:placeholder",
    ),
    (400, "Thought signature is not valid.", "call_extra:no"),
    (
        400,
        "messages[2].tool_calls[0]: Additional properties are not allowed ('extra_content' was unexpected)",
        "call_extra:no",
    ),
    (400, "Invalid value for 'content': expected a string, got null.", "call_content:blank"),
    (400, "messages: text content blocks must be non-empty", "call_content:omit"),
    (400, "Assistant message must have either content or tool_calls, but not none.", "call_content:blank"),
    (500, 'can only concatenate str (not "NoneType") to str', "call_content:blank"),
    (500, "Can only get item pairs from a mapping.", "arguments:object"),
    (
        400,
        "json: cannot unmarshal string into Go struct field ChatRequest.messages.tool_calls.function.arguments of type api.ToolCallFunctionArguments",
        "arguments:object",
    ),
    (
        400,
        "Invalid schema for function 'get_weather': In context=(), 'additionalProperties' is required to be supplied and to be false.",
        "schema_diet:1",
    ),
    (
        400,
        "Invalid JSON payload received. Unknown name \"additionalProperties\" at 'tools[0].function_declarations[0].parameters': Cannot find field.",
        "schema_diet:1",
    ),
    (
        400,
        "* GenerateContentRequest.tools[0].function_declarations[0].parameters.properties[city].format: only 'enum' and 'date-time' are supported for STRING type",
        "schema_diet:1",
    ),
    (
        400,
        "Unable to submit request because `add` functionDeclaration `parameters.u` schema specified other fields alongside any_of.",
        "schema_diet:2",
    ),
    (
        400,
        "Invalid value at 'tools[0].function_declarations[0].parameters.properties[0].value.type' (TYPE_ENUM), \"null\"",
        "schema_diet:2",
    ),
    (
        400,
        "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
        "names:strict",
    ),
    (
        400,
        "Function name was my.tool but must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64.",
        "names:strict",
    ),
    (
        400,
        "Invalid 'tools': array too long. Expected an array with maximum length 1, but got an array with length 2 instead.",
        "max_tools:1",
    ),
    (400, "Unrecognized request argument supplied: seed", "drop:seed"),
    (
        422,
        '{"detail":[{"type":"extra_forbidden","loc":["body","parallel_tool_calls"],"msg":"Extra inputs are not permitted","input":true}]}',
        "drop:parallel_tool_calls",
    ),
    (400, "property 'stop' is unsupported", "drop:stop"),
    (400, "response_format json_object is not supported by this model", "drop:response_format"),
    (400, "This response_format type is unavailable now", "drop:response_format"),
    (400, "`reasoning_effort` is not supported with this model", "drop:reasoning_effort"),
    (400, "Streaming is not supported with tools", "stream_with_tools:no"),
    (
        400,
        "parameter.enable_thinking must be set to false for non-streaming calls",
        "set_fields:enable_thinking",
    ),
    (
        400,
        "This model's maximum context length is 8192 tokens. However, you requested 33000 tokens (1000 in the messages, 32000 in the completion). Please reduce the length of the messages or completion.",
        "max_output:7176",
    ),
    (
        400,
        "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 8192 tokens and your request has 500 input tokens (32000 > 8192 - 500).",
        "max_output:7676",
    ),
    (
        400,
        "This endpoint's maximum context length is 131072 tokens. However, you requested about 235000 tokens (203000 of text input, 32000 in the output).",
        "Overflow:131072",
    ),
    (
        400,
        "input length and `max_tokens` exceed context limit: 188240 + 32000 > 200000, decrease input length or `max_tokens` and try again",
        "max_output:11744",
    ),
    (400, "Range of input length should be [1, 30720]", "Overflow:30720"),
    (400, "Input token length exceeds limit", "Overflow"),
    (400, "tokens in request more than max tokens allowed", "Overflow"),
    (
        413,
        "Request too large for model `x` in organization `o` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 7012, please reduce your message size and try again.",
        "Overflow:6000",
    ),
    (
        429,
        "Rate limit reached for model `x` in organization on tokens per minute (TPM): Limit 6000, Used 5500, Requested 1000. Please try again in 5.1s.",
        "Retry:5.1",
    ),
    (429, "Rate limit reached: Limit 6000, Requested 1000", "Retry"),
    (
        429,
        "You exceeded your current quota, please check your plan and billing details. Please retry in 32.5s.",
        "Retry:32.5",
    ),
    (403, "insufficient balance", "OutOfCredit"),
    (400, "Access denied, please make sure your account is in good standing. Arrearage", "OutOfCredit"),
    (429, "您的账户已欠费，请充值后重试", "OutOfCredit"),
    (400, "API key not valid. Please pass a valid API key.", "AuthenticationFailed"),
    (401, "No auth credentials found", "AuthenticationFailed"),
    (401, "无效的令牌", "AuthenticationFailed"),
    (403, "<html><title>Just a moment...</title></html>", "AuthenticationFailed"),
    (404, "model 'foo' not found, try pulling it first", "ModelNotFound"),
    (404, "The model `gpt-9` does not exist or you do not have access to it.", "ModelNotFound"),
    (400, "foo/bar is not a valid model ID", "ModelNotFound"),
    (400, "Model Not Exist", "ModelNotFound"),
    (503, "No available channel for model gpt-4 under group default", "ModelNotFound"),
    (404, "404 page not found", "RequestRejected"),
    (404, "", "RequestRejected"),
    (400, "Output data may contain inappropriate content.", "ContentFiltered"),
    (
        400,
        "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
        "ContentFiltered",
    ),
    (403, "Your chosen model requires moderation and your input was flagged", "ContentFiltered"),
    (503, "The engine is currently overloaded, please try again later", "Retry"),
    (500, "The server had an error while processing your request. Sorry about that!", "Retry"),
    (502, "<html><head><title>502 Bad Gateway</title></head></html>", "Retry"),
    (504, "upstream request timeout", "Retry"),
    (529, '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', "Retry"),
    (200, '{"error":{"message":"Internal error","code":500}}', "Retry"),
    (200, '{"error":{"message":"Rate limit exceeded: free-models-per-day","code":429}}', "Retry"),
    (200, '{"error":{"message":"Invalid API key","code":401}}', "AuthenticationFailed"),
    (200, '{"error":{"message":"something odd"}}', "RequestRejected"),
    (
        500,
        'error parsing tool call: raw=\'{"name": "get_weather"\', err=unexpected end of JSON input',
        "Salvage",
    ),
    (500, "Failed to parse input at pos 0: <tool_call>{}</tool_call>", "Salvage"),
    (400, "tool_use_failed", "Retry"),
    (400, "You uploaded an unsupported image. Please make sure your image is valid.", "RequestRejected"),
    (400, "unknown variant `image_url`, expected `text`", "images:no"),
    (400, "`logprobs` is not supported", "RequestRejected"),
    (400, "Provider returned error", "Retry"),
    (400, "invalid params, tool result's tool id(call_1) not found (2013)", "ids:nine"),
    (
        400,
        "Invalid request: tool_choice 'specified' is incompatible with thinking enabled",
        "drop:tool_choice",
    ),
    (400, "invalid temperature: must be in (0, 1]", "clamp:temperature:1"),
    (400, "top_p must be less than or equal to 0.5", "clamp:top_p:0.5"),
    (
        400,
        "temperature and top_p cannot both be specified for this model. Please use only one.",
        "drop:top_p",
    ),
]


@pytest.mark.parametrize(("status", "text", "wanted"), CASES)
def test_words_decide_what_is_done(status, text, wanted):
    assert outcome(judged(status, text)) == wanted


UNUSABLE = {
    "not a number": ({"temperature": "hot"}, 400, "Field 'temperature': [json.exception.type_error.302] type must be number, but is string"),
    "not a number, in a validator's words": ({"top_p": [1]}, 422, "body → top_p: Input should be a valid number"),
    "fewer than none": ({"max_tokens": -7}, 400, "Field 'max_tokens': Value must be between -1 <= value <= 2147483647, but got -7"),
    "a local server's word for no limit": ({"max_tokens": -1}, 400, "max_tokens must be at least 1"),
    "the same, elsewhere": ({"max_completion_tokens": -1}, 422, "max_completion_tokens: Input should be greater than 0"),
    "none at all": ({"max_completion_tokens": 0}, 400, "max_completion_tokens is too small: must be at least 1"),
    "half a token": ({"max_tokens": 12.5}, 400, "max_tokens: expected an integer"),
    "a choice that is none": ({"tool_choice": "sometimes"}, 400, "Invalid tool_choice: sometimes"),
    "a choice that nobody lists": ({"tool_choice": "sometimes"}, 422, "tool_choice: Input should be 'auto', 'none' or 'required'"),
    "an effort that is none": ({"reasoning_effort": "enormous"}, 400, "Invalid value: 'enormous'. Supported values for reasoning_effort are: low, medium, high"),
    "a bare format": ({"response_format": "json"}, 400, "response_format: expected object, received string"),
    "a word for yes": ({"parallel_tool_calls": "yes"}, 400, "Invalid type for 'parallel_tool_calls': expected a boolean"),
    "under a server's fault": ({"temperature": "hot"}, 500, "temperature: invalid type, expected a number"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_setting_that_no_endpoint_could_take_is_the_users_to_correct(name):
    settings, status, text = UNUSABLE[name]
    judgement = judged(status, text, request_of(settings=settings))
    assert outcome(judgement) == "RequestRejected"
    [(field, value)] = settings.items()
    assert f"{field} = {json.dumps(value)}" in str(judgement.error)
    assert text in str(judgement.error)
    assert "settings" in judgement.error.hint


TAKEN_ELSEWHERE = [
    ({"temperature": 1.5}, "temperature must be at most 1", "clamp:temperature:1"),
    ({"max_tokens": -1}, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "rename:max_tokens"),
    ({"tool_choice": "any"}, "tool_choice must be one of 'auto', 'none', 'required'", "tool_choice:any:required"),
    ({"tool_choice": "required"}, "tool_choice is not supported", "drop:tool_choice"),
    ({"reasoning_effort": "minimal"}, "Unsupported value for reasoning_effort", "drop:reasoning_effort"),
    ({"stop": "x"}, "stop: expected a list", "drop:stop"),
    ({"top_k": "many"}, "Unrecognized request argument supplied: top_k", "drop:top_k"),
    ({"temperature": "hot", "seed": 1}, "`seed` is not supported", "drop:seed"),
]  # fmt: skip
"""What some endpoint takes is this one's trait, and so is what only it knows."""


@pytest.mark.parametrize(("settings", "text", "wanted"), TAKEN_ELSEWHERE)
def test_a_setting_that_another_endpoint_would_take_is_adapted(settings, text, wanted):
    assert outcome(judged(400, text, request_of(settings=settings))) == wanted


OURS_UNREAD = [
    (500, "Failed to parse tools: [json.exception.out_of_range.403] key 'name' not found; tools = [{\"type\": \"function\"}]", "schema_diet:2"),
    (500, "Failed to parse tools: Unsupported tool type: custom", "schema_diet:2"),
    (500, "Failed to parse messages: Unsupported content part type: image_url; messages = [{}]", "images:no"),
    (500, "Unable to generate parser for this template. Automatic parser generation failed: JSON schema error at #: unrecognized type", "schema_diet:2"),
    (500, "Failed to parse tool_choice: required", "drop:tool_choice"),
    (500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj", "images:no"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "text", "wanted"), OURS_UNREAD)
def test_a_server_that_fails_on_what_we_sent_is_adapted_to(status, text, wanted):
    assert outcome(judged(status, text)) == wanted


BARE = request_of(entries=(User((Text("q"),)),), tools=(), settings={})


@pytest.mark.parametrize(
    "text",
    [
        "Failed to parse messages: Missing 'content' in message; messages = [{}]",
        "Failed to apply the chat template: unknown filter",
        "Jinja Exception: unexpected token at row 3, column 9",
        "Error rendering prompt with jinja template: 'dict object' has no attribute 'x'",
        "Template error: Expected value expression at row 1",
        "Unable to generate parser for this template. Automatic parser generation failed",
    ],
)
def test_a_server_that_cannot_read_what_we_sent_is_not_asked_the_same_again(text):
    judgement = judged(500, text, BARE)
    assert outcome(judgement) == "RequestRejected"
    assert text in str(judgement.error)


@pytest.mark.parametrize(
    "text",
    [
        "Failed to parse the upstream response",
        "Failed to process your request",
        "Failed to parse tool call arguments from the model",
        "Failed to parse tool calls in the model's output",
        "failed to load model template cache: timed out",
    ],
)
def test_a_failure_that_names_nothing_of_ours_is_waited_out(text):
    assert outcome(judged(500, text, BARE)) == "Retry"


@pytest.mark.parametrize(
    "text",
    ["No connected db.", "DB not connected. See the docs", "Not connected to a database, cannot verify"],
)
def test_a_gateway_that_cannot_look_up_a_key_did_not_accept_it(text):
    assert outcome(judged(400, text)) == "AuthenticationFailed"
    assert outcome(judged(500, text)) == "Retry"


WRAPPINGS = [
    lambda text: {"error": text},
    lambda text: {"error": {"message": text}},
    lambda text: [{"error": {"code": 400, "message": text}}],
    lambda text: {"message": text, "type": "invalid_request_error"},
    lambda text: {"detail": text},
    lambda text: {"detail": [{"loc": ["body"], "msg": text}]},
    lambda text: {"errors": [{"message": text}]},
    lambda text: {"type": "about:blank", "title": "Bad Request", "detail": text},
    lambda text: {"statusCode": 400, "error": "Bad Request", "message": text},
    lambda text: {
        "error": {"message": "Provider returned error", "metadata": {"raw": json.dumps({"error": text})}}
    },
    lambda text: {"error": {"message": "Error from upstream: " + json.dumps({"error": {"message": text}})}},
    lambda text: {"error": {"message": json.dumps({"detail": json.dumps({"message": text})})}},
    lambda text: text,
]


@pytest.mark.parametrize("wrap", WRAPPINGS)
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("`seed` is not supported", "drop:seed"),
        ("This model does not support tools", "tool_mode:text"),
        ("prompt is too long: 9000 tokens > 8192 maximum", "Overflow:8192"),
    ],
)
def test_words_count_wherever_in_the_body_they_are(wrap, text, wanted):
    payload = wrap(text)
    judgement = judge(400, {}, payload, json.dumps(payload), request_of(), now=NOW)
    assert outcome(judgement) == wanted
    assert text in judgement.words


def test_what_a_body_echoes_of_the_request_does_not_count():
    payload = {
        "detail": [
            {
                "loc": ["body", "seed"],
                "msg": "Extra inputs are not permitted",
                "input": {"messages": "rate limit, invalid api key, prompt is too long"},
            }
        ]
    }
    assert outcome(judge(422, {}, payload, json.dumps(payload), request_of(), now=NOW)) == "drop:seed"


def test_words_in_the_names_of_our_tools_and_model_do_not_count():
    tools = (ToolSpec("request_timeout_probe", "d", {}), ToolSpec("seed", "d", {}))
    sent = request_of(tools=tools)
    assert (
        outcome(judged(400, "The function request_timeout_probe or `seed` has two bodies", sent))
        == "RequestRejected"
    )


def refusals(status, text, profile=None, **request):
    """All that is done about the same refusal, said again and again."""
    profile, tried, done = profile or Profile(), set(), []
    for _ in range(20):
        judgement = judged(status, text, request_of(profile, tried=tried, **request))
        done.append(outcome(judgement))
        if not isinstance(judgement, Adapt):
            return done
        tried.add(judgement.code)
        profile = profile.merged(judgement.changes)
    raise AssertionError(done)


@pytest.mark.parametrize(
    ("status", "text", "wanted"),
    [
        (
            400,
            "Input should be auto, none or any",
            ["tool_choice:required:any", "drop:tool_choice", "RequestRejected"],
        ),
        (
            400,
            "message content must not be empty",
            [
                "call_content:omit",
                "call_content:null",
                "call_content:blank",
                "call_content:words",
                "RequestRejected",
            ],
        ),
        (
            400,
            "failed to parse grammar",
            ["schema_diet:2", "schema_diet:4", "tool_mode:text", "RequestRejected"],
        ),
        (
            400,
            "additionalProperties is not supported in a tool schema",
            ["schema_diet:1", "schema_diet:2", "schema_diet:3", "schema_diet:4", "tool_mode:text"],
        ),
        (400, "unsupported parameter: 'max_tokens'", ["rename:max_tokens", "RequestRejected"]),
        (400, "", ["bare:messages", "bare:options", "RequestRejected"]),
    ],
)
def test_a_refusal_that_comes_again_takes_the_next_step_and_then_raises(status, text, wanted):
    assert refusals(status, text)[: len(wanted)] == wanted


@pytest.mark.parametrize(("status", "text"), [(status, text) for status, text, _ in CASES])
def test_no_step_is_taken_twice_and_every_refusal_comes_to_an_end(status, text):
    done = [each for each in refusals(status, text) if ":" in each and each[0].islower()]
    assert len(set(done)) == len(done)


@pytest.mark.parametrize(("status", "text"), [(status, text) for status, text, _ in CASES])
def test_every_change_is_one_that_a_profile_can_hold_and_shows_in_the_request(status, text):
    judgement = judged(status, text)
    if isinstance(judgement, Adapt):
        changed = Profile().merged(judgement.changes)
        assert Profile.from_json(json.loads(json.dumps(changed.to_json()))) == changed


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("`seed` is not supported", {}),
        ("tool_choice is not supported", {"seed": 1}),
        ("temperature must be at most 1", {"top_p": 1}),
        ("image input is not supported", {}),
    ],
)
def test_what_was_not_sent_is_not_changed(text, settings):
    plain = request_of(entries=(User((Text("q"),)),), tools=(), settings=settings, stream=False)
    assert outcome(judged(400, text, plain)) == "RequestRejected"


def test_a_limit_that_the_conversation_leaves_room_for_shortens_the_answer_and_is_not_remembered():
    text = "This model's maximum context length is 8192 tokens, but you requested 33000 tokens (1000 in the messages, 32000 in the completion)."
    judgement = judged(400, text)
    assert judgement.changes == {"max_values": {"max_tokens": 8192 - 1000 - 16}}
    assert not judgement.lasting
    assert outcome(judged(400, text, request_of(settings={}))) == "Overflow:8192"


NO_ROOM = [
    # the prompt alone is too long
    "This model's maximum context length is 8192 tokens. However, you requested 0 output tokens and your prompt contains at least 8193 input tokens, for a total of at least 8193 tokens.",
    "maximum context length is 8192 tokens, but you requested 40200 tokens",
    "the context size is 8,192 tokens and the prompt has 8100 tokens",
]


@pytest.mark.parametrize("text", NO_ROOM)
def test_where_the_window_leaves_no_room_the_conversation_is_shortened_and_no_limit_is_learned(text):
    sent = request_of(settings={"max_tokens": 32000})
    assert outcome(judged(400, text, sent)) == "Overflow:8192"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("maximum context length is 8192 tokens, but you requested 33000 tokens", 8192 - 1000 - 16),
        ("context window is 8192, requested total of 33000 tokens exceeds it", 8192 - 1000 - 16),
        ("the request exceeds the context length of 8192 tokens", None),  # by an estimate of what was sent
        ("Requested token count exceeds the model's maximum context length of 8192 tokens.", None),
    ],
)
def test_a_window_is_no_bound_of_the_answer_but_what_it_leaves_is_this_once(text, left):
    sent = request_of(settings={"max_tokens": 32000})
    judgement = judged(400, text, sent)
    assert not judgement.lasting
    [(field, value)] = judgement.changes["max_values"].items()
    assert field == "max_tokens"
    assert value == left or (left is None and 7000 < value < 8192 - 16)


def test_a_small_limit_beside_a_full_window_shortens_the_conversation():
    text = "the request exceeds the context length of 8192 tokens"
    assert outcome(judged(400, text, request_of(settings={"max_tokens": 300}))) == "Overflow:8192"


@pytest.mark.parametrize(
    "text",
    [
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        "tool_choice needs the server to be started with --enable-tools",
        "tool_choice=required is not supported without a tool call parser",
    ],
)
def test_a_server_without_a_parser_of_calls_is_asked_in_text_at_once(text):
    sent = request_of(settings={"tool_choice": "required"})
    assert outcome(judged(400, text, sent)) == "tool_mode:text"


def test_past_calls_are_numbered_where_that_is_wanted_and_a_place_in_the_history_is_no_such_wish():
    wanted = '{"detail": [{"type": "missing", "loc": ["body", "messages", 2, "tool_calls", 0, "index"], "msg": "Field required"}]}'
    assert outcome(judged(422, wanted)) == "call_index:yes"
    assert outcome(judged(422, "messages[2].tool_calls[0]: missing field `index`")) == "call_index:yes"
    elsewhere = "content is missing in the assistant message at index 2"
    assert outcome(judged(400, elsewhere)) != "call_index:yes"


def test_an_affordable_number_is_asked_for_if_it_is_worth_it():
    text = "You requested up to 65536 tokens, but can only afford {}."
    assert outcome(judged(402, text.format(3919))) == f"max_output:{3919 - 78}"
    assert outcome(judged(402, text.format(300))) == "OutOfCredit"


def test_what_the_model_wrote_is_read_before_anything_is_retried():
    payload = {
        "error": {"message": "Failed to call a function.", "failed_generation": "<function=add>{}</function>"}
    }
    first = judge(400, {}, payload, json.dumps(payload), request_of(), now=NOW)
    assert first == Salvage("<function=add>{}</function>", "Failed to call a function.")
    then = judge(400, {}, payload, json.dumps(payload), request_of(tried={"salvage"}), now=NOW)
    assert isinstance(then, Retry)
    assert then.limit == 3


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 520, 524, 529, 530])
@pytest.mark.parametrize("text", ["", "<html><title>Oops</title></html>"])
def test_outages_are_retried_with_or_without_a_word(status, text):
    assert isinstance(judged(status, text), Retry)


def test_a_status_in_the_body_counts_where_http_claims_success():
    assert isinstance(judged(200, '{"error": {"message": "odd", "code": 504}}'), Retry)
    assert outcome(judged(200, '{"error": {"message": "odd", "code": "401"}}')) == "AuthenticationFailed"


def test_an_error_quotes_the_provider_and_names_what_its_support_asks_for():
    error = judged(401, "No credentials", headers={"X-Request-Id": "r1"}).error
    assert (error.status, error.provider_text, error.request_id) == (401, "No credentials", "r1")
    assert error.hint
    assert len(judged(400, "x" * 5000).error.provider_text) == 500


JSONS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from([text for _, text, _ in CASES]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "error",
                    "message",
                    "detail",
                    "code",
                    "metadata",
                    "raw",
                    "param",
                    "loc",
                    "retry_after",
                    "headers",
                    "failed_generation",
                    "n_ctx",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@given(
    st.none() | st.integers(100, 599),
    st.dictionaries(
        st.sampled_from(["retry-after", "x-ratelimit-reset", "date", "X-Request-Id"]), st.text(max_size=20)
    ),
    JSONS,
    st.text(max_size=50),
    st.sets(st.sampled_from(["salvage", "drop:seed", "tool_mode:text"])),
)
def test_whatever_arrives_a_judgement_comes_out(status, headers, payload, text, tried):
    for sent in (request_of(tried=tried), Sent()):
        judgement = judge(status, headers, payload, text, sent, now=NOW)
        match judgement:
            case Retry(after=after):
                assert after is None or (after >= 0 and math.isfinite(after))
            case Adapt(changes=changes):
                assert sent.profile.merged(changes) != sent.profile
            case Raise(error=error):
                assert isinstance(error, EndpointError)
                assert not isinstance(error, RateLimited)


ENDLESS = ["{", "[", '"\\', "<", "tool ", "messages 1 ", "9", "1m", "name must ", "try again in ", "\n "]


@pytest.mark.parametrize(
    ("before", "piece"),
    [*(("", piece) for piece in ENDLESS), ("the context length is ", "9"), ("limit ", "9,")],
)
def test_a_huge_body_is_judged_without_blowing_up(before, piece):
    text = before + piece * (200_000 // len(piece))
    for payload in (None, {"error": {"message": text}}, [text] * 3):
        assert judge(400, {}, payload, text, request_of(), now=NOW) is not None


@pytest.mark.parametrize("unit", ["{", "[", '"\\', "<tool_call>", "<think>"])
def test_a_megabyte_is_judged_with_no_more_than_twice_the_work_of_half_a_one(unit):
    def operations(size):
        with cProfile.Profile() as profile:
            judge(400, {}, None, unit * (size // len(unit)), BARE, now=NOW)
        return sum(entry.callcount for entry in profile.getstats())

    operations(1_000)  # what is imported when it is first needed
    assert operations(1_000_000) <= 2.2 * operations(500_000)
