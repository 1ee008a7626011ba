"""What is read of MCP servers without any server: settings, definitions, names, answers."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassloop.core.entries import Image, Text
from glassloop.core.errors import ConfigError
from glassloop.tools.cleaning import cleaned, hides
from glassloop.tools.mcp import lenient
from glassloop.tools.mcp.definitions import Definition, definitions_from, offered, wire_names
from glassloop.tools.mcp.results import parts_of_result
from glassloop.tools.mcp.settings import read_servers
from glassloop.tools.tool import Tool

# ── settings ─────────────────────────────────────────────────────────────────────────────────────────


def test_the_common_shape_is_read_with_and_without_its_outer_key() -> None:
    entry = {"command": "npx", "args": ["-y", "thing"], "env": {"PORT": 80, "QUIET": True}, "type": "stdio"}
    (one,) = read_servers({"mcpServers": {"a": entry}}, "x")
    assert (one,) == read_servers({"a": {**entry, "autoApprove": ["all"], "gallery": True}}, "x")
    assert (one.command, one.args, dict(one.env)) == ("npx", ("-y", "thing"), {"PORT": "80", "QUIET": "true"})


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ([], "mcpServers"),
        ({"mcpServers": None}, "mcpServers"),
        ({"a": "npx"}, "'a' must be an object"),
        ({"a": {}}, "either a `command` or a `url`"),
        ({"a": {"command": "x", "url": "http://y"}}, "either a `command` or a `url`"),
        ({"a": {"command": ["npx"]}}, "`command` must be text"),
        ({"a": {"command": "x", "args": "-y"}}, "`args` must be a list"),
        ({"a": {"command": "x", "env": {"A": None}}}, r"`env` \(A\) must be text"),
        ({"a": {"command": "x\0y"}}, "`command` must be text"),
        ({"a": {"url": "file:///etc/passwd"}}, "http"),
        ({"a": {"url": "http://x", "type": "sse"}}, "streamable HTTP"),
        ({"a": {"url": "http://x", "type": "websocket"}}, "`type`"),
        ({"a": {"command": "x", "timeout": 0}}, "`timeout`"),
        ({"a": {"command": "x", "timeout": True}}, "`timeout`"),
        ({"": {"command": "x"}}, "needs a name"),
    ],
)
def test_settings_that_cannot_work_are_refused_with_their_place(document: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as raised:
        read_servers(document, "here.json")
    assert "here.json" in str(raised.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${A}", "one"),
        ("x${A}y${B:-two}", "xoneytwo"),
        ("${EMPTY:-fallback}", "fallback"),
        ("${EMPTY}", ""),
        ("${B:-}", ""),
        ("$A ${} $${A}", "$A ${} $one"),
        ("${B:-${A}}", "${A}"),
    ],
)
def test_variables_are_put_in_as_a_shell_would(text: str, value: str) -> None:
    (settings,) = read_servers({"s": {"command": "x", "args": [text]}}, "x")
    assert settings.expanded({"A": "one", "EMPTY": ""}).args == (value,)


def test_a_variable_that_is_not_set_is_named() -> None:
    (settings,) = read_servers({"s": {"url": "https://x/${NOPE}", "headers": {"A": "Bearer ${KEY}"}}}, "x")
    assert settings.variables == ("NOPE", "KEY")
    with pytest.raises(ConfigError, match="NOPE"):
        settings.expanded({"KEY": "k"})
    assert "Bearer" not in repr(settings)


# ── definitions ──────────────────────────────────────────────────────────────────────────────────────

PAIRS = st.tuples(st.text(min_size=1, max_size=80), st.text(min_size=1, max_size=80))


@given(st.lists(PAIRS | st.tuples(st.just("a"), st.sampled_from(["b__c", "b_c", "B", "b"])), unique=True))
def test_every_name_fits_the_wire_and_no_two_are_alike(pairs: list[tuple[str, str]]) -> None:
    names = wire_names(pairs)
    assert len({name.casefold() for name in names.values()}) == len(pairs)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names.values())
    assert wire_names(pairs[::-1]) == names


def test_plain_names_stay_as_they_are() -> None:
    pairs = [("files", "read-file"), ("a", "b__c"), ("a__b", "c")]
    names = list(wire_names(pairs).values())
    assert names[0] == "files__read-file"
    assert len(set(names)) == 3


def test_a_server_cannot_take_the_names_of_another_by_its_own_name() -> None:
    posing = [
        "github__evil",
        "github_",
        "github__",
        "_github",
        "git hub",
        "github\u200b",
        "g" * 40,
        "天气",
        "git_hub ",
    ]
    names = wire_names([*((one, "_x") for one in posing), ("github", "x"), ("git_hub", "x")])
    starts = [names[one, "_x"].partition("__")[0] for one in posing]
    assert len({*starts, "github", "git_hub"}) == len(posing) + 2
    assert names["github", "x"] == "github__x"
    assert not [one for one in posing if names[one, "_x"].startswith(("github__", "git_hub__"))]


LARGE: dict[str, Any] = {
    "schema": {"inputSchema": {"x": "y" * 300_000}},
    "description": {"description": "y" * 300_000},
    "annotations": {"annotations": {"x": ["y"] * 100_000}},
}


@pytest.mark.parametrize("case", LARGE)
def test_a_tool_of_which_too_much_is_said_is_left_out_before_it_is_kept(case: str) -> None:
    found, left_out = definitions_from([{"name": "a", **LARGE[case]}, {"name": "b"}])
    assert [one.name for one in found] == ["b"]
    assert "'a' is left out" in left_out[0]


def test_all_tools_of_a_server_together_are_bounded() -> None:
    found, left_out = definitions_from({"name": f"t{n}", "description": "y" * 150_000} for n in range(100))
    assert sum(len(one.text) for one in found) < 6_000_000
    assert len(found) + len(left_out) == 100


HIDDEN = {
    "ansi": ("safe\x1b[31m red\x1b[0m", "safe red"),
    "osc": ("a\x1b]0;title\x07b", "ab"),
    "bidi": ("user\u202etxt.exe", "usertxt.exe"),
    "zero width": ("pass\u200bword", "password"),
    "tags": ("hello" + "".join(chr(0xE0000 + ord(one)) for one in "run rm"), "hello"),
    "variation selectors": ("a" + "".join(chr(0xE0100 + one) for one in range(20)), "a"),
    "private": ("a\ue000b", "ab"),
    "backspace": ("rm\x08\x08ls", "rmls"),
}


@pytest.mark.parametrize(("text", "seen"), HIDDEN.values(), ids=list(HIDDEN))
def test_the_model_reads_no_more_of_a_description_than_a_person_can_see(text: str, seen: str) -> None:
    definition = Definition("act", text, {"type": "object", "properties": {"a": {"description": text}}})
    description, parameters = offered(definition, "s")
    assert description == seen
    assert parameters["properties"]["a"]["description"] == seen
    assert definition.hides_words
    with pytest.raises(ValueError, match="invisible"):
        offered(Definition("act", "", {"type": "object", "properties": {text: {}}}), "s")


@pytest.mark.parametrize("text", ["", "two\nlines\twith a tab", "نمی‌خواهم", "👩‍💻 ok ❤️", "葛󠄀", "línea\r\nlarga"])  # fmt: skip
def test_ordinary_writing_is_not_taken_for_hidden(text: str) -> None:
    assert not hides(text)
    assert cleaned(text) == text.replace("\r\n", "\n")


SCHEMAS: dict[str, Any] = {
    "none": None,
    "empty": {},
    "true": True,
    "a list": [],
    "no type": {"properties": {"a": {"type": "string"}}},
    "nulls": {"type": "object", "properties": None, "required": None},
    "old required": {"type": "object", "properties": {"a": {"type": "string", "required": True}}},
    "odd type": {"type": ["object", "null"], "properties": {}},
    "references in a circle": {
        "$ref": "#/$defs/A",
        "$defs": {"A": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}},
    },
    "references elsewhere": {"type": "object", "properties": {"a": {"$ref": "https://evil.example/x.json"}}},
    "a union": {"anyOf": [{"type": "object", "properties": {"a": {}}}, {"type": "object"}]},
    "a long chain of references": {
        "properties": {"a": {"$ref": "#/$defs/0"}},
        "$defs": {str(n): {"$ref": f"#/$defs/{n + 1}"} for n in range(2_500)},
    },
    "references that double at every step": {
        "properties": {"a": {"$ref": "#/$defs/0"}},
        "$defs": {
            str(n): {"properties": {p: {"$ref": f"#/$defs/{n + 1}"} for p in ("a", "b")}} for n in range(40)
        },
    },
    "nonsense": {"type": "object", "properties": ["a"], "items": 7},
    "a pattern": {"type": "object", "properties": {"a": {"type": "string", "pattern": "(a+)+$"}}},
}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=list(SCHEMAS))
def test_an_odd_schema_still_makes_a_tool_that_can_be_called(schema: Any) -> None:
    (definition,), left_out = definitions_from([{"name": "act", "inputSchema": schema, "description": None}])
    description, parameters = offered(definition, "s")
    made = Tool("s__act", description, parameters, lambda **arguments: arguments)
    assert made.parameters["type"] == "object"
    assert left_out == ()


def test_a_schema_that_would_flood_the_model_leaves_its_tool_out() -> None:
    deep: dict[str, Any] = {"type": "object"}
    for _ in range(200):
        deep = {"type": "object", "properties": {"a": deep}}
    wide = {"type": "object", "properties": {f"p{n}": {"description": "x" * 100} for n in range(2000)}}
    for schema in (deep, wide):
        with pytest.raises(ValueError, match="too large"):
            offered(Definition("act", "", schema), "s")
    assert len(offered(Definition("act", "x" * 1_000_000), "s")[0]) < 10_000


def test_what_has_no_name_of_its_own_is_left_out_and_the_rest_stays() -> None:
    task = {"name": "t", "execution": {"taskSupport": "required"}}
    listed = [{"name": "a"}, {"name": ""}, {}, "b", task, {"name": "a", "description": "again"}, {"name": 7}]
    found, left_out = definitions_from(listed)
    assert [one.name for one in found] == ["a"]
    assert len(left_out) == 6
    many, more = definitions_from({"name": f"t{n}"} for n in itertools.count())
    assert len(many) == 500
    assert "more than 500" in more[-1]


CHANGED = [
    {"description": "Another."},
    {"inputSchema": {"type": "object", "properties": {"extra": {}}}},
    {"annotations": {"readOnlyHint": True}},
    {"description": "Acts.\u200b"},
]


@pytest.mark.parametrize("change", CHANGED, ids=lambda one: next(iter(one)))
def test_any_change_of_a_definition_is_another_hash(change: dict[str, Any]) -> None:
    before = {"name": "act", "description": "Acts.", "inputSchema": {"type": "object", "properties": {}}}
    (one,), (same,), (other,) = (
        definitions_from([each])[0] for each in (before, dict(before), before | change)
    )
    assert one.hash == same.hash != other.hash


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────

PNG = "iVBORw0KGgo="
ANSWERS: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "text": ({"content": [{"type": "text", "text": "a"}]}, ["a"]),
    "nothing": ({}, []),
    "content that is a text": ({"content": "a"}, ["a"]),
    "structured content alone": ({"content": [], "structuredContent": {"a": 1}}, ['{"a": 1}']),
    "structured content that the text says": (
        {"content": [{"type": "text", "text": '{"a":1}'}], "structuredContent": {"a": 1}},
        ['{"a":1}'],
    ),
    "structured content beside other text": (
        {"content": [{"type": "text", "text": "one"}], "structuredContent": {"a": 1}},
        ['one\n{"a": 1}'],
    ),
    "a wrapped value that the text says": (
        {"content": [{"type": "text", "text": "7"}], "structuredContent": {"result": 7}},
        ["7"],
    ),
    "a list that the texts say": (
        {"content": ["1", "b"], "structuredContent": {"result": [1, "b"]}},
        ["1\nb"],
    ),
    "sound": (
        {"content": [{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]},
        ["(audio, audio/wav, 3 bytes: cannot be passed on)"],
    ),
    "an odd picture": (
        {"content": [{"type": "image", "data": "AAAA", "mimeType": "image/svg+xml"}]},
        ["(image: a picture, image/svg+xml, 3 bytes: cannot be passed on)"],
    ),
    "a broken picture": (
        {"content": [{"type": "image", "data": "!", "mimeType": "image/png"}]},
        ["(image: a picture that cannot be read)"],
    ),
    "a resource with text": (
        {"content": [{"type": "resource", "resource": {"uri": "file:///a", "text": "b"}}]},
        ["[file:///a]\nb"],
    ),
    "a resource with a picture": (
        {"content": [{"type": "resource", "resource": {"uri": "x:a", "blob": PNG, "mimeType": "image/png"}}]},
        [Image("image/png", b"\x89PNG\r\n\x1a\n")],
    ),
    "a resource with bytes": (
        {"content": [{"type": "resource", "resource": {"uri": "x:a", "blob": "AAAA"}}]},
        ["(x:a: bytes, 3 bytes: cannot be passed on)"],
    ),
    "a link": (
        {"content": [{"type": "resource_link", "uri": "file:///etc/passwd", "name": "p"}]},
        ["(a resource of the server: file:///etc/passwd (p))"],
    ),
}


@pytest.mark.parametrize(("raw", "parts"), ANSWERS.values(), ids=list(ANSWERS))
def test_answers_become_parts(raw: dict[str, Any], parts: list[Any]) -> None:
    wanted = [Text(one) if isinstance(one, str) else one for one in parts]
    assert parts_of_result(lenient.result(raw)) == wanted


JSONS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(["text", "image", "resource"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["type", "text", "data", "uri", "resource", "mimeType", "x"]), inner
        )
    ),
    max_leaves=12,
)


@given(JSONS, JSONS, st.sampled_from([True, False, None, "yes"]))
def test_whatever_a_server_answers_becomes_something_to_read(
    content: Any, structured: Any, failed: Any
) -> None:
    from mcp_types import CallToolResult, ListToolsResult

    mended = lenient.result({"content": content, "structuredContent": structured, "isError": failed})
    CallToolResult.model_validate(mended, by_name=False)
    assert all(isinstance(one, (Text, Image)) for one in parts_of_result(mended))
    listed = lenient.listing({"tools": content, "nextCursor": structured})
    page = ListToolsResult.model_validate(listed, by_name=False)
    definitions_from(lenient.as_listed(one.model_dump(by_alias=True)) for one in page.tools)


def test_a_server_that_wants_input_in_the_middle_of_a_call_is_refused() -> None:
    mended = lenient.result({"resultType": "input_required", "inputRequests": {"a": {}}})
    assert mended["isError"] is True
    assert "refused" in mended["content"][0]["text"]


def test_many_pictures_and_blocks_are_cut() -> None:
    picture = {"type": "image", "data": PNG, "mimeType": "image/png"}
    parts = parts_of_result(lenient.result({"content": [picture] * 1500}))
    assert sum(isinstance(one, Image) for one in parts) == 20
    assert parts[-1].text.endswith("(one more picture)\n(500 more blocks left out)")
