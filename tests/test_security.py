"""The bad inputs that an agent must stand: each with the tests that hold us to it, which must exist.

Numbers are those of the project's security notes. What has no part here that could get it wrong says so instead.
"""

from __future__ import annotations

import ast
import asyncio
import importlib
import io
import json
import socket
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.builtin.webserver import answering, serving

from glassloop import Agent
from glassloop.cli.markdown import Block
from glassloop.cli.options import Options, tools_of
from glassloop.config import Config, allowed, load
from glassloop.core.entries import Image, Text
from glassloop.core.errors import ConfigError
from glassloop.models.scripted import ScriptedModel
from glassloop.tools.context import ToolContext
from glassloop.tools.rules import Rules

TESTS = Path(__file__).parent


def no_part(why: str) -> str:
    """Nothing that we have could be given this; why."""
    return f"not here: {why}"


CALCULATOR = "builtin/test_calculator.py::"
ARGUMENTS = "wire/test_arguments.py::test_what_cannot_be_read_for_certain_is_a_problem_that_says_why"
ROOTED = "builtin/test_rooted.py::"
ESCAPE = ROOTED + "test_a_path_that_leads_out_or_through_a_link_is_refused_by_every_tool"
PROTECTED = ROOTED + "test_a_protected_name_is_never_written_moved_or_deleted_even_where_it_does_not_exist"
ADDRESS = "builtin/test_web_address.py::"
OWN_NETWORK = ADDRESS + "test_an_address_of_ones_own_network_is_refused_however_it_is_spelled"
NO_URL = ADDRESS + "test_what_is_no_plain_web_address_is_refused_by_its_text"
CLIENT = "builtin/test_web_client.py::"
SMUGGLED = "builtin/test_simple_command.py::test_whatever_a_shell_would_read_as_more_than_words_is_not_simple"
RULES = "tools/test_rules.py::"
SANDBOX = "builtin/test_sandbox.py::"
PROCESS = "builtin/test_process.py::"
MCP = "tools/test_mcp.py::"
MCP_CLIENT = "tools/test_mcp_client.py::"
APPROVAL = "tools/test_approval.py::"
UNTRUSTED = "tools/test_untrusted.py::"
STORE = "sessions/test_store.py::"
WIRE_LOG = "sessions/test_wire_log.py::"
CONFIG = "test_config.py::"

