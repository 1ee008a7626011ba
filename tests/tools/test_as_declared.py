"""Arguments that are as declared pass as they are: the short way comes to what fitting them comes to."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from glassloop.tools.coerce import Fitting, is_as_declared

_PARTS = st.one_of(
    st.builds(
        lambda kind, more: {"type": kind, **more},
        st.sampled_from(("string", "integer", "number", "boolean", "array", "object", "null", ["string", "null"])),
        st.sampled_from(({}, {"title": "A"}, {"default": None}, {"minimum": 2}, {"enum": ["a"]}, {"format": "date"})),
    ),
    st.sampled_from(({}, True, False, {"anyOf": [{"type": "string"}, {"type": "null"}]})),
)  # fmt: skip
_NAMES = st.sampled_from(("a", "b", "A"))
_SCHEMAS = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(_NAMES, _PARTS)},
    optional={
        "required": st.lists(_NAMES, max_size=2, unique=True),
        "additionalProperties": st.booleans(),
        "anyOf": st.just([{}]),
    },
)
_VALUES = st.one_of(
    st.sampled_from(("", "null", "none", "a", "2", "half \ud83d", "東京", 0, 3, 1.5, 2.0, True, None)),
    st.just([]),
    st.just({}),
)


@given(st.dictionaries(_NAMES, _VALUES), _SCHEMAS)
def test_what_is_as_declared_needs_no_fitting(sent: dict[str, Any], schema: dict[str, Any]) -> None:
    if not is_as_declared(sent, schema):
        return
    fitting = Fitting()
    fitted = fitting.fit(sent, {"additionalProperties": False, **schema})
    assert (repr(fitted), fitting.problems, fitting.changes) == (repr(sent), [], [])


def test_plain_values_are_as_declared() -> None:
    properties = {"a": {"type": "string", "description": "A text."}, "b": {"type": "integer", "default": 1}}
    assert is_as_declared(
        {"a": "東京", "b": 2}, {"type": "object", "properties": properties, "required": ["a"]}
    )
    assert is_as_declared({"a": "x"}, {"type": "object", "properties": properties, "required": ["a"]})
    assert not is_as_declared({"b": 2}, {"type": "object", "properties": properties, "required": ["a"]})
