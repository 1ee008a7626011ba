import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassloop.core.entries import ToolCall
from glassloop.wire.names import mint_id, resolve_name, with_unique_ids

KNOWN = ["get_weather", "list_cities", "readFile", "parse_json", "x.y"]


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_name_is_taken_as_it_is(name: str) -> None:
    assert resolve_name(name, KNOWN) == (name, None)


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (" get_weather\n", "get_weather"),
        ('"get_weather"', "get_weather"),
        ("`get_weather`", "get_weather"),
        ("get_weather()", "get_weather"),
        ("functions.get_weather", "get_weather"),
        ("functions.get_weather:0", "get_weather"),
        ("function:get_weather", "get_weather"),
        ("tool.get_weather", "get_weather"),
        ("tools/get_weather", "get_weather"),
        ("default_api.get_weather", "get_weather"),
        ("functions.x.y", "x.y"),
        ("get_weather:12", "get_weather"),
        ("get_weather<|channel|>analysis", "get_weather"),
        ("get_weather<|channel|>commentary <|constrain|>json", "get_weather"),
        ("<|channel|>get_weather", "get_weather"),
        ("<\uff5ctool\u2581sep\uff5c>get_weather", "get_weather"),
        ("[TOOL_CALLS]get_weather", "get_weather"),
        ("get_weather[ARGS]", "get_weather"),
        ("to=functions.get_weather", "get_weather"),
        ("<function=get_weather>", "get_weather"),
        ("get_weatherjson", "get_weather"),
        ("get_weather json", "get_weather"),
        ("get_weatherget_weather", "get_weather"),
        ("Get-Weather", "get_weather"),
        ("getWeather", "get_weather"),
        ("functions.GET WEATHER", "get_weather"),
        ("read_file", "readFile"),
    ],
)
def test_a_misspelt_name_is_the_tool_that_it_spells(raw: str, name: str) -> None:
    found, mend = resolve_name(raw, KNOWN)
    assert found == name
    assert mend is not None
    assert mend.code == "tool_name"
    assert repr(raw) in mend.detail


@pytest.mark.parametrize(
    "raw",
    ["", "get_weather_forecast", "weather", "get_weathr", "get", "json", "functions.", '"}', "x" * 1000],
)
def test_a_name_that_only_resembles_a_tool_stays_unknown(raw: str) -> None:
    assert resolve_name(raw, KNOWN) == (raw, None)


def test_two_tools_that_differ_in_case_alone_are_not_guessed_between() -> None:
    assert resolve_name("GET_WEATHER", ["get_weather", "getWeather"]) == ("GET_WEATHER", None)


@given(st.text(), st.lists(st.text(min_size=1)))
def test_the_outcome_is_a_known_name_or_the_name_as_it_came(raw: str, known: list[str]) -> None:
    name, mend = resolve_name(raw, known)
    assert name == raw if mend is None else name in known


def _calls(*ids: str) -> list[ToolCall]:
    return [ToolCall(call_id, "get_weather", {}) for call_id in ids]


def test_good_ids_stay_and_missing_blank_used_or_repeated_ones_are_minted() -> None:
    ids = [
        call.id
        for call in with_unique_ids(
            _calls("functions.a:0", "", " ", "call 1|x", "old", "call 1|x"), 3, {"old"}
        )
    ]
    assert ids[0] == "functions.a:0"
    assert ids[3] == "call 1|x"
    minted = [ids[1], ids[2], ids[4], ids[5]]
    assert all(len(each) == 9 and each.isascii() and each.isalnum() for each in minted)
    assert len(set(ids)) == len(ids)
    assert "old" not in ids


@given(
    st.lists(st.sampled_from(["", "a", "b", mint_id(1, 0, ()), mint_id(1, 2, ())])),
    st.sets(st.sampled_from(["a", mint_id(1, 1, ())])),
)
def test_ids_are_unique_whatever_came_and_the_same_each_time(ids: list[str], used: set[str]) -> None:
    once = [call.id for call in with_unique_ids(_calls(*ids), 1, used)]
    assert once == [call.id for call in with_unique_ids(_calls(*ids), 1, used)]
    assert len({*once, *used}) == len(once) + len(used)


def test_a_minted_id_steps_aside_for_a_used_one() -> None:
    first = mint_id(5, 0, ())
    assert mint_id(5, 0, {first}) not in ("", first)
    assert mint_id(5, 1, ()) != first != mint_id(6, 0, ())