BAD_INPUTS: dict[int, tuple[str, ...]] = {
    # calculator
    1: (CALCULATOR + "test_code_is_never_anything_but_an_error",),
    2: (CALCULATOR + "test_code_is_never_anything_but_an_error",),
    3: (CALCULATOR + "test_a_bomb_is_refused_before_it_is_computed",),
    4: (CALCULATOR + "test_a_bomb_is_refused_before_it_is_computed",),
    5: (CALCULATOR + "test_a_bomb_is_refused_before_it_is_computed",),
    6: (CALCULATOR + "test_what_is_no_arithmetic_or_has_no_value_is_refused_with_its_place",),
    # what a model sends
    7: (ARGUMENTS,),
    8: (ARGUMENTS,),
    9: (ARGUMENTS,),
    10: (ARGUMENTS, "tools/test_coerce.py::test_numbers_beyond_a_float_are_a_problem_or_exact"),
    11: (
        "wire/test_arguments.py::test_arguments_in_other_syntax_are_read_and_the_mend_is_named",
        "sessions/test_journal.py::test_lone_surrogates_and_nan_are_stored_as_what_json_can_say",
    ),
    12: (
        "wire/test_arguments.py::test_no_text_makes_reading_raise_and_the_outcome_is_an_object_or_a_problem",
        "models/test_http.py::test_an_endless_body_is_refused_at_the_limit",
    ),
    13: ("tools/test_toolbox.py::test_an_unknown_tool_is_told_and_never_guessed",),
    14: (
        "wire/test_names.py::test_good_ids_stay_and_missing_blank_used_or_repeated_ones_are_minted",
        "models/test_endpoint.py::test_an_id_that_was_used_before_is_replaced",
    ),
    15: (
        "core/test_loop.py::test_more_than_128_calls_in_one_reply_are_all_refused",
        "agent/test_broken_parts.py::test_a_reply_with_thousands_of_calls_costs_no_square",
    ),
    16: (
        "models/test_endpoint.py::test_each_deadline_is_kept_and_named",
        "models/test_http.py::test_an_endless_body_is_refused_at_the_limit",
    ),
    17: (
        "models/test_endpoint.py::test_a_web_page_instead_of_json_says_so",
        "models/test_http.py::test_what_cannot_be_decoded_is_a_clear_error",
        "models/test_http.py::test_broken_http_is_a_clear_error",
    ),
    18: ("models/test_http.py::test_a_redirect_to_another_server_is_refused_and_the_key_stays_here",),
    # files
    19: (ESCAPE,),
    20: (ESCAPE,),
    21: (ESCAPE,),
    22: (ESCAPE, ROOTED + "test_a_link_is_shown_but_nothing_behind_it"),
    23: (ROOTED + "test_what_is_swapped_for_a_link_between_check_and_open_is_never_followed",),
    24: (ROOTED + "test_a_hard_link_is_never_written",),
    25: (ESCAPE, ROOTED + "test_a_pipe_a_socket_and_a_folder_are_refused_at_once"),
    26: (ESCAPE, ROOTED + "test_a_name_that_is_not_utf8_is_listed_with_escapes_and_can_be_read"),
    27: (ROOTED + "test_a_sibling_whose_name_begins_like_the_roots_is_outside",),
    28: ("builtin/test_files_search.py::test_a_pattern_that_leads_out_is_refused",),
    29: (PROTECTED, ROOTED + "test_our_own_folders_are_protected_and_secret_even_before_they_exist"),
    30: (no_part("no tool unpacks an archive; compressed answers are number 40"),),
    31: (ROOTED + "test_case_invisible_letters_and_composition_make_no_difference",),
    # the web
    32: (OWN_NETWORK,),
    33: (OWN_NETWORK, ADDRESS + "test_an_address_wrapped_into_another_is_judged_as_what_it_is"),
    34: (OWN_NETWORK,),
    35: (OWN_NETWORK, ADDRESS + "test_no_address_of_a_special_network_is_public"),
    36: (NO_URL,),
    37: (NO_URL,),
    38: (CLIENT + "test_a_name_that_changes_its_address_is_connected_to_where_it_was_judged",),
    39: (
        CLIENT + "test_a_redirect_is_judged_like_the_first_address",
        CLIENT + "test_redirects_are_followed_five_times",
    ),
    40: (
        CLIENT + "test_a_small_body_that_grows_is_read_to_the_limit",
        CLIENT + "test_another_coding_a_chain_or_a_damaged_body_is_refused",
        "models/test_http.py::test_a_compressed_bomb_is_refused_before_it_grows",
    ),
    41: (
        UNTRUSTED + "test_a_result_of_others_stands_between_two_lines_that_it_cannot_end_early",
        UNTRUSTED + "test_after_words_of_others_what_reaches_out_is_asked_about_each_time",
        "builtin/test_web_fetch.py::test_once_words_of_others_were_read_a_page_leads_to_no_other_host",
        "builtin/test_code_mode.py::test_what_code_reads_from_outside_taints_its_next_call_and_its_result",
    ),
    42: ("test_security.py::test_a_picture_named_by_its_address_is_never_fetched",),
    # programs
    43: (
        SMUGGLED,
        RULES + "test_a_shell_rule_matches_no_command_that_only_a_shell_understands",
        PROCESS + "test_words_never_reach_the_shell_that_sets_the_limits",
    ),
    44: (
        RULES + "test_an_allow_rule_covers_nothing_beside_it",
        "builtin/test_files_search.py::test_an_expression_cannot_be_an_option_or_name_a_file",
    ),
    45: (
        RULES + "test_an_allow_rule_covers_nothing_beside_it",
        "builtin/test_shell.py::test_what_a_repository_or_its_environment_names_is_not_run",
    ),
    46: ("builtin/test_shell.py::test_the_working_folder_lasts_and_nothing_else_does",),
    47: (
        "builtin/test_simple_command.py::test_a_bad_command_after_sixty_harmless_ones_is_shown_like_them",
        "builtin/test_shell.py::test_every_command_is_asked_about_and_each_part_shown",
    ),
    48: (
        SANDBOX + "test_a_bomb_of_processes_is_stopped_and_all_of_it_is_gone",
        PROCESS + "test_of_a_gigabyte_of_output_the_beginning_and_the_end_are_kept",
        PROCESS + "test_a_child_gets_no_more_than_its_limits",
        PROCESS + "test_what_a_command_leaves_running_ends_with_it",
    ),
    49: (
        SANDBOX + "test_no_key_is_in_any_environment",
        PROCESS + "test_the_environment_is_built_from_nothing",
    ),
    50: (SANDBOX + "test_protected_places_cannot_be_made_where_they_do_not_exist_yet",),
    51: (
        SANDBOX + "test_sockets_of_agents_and_engines_cannot_be_reached",
        SANDBOX + "test_no_setting_of_the_machine_can_be_written",
    ),
    52: (
        SANDBOX + "test_one_that_is_installed_but_cannot_start_is_none",
        "builtin/test_shell.py::test_without_a_sandbox_nothing_runs_and_the_reason_is_the_result",
    ),
    # MCP
    53: (
        MCP_CLIENT + "test_a_changed_or_new_definition_is_left_out_until_it_is_accepted",
        MCP + "test_any_change_of_a_definition_is_another_hash",
        "cli/test_mcp.py::test_a_changed_command_is_not_started",
        "cli/test_mcp.py::test_a_changed_description_is_shown_and_left_out_until_it_is_accepted",
        "test_trust.py::test_what_cannot_be_read_is_neither_used_nor_written_over",
    ),
    54: (
        MCP_CLIENT + "test_two_servers_with_the_same_tool_do_not_shadow_each_other",
        MCP + "test_a_server_cannot_take_the_names_of_another_by_its_own_name",
    ),
    55: (MCP + "test_the_model_reads_no_more_of_a_description_than_a_person_can_see",),
    56: (MCP_CLIENT + "test_a_bad_server_costs_one_tool_error",),
    57: (MCP + "test_a_server_that_wants_input_in_the_middle_of_a_call_is_refused",),
    # terminal, secrets, state
    58: (
        "cli/test_run.py::test_what_a_model_says_cannot_steer_the_terminal",
        "cli/test_markdown.py::test_markdown_neither_steers_the_terminal_nor_makes_links",
        "cli/test_asking.py::test_a_person_sees_the_diff_and_allows_once_for_the_session_always_or_not_at_all",
        APPROVAL + "test_the_question_shows_every_argument_in_full_and_nothing_invisible",
    ),
    59: (
        WIRE_LOG + "test_a_key_split_over_two_chunks_is_not_in_the_file",
        WIRE_LOG + "test_a_planted_key_is_nowhere_in_the_file_or_in_what_is_made_of_it",
        "cli/test_sessions.py::test_a_planted_key_is_nowhere_in_file_exports_and_screens",
        "models/test_endpoint.py::test_the_key_is_in_no_error_no_event_and_no_record",
    ),
    60: (
        "sessions/test_failures.py::test_a_row_is_data_or_refused_and_nothing_in_it_is_ever_run",
        "sessions/test_failures.py::test_a_type_is_looked_up_in_our_own_table_only",
    ),
    61: (
        "sessions/test_journal.py::test_ids_that_could_be_anything_else_are_refused",
        "sessions/test_failures.py::test_sql_in_names_and_queries_is_only_text",
    ),
    62: (
        "sessions/test_failures.py::test_what_is_no_private_regular_file_is_refused_at_once",
        "sessions/test_failures.py::test_the_file_system_is_the_one_mounted_nearest",
    ),
    63: (
        CONFIG + "test_a_project_file_cannot_send_a_key_of_another_source_anywhere",
        CONFIG + "test_a_project_can_tighten_limits_and_rules_but_not_loosen_them",
        CONFIG + "test_a_project_cannot_have_its_code_run",
        CONFIG + "test_only_the_users_own_file_widens_what_tools_reach",
        "test_trust.py::test_a_dotenv_never_says_what_is_run",
        "cli/test_mcp.py::test_nothing_untrusted_is_started_or_read_and_one_line_says_so",
        "test_security.py::test_a_project_cannot_widen_what_tools_may_do",
    ),
    64: (no_part("there is no local web server yet; it brings these with it"),),
    65: (
        STORE + "test_an_answer_is_used_once",
        STORE + "test_answers_that_do_not_fit_are_refused",
        STORE + "test_a_run_that_is_over_takes_no_answers",
        APPROVAL + "test_a_file_that_changed_since_it_was_shown_is_not_overwritten",
        "tools/test_toolbox.py::test_a_stored_verdict_of_a_tool_that_has_changed_does_not_run",
    ),
    66: (
        "builtin/test_files_search.py::test_an_expression_made_to_take_for_ever_is_answered",
        "builtin/test_files_text.py::test_a_pattern_made_to_take_for_ever_answers",
    ),
}


