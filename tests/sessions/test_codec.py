"""Values as JSON text and back: nothing is lost but secrets."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from glassloop.core.entries import (
    File,
    Image,
    Mend,
    Note,
    Reply,
    Summary,
    System,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    User,
)
from glassloop.core.errors import SessionError
from glassloop.core.journal import Cancelled, ModelFailed
from glassloop.core.tools import Decision, Verdict
from glassloop.sessions import codec, shapes

KEY = "planted-Zq8x7Vt2Lm4Nk6Rp"

text = st.text(st.characters(codec="utf-8"), max_size=30)
maybe_text = st.none() | text
finite = st.floats(allow_nan=False, allow_infinity=False)
number = st.none() | st.integers(0, 10**9)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(text, plain, max_size=3)
part = st.one_of(
    st.builds(Text, text),
    st.builds(Image, text, st.none() | st.binary(max_size=40), maybe_text),
    st.builds(File, text, text, st.binary(max_size=40)),
)
parts = st.lists(part, max_size=3).map(tuple)
usage = st.builds(Usage, number, number, number, number, number)
call = st.builds(ToolCall, text, text, st.none() | objects, text, maybe_text, st.none() | objects)
reply = st.builds(
    Reply,
    text,
    text,
    st.lists(call, max_size=2).map(tuple),
    maybe_text,
    usage,
    st.none() | finite,
    st.lists(st.builds(Mend, text, text), max_size=2).map(tuple),
    objects,
    maybe_text,
    maybe_text,
    maybe_text,
    st.booleans(),
    st.booleans(),
)
effect = st.sampled_from(["read", "idempotent", "once"])
values = st.one_of(
    st.builds(System, text),
    st.builds(User, parts, st.sampled_from(["task", "steer", "follow_up"])),
    reply,
    st.builds(ToolResult, text, text, parts, st.sampled_from(["ok", "error", "refused", "unknown"]), finite),
    st.builds(Note, text, st.sampled_from(["empty_reply", "repeated_calls", "limit", "output", "notice"])),
    st.builds(Summary, text, st.integers(0, 1000)),
    st.builds(Verdict, call, st.sampled_from(["ready", "problem", "ask"]), objects, effect, text, text),
    st.builds(Decision, text, st.booleans(), text, text),
    st.builds(ModelFailed, text, text, st.none() | reply, number),
    st.builds(Cancelled, text),
)


def back(encoded):
    return codec.decode(encoded.tag, encoded.body, encoded.blobs.__getitem__)


@settings(max_examples=60)
@given(values)
def test_what_was_stored_comes_back_equal(value):
    encoded = codec.encode(value)
    if not encoded.masked:  # an example may look like a key by chance
        assert back(encoded) == value


@settings(max_examples=60)
@given(values)
def test_cleaning_changes_nothing_where_there_is_nothing_to_clean(value):
    """The quick way and the thorough one agree."""
    thorough = codec._encode_cleaned(codec.encode(value).tag, value, (), True)
    assert back(codec.encode(value)) == back(thorough)


@pytest.mark.parametrize("arguments", [
    {"n": 10**5000}, {1: 2}, {"deep": [{None: 1}]}, {"s": {1, 2}}, {"b": b"x"}, {"c": 1j},
    {"d": Text("x")}, {"f": float("nan")}, {"f": [float("-inf"), 1e16, 1e-7]}, {"s": "half \ud800"}, {"t": (1, [])},
    {"e": type("Text", (str,), {})("x")}, {"n": [2**64, -(2**64)]},
])  # fmt: skip
def test_the_quick_way_takes_nothing_for_json_that_is_none(arguments):
    """It gives what the thorough one gives, or refuses what that refuses."""
    value = Verdict(ToolCall("id", "n", {}), "ready", arguments)
    found = []
    for encode in (codec.encode, lambda value: codec._encode_cleaned("verdict", value, (), True)):
        try:
            found.append(back(encode(value)))
        except (SessionError, shapes.Unfit, ValueError):
            found.append(None)
    assert found[0] == found[1]


@settings(max_examples=60)
@given(values)
def test_the_text_is_strict_json_that_sqlite_takes(value):
    body = codec.encode(value).body
    json.loads(body, parse_constant=pytest.fail)
    body.encode("utf-8")


@pytest.mark.parametrize("kind", list(shapes.TAGS), ids=lambda kind: kind.__name__)
def test_every_field_of_every_known_type_has_a_rule(kind):
    """A field that is added to a value is stored without a line here, or this says that a rule is missing."""
    shapes.shape_of(kind)
    assert set(kind.__struct_fields__) - {name for name, *_ in shapes._stored_fields(kind)} <= {"bound"}


def planted(key):
    """A value with the secret in every text that a record can hold."""
    made = ToolCall(
        "id", f"x {key}", {f"k {key}": [{"deep": f"{key}!"}]}, json.dumps({"a": key}), key, {"sig": key}
    )
    said = Reply(
        f"a {key}", key, (made,), key, raw={"content": [key], key: key}, mends=(Mend("c", key),), model=key
    )
    return [
        System(key),
        User((Text(f"my key is {key}."), File(key, key, b"data"), Image(url=f"https://x/?k={key}"))),
        said,
        ToolResult("id", "n", (Text(f"KEY={key}"),)),
        Note(key),
        Summary(key, 3),
        Verdict(made, "ask", {"a": key}, text=key),
        Decision("id", False, key, key),
        ModelFailed("K", key, said),
        Cancelled(key),
    ]


@pytest.mark.parametrize(
    "key", [KEY, 'quoted"and\\slashed', "schlüssel-密钥-1234", "sk-abcdefghijklmnop1234"]
)
@pytest.mark.parametrize("number", range(10))
def test_a_secret_is_masked_wherever_it_stands(key, number):
    encoded = codec.encode(planted(key)[number], () if key.startswith("sk-") else (key,))
    assert encoded.masked
    assert key not in encoded.body
    assert json.dumps(key)[1:-1] not in encoded.body
    assert "***" in encoded.body
    back(encoded)


def test_a_secret_in_a_large_text_is_masked_before_it_is_put_aside():
    encoded = codec.encode(ToolResult("id", "n", (Text("x" * 100_000 + KEY),)), [KEY])
    assert len(encoded.blobs) == 1
    assert not any(KEY.encode() in data for data in encoded.blobs.values())


def test_ids_are_never_masked_for_two_calls_must_not_become_one():
    calls = tuple(ToolCall(f"sk-abcdefghijklmnop{n}", "n", {}) for n in range(2))
    found = back(codec.encode(Reply(tool_calls=calls)))
    assert [one.id for one in found.tool_calls] == [one.id for one in calls]


def test_the_bytes_of_a_picture_are_never_touched():
    data = bytes(range(256)) * 10 + b"AIza" + b"a" * 40
    value = User((Image("image/png", data), Text(KEY)))
    assert back(codec.encode(value, [KEY])).parts[0] == value.parts[0]


@pytest.mark.parametrize("size", [0, 1, shapes.BLOB_BYTES, shapes.BLOB_BYTES + 1, 1_000_000])
def test_a_text_of_any_size_comes_back(size):
    value = ToolResult(
        "id", "n", (Text("é" * (size // 2) + "e" * (size % 2)), File("f", "t", b"\x00" * size))
    )
    encoded = codec.encode(value)
    assert len(encoded.blobs) == 2 * (size > shapes.BLOB_BYTES)
    assert back(encoded) == value
    assert back(codec.encode(value, aside=False)) == value


@pytest.mark.parametrize("bound", [object(), {"token": "abc"}, "text"])
def test_what_prepared_a_call_is_not_part_of_what_is_stored(bound):
    made = ToolCall("id", "n", {})
    verdict = Verdict(made, "ready", {}, bound=bound)
    encoded = codec.encode(verdict)
    assert "bound" not in encoded.body
    assert back(encoded) == replace(verdict, bound=None)


def test_what_prepared_a_call_is_not_taken_from_what_somebody_wrote():
    body = codec.encode(Verdict(ToolCall("id", "n", {}), "ready", {"a": 1})).body
    with pytest.raises(SessionError, match="bound: this field is unknown here"):
        codec.decode("verdict", f'{body[:-1]},"bound":{{"x":1}}}}', {}.__getitem__)


@pytest.mark.parametrize(("value", "words"), [
    (Reply(5), "a reply cannot be written down: text: expected text, found 5"),
    (Reply(tool_calls=(ToolCall("i", "n", {1: 2}),)), "tool_calls.arguments: expected a text as a name, found 1"),
    (Reply(raw={"x": {1, 2}}), "raw: expected JSON, found {1, 2}"),
    (User((ToolCall("i", "n", {}),)), "parts: expected one of text, image, file"),
    (User((), "shout"), "found 'shout'"),
    (Usage(), "a journal cannot hold a Usage"),
    ("text", "a journal cannot hold a str"),
])  # fmt: skip
def test_what_could_not_be_read_back_is_not_written(value, words):
    with pytest.raises(SessionError) as caught:
        codec.encode(value)
    assert words in str(caught.value)


def test_an_error_shows_no_secret():
    with pytest.raises(SessionError, match=r"found \['\*\*\*'\]") as caught:
        codec.encode(System([KEY]), [KEY])
    assert KEY not in repr(caught.value)
    assert caught.value.__suppress_context__


def test_endless_nesting_is_refused_in_words():
    deep = []
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(SessionError, match="nested too deeply"):
        codec.encode(Reply(raw={"x": deep}))
    with pytest.raises(SessionError, match="nested too deeply"):
        codec.decode("reply", '{"raw":' + "[" * 50_000 + "]" * 50_000 + "}", {}.__getitem__)


@pytest.mark.parametrize("before", ["", " ", "\n", "\t", "\x01"])
def test_a_key_is_masked_wherever_in_a_line_it_stands(before):
    key = "sk-proj-Ab3dEf9hIjKlMnOpQrStUvWx"
    for value in (User((Text(f"keys:{before}{key}"),)), Reply(raw={"content": f"x{before} {key}"})):
        encoded = codec.encode(value)
        assert key not in encoded.body
        assert encoded.masked


def test_numbers_beyond_any_float_are_written_down():
    value = Reply(usage=Usage(10**400, 1, 10**400), raw={"usage": {"prompt_tokens": 10**400}})
    encoded = codec.encode(value)
    assert codec.decode(encoded.tag, encoded.body, lambda digest: b"") == value
