"""What is learned, on disk."""

import json
import os
import stat

import pytest

from glassloop.models.endpoint import Endpoint
from glassloop.models.profiles import Learnt, Lesson, ProfileStore

URL, MODEL = "http://localhost:11434/v1", "qwen3:0.6b"
LESSON = Lesson("drop:temperature", 'drop_fields = ["temperature"]', "not supported", "2026-11-30")
LEARNT = Learnt({"drop_fields": ["temperature"], "max_values": {"max_tokens": 5}}, lessons=(LESSON,))


@pytest.fixture
def store(tmp_path):
    return ProfileStore(tmp_path / "profiles")


def test_what_is_saved_is_loaded(store):
    assert store.save(URL, MODEL, LEARNT) == ""
    assert store.load(URL, MODEL) == (LEARNT, "")
    assert store.load(URL, "other") == (Learnt(), "")
    assert store.known() == [(URL, MODEL)]


def test_lessons_add_up_also_those_of_another_process(store):
    store.save(URL, MODEL, LEARNT)
    other = Lesson("ids", 'ids = "nine"')
    ProfileStore(store.folder).save(
        URL, MODEL, Learnt({"ids": "nine", "drop_fields": ["top_p"]}, lessons=(other,))
    )
    learnt, _ = store.load(URL, MODEL)
    assert learnt.profile == {
        "drop_fields": ["temperature", "top_p"],
        "max_values": {"max_tokens": 5},
        "ids": "nine",
    }
    assert learnt.lessons == (LESSON, other)


def test_a_change_back_to_the_neutral_value_is_kept(store):
    store.save(URL, MODEL, Learnt({"stream_options": False}))
    assert store.load(URL, MODEL)[0].profile == {"stream_options": False}


def test_only_its_owner_may_read_a_profile(store):
    store.save(URL, MODEL, LEARNT)
    path = store.path(URL, MODEL)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("model", ["../../etc/passwd", "a/b:c", "", "模型", "x" * 5000, "a\0b", "nul\n"])
def test_no_model_name_leaves_the_folder(store, model):
    assert store.save(URL, model, LEARNT) == ""
    assert store.path(URL, model).parent == store.folder
    assert store.load(URL, model)[0] == LEARNT


BROKEN = {
    "no JSON": b"{",
    "no object": b"[]",
    "no base URL": b'{"model": "m"}',
    "not text": b"\xff\xfe",
    "too deep": b"[" * 100_000,
    "an unknown field": json.dumps({"base_url": URL, "model": MODEL, "profile": {"no_such": 1}}).encode(),
    "a wrong value": json.dumps({"base_url": URL, "model": MODEL, "profile": {"ids": 9}}).encode(),
    "too large": b" " * 2_000_000,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_ignored_with_a_warning_that_names_it(store, name):
    store.save(URL, MODEL, LEARNT)
    path = store.path(URL, MODEL)
    path.write_bytes(BROKEN[name])
    learnt, trouble = store.load(URL, MODEL)
    assert learnt == Learnt()
    assert str(path) in trouble
    endpoint = Endpoint(URL, MODEL, learned=store)
    assert endpoint.profile.drop_fields == ()
    assert [warning.code for warning in endpoint.warnings()] == ["profile_ignored"]
    assert not endpoint.warnings()


def test_what_cannot_be_written_is_a_warning_and_still_applies(tmp_path):
    (tmp_path / "file").write_text("no folder")
    endpoint = Endpoint(URL, MODEL, learned=ProfileStore(tmp_path / "file" / "profiles"))
    assert endpoint.learn(LESSON, LEARNT)
    assert endpoint.profile.drop_fields == ("temperature",)
    assert [warning.code for warning in endpoint.warnings()] == ["profile_ignored", "profile_not_kept"]


def test_a_profile_can_be_forgotten(store):
    store.save(URL, MODEL, LEARNT)
    assert store.forget(URL, MODEL)
    assert not store.forget(URL, MODEL)
    assert store.load(URL, MODEL)[0] == Learnt()


def test_the_users_data_folder_is_the_default_place(data_folder):
    endpoint = Endpoint(URL, MODEL)
    endpoint.learn(LESSON, LEARNT)
    assert endpoint.store.path(URL, MODEL).is_relative_to(data_folder)
    assert Endpoint(URL, MODEL).profile.drop_fields == ("temperature",)
    assert Endpoint(URL, "other").profile.drop_fields == ()


def test_a_remembered_address_on_another_server_is_not_followed(store):
    store.save(URL, MODEL, Learnt(url="https://evil.example/v1/chat/completions"))
    assert Endpoint(URL, MODEL, key="k" * 20, learned=store).url == URL + "/chat/completions"