@cache
def _tests_in(file: str) -> frozenset[str]:
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return frozenset(
        node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )


def test_no_bad_input_is_forgotten() -> None:
    assert list(BAD_INPUTS) == list(range(1, 67))


@pytest.mark.parametrize("number", BAD_INPUTS)
def test_each_bad_input_has_tests_that_exist(number: int) -> None:
    for test in BAD_INPUTS[number]:
        if not test.startswith("not here: "):
            file, _, name = test.partition("::")
            assert name in _tests_in(file), test


TABLES = [
    ("tests.builtin.test_rooted", "ESCAPES", 12),
    ("tests.builtin.test_web_address", "SPELLINGS", 15),
    ("tests.builtin.test_web_address", "NO_URL", 8),
    ("tests.builtin.test_simple_command", "SMUGGLED", 20),
    ("tests.tools.test_rules", "SMUGGLED", 20),
    ("tests.tools.test_rules", "NOT_COVERED", 20),
    ("tests.builtin.test_rooted", "PROTECTED", 20),
    ("tests.cli.test_safe_text", "SHOWN", 12),
]


@pytest.mark.parametrize(("module", "table", "fewest"), TABLES)
def test_the_tables_are_as_long_as_was_promised(module: str, table: str, fewest: int) -> None:
    found: Any = getattr(importlib.import_module(module), table)
    assert len(found.split() if isinstance(found, str) else found) >= fewest


# ── what has its only test here ──────────────────────────────────────────────────────────────────────


def test_a_project_cannot_widen_what_tools_may_do(tmp_path: Path) -> None:
    project, user = tmp_path / "project", tmp_path / "user"
    project.mkdir()
    user.mkdir()
    (project / "glassloop.toml").write_text(
        'files_root = "../user"\naccept_no_sandbox = true\n'
        '[approvals]\nallow = ["shell"]\nallow_after_untrusted = ["shell"]\nask = ["read_file"]\ndeny = ["shell: rm"]\n'
    )
    (user / "glassloop.toml").write_text('[approvals]\nallow = ["read_file", "shell: git status"]\n')
    config = load(folder=project, environ={"GLASSLOOP_CONFIG_DIR": str(user)})
    assert config.approvals == Rules(("read_file", "shell: git status"), ("read_file",), ("shell: rm",))
    assert (config.files_root, config.accept_no_sandbox) == (".", False)
    assert [warning.rpartition("toml: ")[2].split(" ")[0] for warning in config.warnings] == [
        "approvals.allow",
        "approvals.allow_after_untrusted",
        "files_root",
        "accept_no_sandbox",
    ]


def test_what_the_user_allows_on_the_web_reaches_the_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOYMENT", "a-value-of-no-known-form")
    config = Config(web_allow="127.0.0.1", web_secrets="DEPLOYMENT=http://127.0.0.1", web_proxy="")
    fetch, request = tools_of(Options(tools=("web_fetch", "http_request")), config)

    async def asked() -> str:
        async with serving(answering(b"mine", headers={"Content-Type": "text/plain"})[1]) as port:
            return str(await fetch.function(f"http://127.0.0.1:{port}/", ToolContext()))

    assert asyncio.run(asked()).endswith("mine")
    header = {"headers": {"Authorization": "${DEPLOYMENT}"}, "url": "http://127.0.0.1/"}
    assert "with your secret DEPLOYMENT" in str(request.approve(header))
    with pytest.raises(ConfigError, match="web_proxy is no http"):
        tools_of(Options(tools=("web_fetch",)), replace(config, web_proxy="socks5://x"))


def test_a_project_may_name_a_folder_of_its_own_as_root(tmp_path: Path) -> None:
    (tmp_path / "glassloop.toml").write_text('files_root = "docs"\n')
    config = load(folder=tmp_path, environ={"GLASSLOOP_CONFIG_DIR": str(tmp_path / "none")})
    assert config.files_root == str(tmp_path / "docs")


MISTYPED = {
    'allow = "shell"': ["`approvals.allow`", "list of rules", "shell: git status"],
    'allow = ["shell: ls | wc"]': ["`approvals.allow`", "ls | wc", "no rule for a command"],
    'deny = ["effect: evil"]': ["`approvals.deny`", "read, idempotent, once"],
    '"a b" = "ask"': ["`approvals.a b`", "is no rule"],
}


@pytest.mark.parametrize("text", MISTYPED)
def test_a_mistyped_rule_in_a_file_is_named_with_file_field_and_what_was_expected(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "glassloop.toml").write_text(f"[approvals]\n{text}\n")
    with pytest.raises(ConfigError) as refused:
        load(folder=tmp_path, environ={"GLASSLOOP_CONFIG_DIR": str(tmp_path / "none")})
    for words in ("glassloop.toml", *MISTYPED[text]):
        assert words in str(refused.value)


def test_what_was_allowed_for_good_holds_in_its_repository_and_nowhere_else(tmp_path: Path) -> None:
    file = tmp_path / "config" / allowed.FILE_NAME
    repository, other = tmp_path / "repository", tmp_path / "other"
    (repository / ".git").mkdir(parents=True)
    (repository / "deep").mkdir()
    other.mkdir()
    allowed.allow_always(file, repository / "deep", "shell: git status")
    allowed.allow_always(file, repository, "shell: git status")
    allowed.allow_always(file, repository, "write_file: docs/**")
    environ = {"GLASSLOOP_CONFIG_DIR": str(file.parent)}
    assert load(folder=repository, environ=environ).approvals.allow == (
        "shell: git status",
        "write_file: docs/**",
    )
    assert load(folder=other, environ=environ).approvals == Rules()
    assert file.stat().st_mode & 0o077 == 0
    file.write_text('{"' + str(other) + '": ["shell: a | b"]}')
    with pytest.raises(ConfigError, match=r"approvals\.json: 'a \| b' is no rule"):
        load(folder=other, environ=environ)


def test_a_picture_named_by_its_address_is_never_fetched() -> None:
    """It is sent on as an address; who opens it is the endpoint. A connection made by us would be seen here."""
    with socket.create_server(("127.0.0.1", 0)) as trap:
        trap.settimeout(0.2)
        url = f"http://127.0.0.1:{trap.getsockname()[1]}/tracker.png"
        model = ScriptedModel([f"![look]({url})"])
        done = Agent(model).run_sync([Text("what is this?"), Image(url=url)])
        markdown = Console(file=io.StringIO())
        markdown.print(Block(done.text))
        with pytest.raises(TimeoutError):
            trap.accept()
    assert url in json.dumps(done.messages)
