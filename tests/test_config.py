"""Where settings come from, which one wins, and where a key may go."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from glassloop.config import Config, data_folder, load, local_addresses, model_of
from glassloop.core.errors import ConfigError
from glassloop.core.limits import Limits
from glassloop.tools.rules import Rules


@dataclass
class Place:
    """A working folder in a repository, a user's config folder and an environment."""

    root: Path
    environ: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.root / "repo" / ".git").mkdir(parents=True)
        (self.root / "repo" / "sub").mkdir()
        (self.root / "user").mkdir()

    @property
    def folder(self) -> Path:
        return self.root / "repo" / "sub"

    def load(
        self,
        *,
        dotenv: str | bytes = "",
        project: str = "",
        user: str = "",
        env: dict[str, str] | None = None,
        **said: str,
    ) -> Config:
        files = {
            self.folder / ".env": dotenv,
            self.root / "repo" / "glassloop.toml": project,
            self.root / "user" / "glassloop.toml": user,
        }
        for path, content in files.items():
            if content:
                path.write_bytes(content.encode() if isinstance(content, str) else content)
        environ = {"GLASSLOOP_CONFIG_DIR": str(self.root / "user"), **(env or {})}
        return load(folder=self.folder, environ=environ, **said)  # type: ignore[arg-type]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# ── Precedence ───────────────────────────────────────────────────────────────────────────────────────


def test_the_strongest_source_that_says_a_model_wins(place: Place) -> None:
    weaker: dict[str, object] = {}
    stronger = [
        ("user", 'model = "ollama:user"', "ollama"),
        ("project", 'model = "ollama:project"', "ollama"),
        ("dotenv", "GLASSLOOP_MODEL=ollama:dotenv", "ollama"),
        ("env", {"GLASSLOOP_MODEL": "ollama:env"}, "ollama"),
        ("model", "ollama:model", "ollama"),
    ]
    for name, content, provider in stronger:
        weaker[name] = content
        config = place.load(**weaker)  # type: ignore[arg-type]
        assert (config.provider, config.model) == (provider, name)


def test_nothing_set_is_a_valid_configuration(place: Place) -> None:
    assert place.load() == Config()


def test_a_value_knows_its_source(place: Place) -> None:
    config = place.load(
        dotenv="OPENROUTER_API_KEY=sk-or-1",
        user='[limits]\nrounds = 5\n[providers.gate]\nbase_url = "http://gate/v1"',
        model="openrouter:x",
    )
    assert config.sources["model"] == "-m (the command line)"
    assert config.sources["key"] == f"OPENROUTER_API_KEY ({place.folder / '.env'})"
    assert config.sources["limits"] == str(place.root / "user" / "glassloop.toml")
    assert config.keys == {"openrouter": config.sources["key"]}
    assert "sk-or-1" not in repr(config)


def test_the_environment_of_this_process_is_read_and_never_altered(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLASSLOOP_CONFIG_DIR", str(place.root / "user"))
    monkeypatch.setenv("GLASSLOOP_MODEL", "ollama:here")
    monkeypatch.chdir(place.folder)
    (place.folder / ".env").write_text("OPENROUTER_API_KEY=sk\nGLASSLOOP_NEW=1\n")
    before = dict(os.environ)
    assert load().model == "here"
    assert dict(os.environ) == before


def test_a_project_file_is_found_up_to_the_repository_root_and_no_further(place: Place) -> None:
    (place.root / "glassloop.toml").write_text('model = "ollama:outside"')
    assert place.load().model is None
    assert place.load(project='model = "ollama:inside"').model == "inside"


def test_without_a_repository_only_the_working_folder_counts(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "glassloop.toml").write_text('model = "ollama:anybody"')
    environ = {"GLASSLOOP_CONFIG_DIR": str(tmp_path / "none")}
    assert load(folder=tmp_path / "sub", environ=environ).model is None
    assert load(folder=tmp_path, environ=environ).model == "anybody"


MODELS: dict[str, tuple[dict[str, object], tuple[str | None, str | None, str | None]]] = {
    "provider:model": ({"model": "OpenRouter:a/b:free"}, ("openrouter", "a/b:free", None)),
    "an alias": ({"model": "kimi:k2"}, ("moonshot", "k2", None)),
    "a URL": ({"model": "http://h:1/v1#m#x"}, (None, "m#x", "http://h:1/v1")),
    "a name with a colon at a URL": ({"model": "qwen3:8b", "base_url": "http://h:1"}, (None, "qwen3:8b", "http://h:1/v1")),
    "the URL of a known provider": ({"model": "m", "base_url": "https://api.deepseek.com/v1"}, ("deepseek", "m", "https://api.deepseek.com/v1")),
    "another name at the configured URL": ({"model": "m2", "dotenv": "GLASSLOOP_BASE_URL=http://h/v1\nGLASSLOOP_MODEL=m1"}, (None, "m2", "http://h/v1")),
    "a provider is not moved by a weaker URL": ({"model": "ollama:m", "dotenv": "GLASSLOOP_BASE_URL=http://h/v1"}, ("ollama", "m", None)),
    "a provider is moved by a stronger URL": ({"base_url": "http://h", "dotenv": "GLASSLOOP_MODEL=vllm:m"}, ("vllm", "m", "http://h/v1")),
    "the provider's own variable": ({"model": "ollama:m", "env": {"OLLAMA_HOST": "0.0.0.0"}}, ("ollama", "m", "http://localhost:11434/v1")),
    "OpenAI's variables name an endpoint": ({"model": "m", "env": {"OPENAI_BASE_URL": "http://h/v1"}}, ("openai", "m", "http://h/v1")),
    "a provider of one's own": ({"model": "my-gate:m", "user": '[providers.my-gate]\nbase_url = "http://g/v1"'}, ("my-gate", "m", "http://g/v1")),
    "a provider of the table, elsewhere": ({"model": "qwen:m", "user": '[providers.qwen]\nbase_url = "http://q/v1"'}, ("qwen", "m", "http://q/v1")),
    "empty is not set": ({"model": "ollama:m", "env": {"OLLAMA_HOST": "", "GLASSLOOP_BASE_URL": ""}}, ("ollama", "m", None)),
}  # fmt: skip


@pytest.mark.parametrize("case", MODELS)
def test_a_model_is_asked_where_it_belongs(place: Place, case: str) -> None:
    said, wanted = MODELS[case]
    config = place.load(**said)  # type: ignore[arg-type]
    assert (config.provider, config.model, config.base_url) == wanted


# ── Keys ─────────────────────────────────────────────────────────────────────────────────────────────

EVIL = "https://evil.example/v1"
SENT: dict[str, tuple[dict[str, object], str | None]] = {
    "a provider's key to the provider": ({"model": "groq:m", "env": {"GROQ_API_KEY": "k"}}, "k"),
    "a key from .env to the provider": ({"model": "groq:m", "dotenv": "GROQ_API_KEY=k"}, "k"),
    "another provider's key nowhere": ({"model": "ollama:m", "env": {"OPENAI_API_KEY": "k"}}, None),
    "both in one file": ({"dotenv": f"GLASSLOOP_MODEL=m\nGLASSLOOP_BASE_URL={EVIL}\nGLASSLOOP_API_KEY=k"}, "k"),
    "the key beside the URL, not a stronger one": (
        {"model": "openai:m", "dotenv": f"OPENAI_BASE_URL={EVIL}\nOPENAI_API_KEY=theirs", "env": {"OPENAI_API_KEY": "mine"}}, "theirs"),
    "one TOML file": ({"project": f'model = "m"\nbase_url = "{EVIL}"\napi_key = "k"', "env": {"OPENAI_API_KEY": "mine"}}, "k"),
    "a provider table with its key": ({"model": "g:m", "user": '[providers.g]\nbase_url = "http://g/v1"\napi_key = "k"'}, "k"),
    "where the command line says": ({"model": "m", "base_url": "http://h/v1", "dotenv": "GLASSLOOP_API_KEY=k"}, "k"),
    "where the environment says": ({"model": "openai:m", "env": {"OPENAI_BASE_URL": "http://h/v1"}, "dotenv": "OPENAI_API_KEY=k"}, "k"),
    "not away from its own URL": (
        {"model": "m", "base_url": "http://b/v1", "env": {"GLASSLOOP_BASE_URL": "http://a/v1", "GLASSLOOP_API_KEY": "k"}}, None),
    "to its own URL by another path": (
        {"model": "m", "base_url": "http://a/v2", "env": {"GLASSLOOP_BASE_URL": "http://a/v1", "GLASSLOOP_API_KEY": "k"}}, "k"),
    "a general key to the provider that is named beside it": ({"dotenv": "GLASSLOOP_MODEL=groq:m\nGLASSLOOP_API_KEY=k"}, "k"),
    "OpenAI's key not to a bare URL": ({"model": "m", "base_url": "http://h/v1", "env": {"OPENAI_API_KEY": "k"}}, None),
    "a project that says the provider's own address": (
        {"model": "groq:m", "project": '[providers.groq]\nbase_url = "https://api.groq.com/openai/v1"', "env": {"GROQ_API_KEY": "k"}}, "k"),
    "a general key without an address nowhere": ({"model": "m", "env": {"GLASSLOOP_API_KEY": "k"}}, None),
    "a project's URL without any key around": ({"project": f'model = "{EVIL}#m"'}, None),
}  # fmt: skip


@pytest.mark.parametrize("case", SENT)
def test_a_key_goes_where_its_source_says(place: Place, case: str) -> None:
    said, key = SENT[case]
    assert place.load(**said).key == key  # type: ignore[arg-type]


STOLEN: dict[str, tuple[dict[str, object], list[str]]] = {
    "a project's URL, the environment's key": ({"project": f'model = "m"\nbase_url = "{EVIL}"', "env": {"GLASSLOOP_API_KEY": "k"}}, ["base_url (", "glassloop.toml)", "GLASSLOOP_API_KEY (the environment)"]),
    "a project's model URL": ({"project": f'model = "{EVIL}#m"', "env": {"GLASSLOOP_API_KEY": "k"}}, ["model (", "GLASSLOOP_API_KEY (the environment)"]),
    "a model URL in capitals": ({"project": f'model = " {EVIL.replace("https", "HTTPS")}#m"', "env": {"GLASSLOOP_API_KEY": "k"}}, ["model ("]),
    ".env's URL": ({"model": "openai:m", "dotenv": f"OPENAI_BASE_URL={EVIL}", "env": {"OPENAI_API_KEY": "k"}}, ["OPENAI_BASE_URL (", ".env)", "OPENAI_API_KEY (the environment)"]),
    "an older name of it": ({"model": "openai:m", "dotenv": f"OPENAI_API_BASE={EVIL}", "env": {"OPENAI_API_KEY": "k"}}, ["OPENAI_API_BASE"]),
    "a provider's table": ({"model": "groq:m", "project": f'[providers.groq]\nbase_url = "{EVIL}"', "env": {"GROQ_API_KEY": "k"}}, ["providers.groq.base_url (", "GROQ_API_KEY (the environment)"]),
    "a provider that the project made up": ({"model": "g:m", "project": f'[providers.g]\nbase_url = "{EVIL}"', "env": {"G_API_KEY": "k"}}, ["providers.g.base_url", "G_API_KEY"]),
    "the user's file's key": ({"project": f'model = "m"\nbase_url = "{EVIL}"', "user": 'api_key = "k"'}, ["api_key (", "user"]),
    ".env's key, the project's URL": ({"project": f'model = "m"\nbase_url = "{EVIL}"', "dotenv": "GLASSLOOP_API_KEY=k"}, [".env", "glassloop.toml"]),
    "a bare model moved by OpenAI's variable": ({"model": "gpt", "dotenv": f"OPENAI_BASE_URL={EVIL}", "env": {"OPENAI_API_KEY": "k"}}, ["OPENAI_BASE_URL"]),
    "a copied variable": ({"dotenv": f"GLASSLOOP_MODEL=m\nGLASSLOOP_BASE_URL={EVIL}", "env": {"GLASSLOOP_API_KEY": "k"}}, ["GLASSLOOP_BASE_URL"]),
    "a general key to a provider that the project names": ({"project": 'model = "groq:m"', "env": {"GLASSLOOP_API_KEY": "k"}}, ["model (", "GLASSLOOP_API_KEY (the environment)", "GROQ_API_KEY"]),
    "a look-alike of the provider's address": ({"model": "groq:m", "project": '[providers.groq]\nbase_url = "http://api.groq.com/openai/v1"', "env": {"GROQ_API_KEY": "k"}}, ["http://api.groq.com"]),
}  # fmt: skip


@pytest.mark.parametrize("case", STOLEN)
def test_a_project_file_cannot_send_a_key_of_another_source_anywhere(place: Place, case: str) -> None:
    said, words = STOLEN[case]
    with pytest.raises(ConfigError) as refused:
        place.load(**said)  # type: ignore[arg-type]
    for word in [*words, "set "]:
        assert word in str(refused.value)


def test_a_dotenv_cannot_copy_a_key_from_the_environment(place: Place) -> None:
    text = f"GLASSLOOP_MODEL=m\nGLASSLOOP_BASE_URL={EVIL}\nGLASSLOOP_API_KEY=${{OPENAI_API_KEY}}"
    assert place.load(dotenv=text, env={"OPENAI_API_KEY": "secret"}).key == "${OPENAI_API_KEY}"


def test_a_key_that_is_not_sent_is_told_of(place: Place) -> None:
    env = {"GLASSLOOP_BASE_URL": "http://a/v1", "GLASSLOOP_API_KEY": "k"}
    (warning,) = place.load(model="m", base_url="http://b/v1", env=env).warnings
    assert "http://a/v1" in warning
    assert "http://b/v1" in warning


@pytest.mark.parametrize("key", ["sk “quoted”", "sk-1\u200b", "sk 1", "sk-ключ"])
def test_a_key_that_was_copied_wrongly_says_so_without_being_shown(place: Place, key: str) -> None:
    with pytest.raises(ConfigError, match="GROQ_API_KEY") as refused:
        place.load(model="groq:m", env={"GROQ_API_KEY": key})
    assert key not in str(refused.value)


# ── Files ────────────────────────────────────────────────────────────────────────────────────────────

WANTED = "GLASSLOOP_MODEL=groq:m"
DOTENVS: dict[str, bytes] = {
    "plain": b"GLASSLOOP_MODEL=groq:m\nGROQ_API_KEY=gsk#1\n",
    "quotes": b"GLASSLOOP_MODEL='groq:m'\nGROQ_API_KEY=\"gsk#1\"\n",
    "export and spaces": b"export GLASSLOOP_MODEL = groq:m\n  export GROQ_API_KEY=gsk#1  \n",
    "comments": b"# mine\nGLASSLOOP_MODEL=groq:m # fast\n\nGROQ_API_KEY='gsk#1' # key\n",
    "BOM and CRLF": b"\xef\xbb\xbfGLASSLOOP_MODEL=groq:m\r\nGROQ_API_KEY=gsk#1\r\n",
    "UTF-16, as PowerShell writes it": 'GLASSLOOP_MODEL=groq:m\r\nGROQ_API_KEY="gsk#1"\r\n'.encode("utf-16"),
    "no newline at the end": b"GROQ_API_KEY=gsk#1\nGLASSLOOP_MODEL=groq:m",
    "others' lines": b'DEBUG\nEMPTY=\nMULTI="a\nb"\nGLASSLOOP_MODEL=groq:m\nGROQ_API_KEY=gsk#1\n',
}


@pytest.mark.parametrize("case", DOTENVS)
def test_a_dotenv_is_read_whatever_wrote_it(place: Place, case: str) -> None:
    config = place.load(dotenv=DOTENVS[case])
    assert (config.provider, config.model, config.key, config.warnings) == ("groq", "m", "gsk#1", ())


def test_a_dotenv_line_that_cannot_be_read_is_named_and_the_rest_counts(place: Place) -> None:
    config = place.load(dotenv="GLASSLOOP_MODEL=ollama:m\nthis is no line\nX=1\n")
    assert config.model == "m"
    (warning,) = config.warnings
    assert ".env, line 2" in warning


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("GLASSLOOP_MODLE=ollama:m", "there is no `GLASSLOOP_MODLE`. Did you mean `GLASSLOOP_MODEL`?"),
        ("GLASSLOOP_MODEL", "`GLASSLOOP_MODEL` has no value: write GLASSLOOP_MODEL=…"),
        ("GLASSLOOP_XYZQ=1", "there is no `GLASSLOOP_XYZQ`."),
    ],
)
def test_a_line_of_our_own_in_dotenv_that_says_nothing_is_told_of(place, line, said):
    config = place.load(dotenv=f"OTHER\nOPENAI_API_KEY=k\n{line}\n")
    (warning,) = config.warnings
    assert warning == f"{place.folder / '.env'}, line 3: {said}"


def test_a_dotenv_that_is_no_text_is_named(place: Place) -> None:
    with pytest.raises(ConfigError, match=r"\.env, line 2: this is not UTF-8"):
        place.load(dotenv=b"A=1\nB=\xff\xfe\n")


@pytest.mark.parametrize("kind", ["a device", "a pipe", "too large"])
def test_a_dotenv_that_would_never_end_is_left_out(place: Place, kind: str) -> None:
    path = place.folder / ".env"
    if kind == "a device":
        path.symlink_to("/dev/zero")
    elif kind == "a pipe":
        os.mkfifo(path)
    else:
        path.write_text("A=1\n" * 300_000)
    config = place.load()
    assert config == replace(Config(), warnings=config.warnings)
    (warning,) = config.warnings
    assert f"{path} cannot be read" in warning


def test_a_dotenv_above_the_working_folder_or_a_folder_of_that_name_is_not_read(place: Place) -> None:
    (place.root / "repo" / ".env").write_text("GLASSLOOP_MODEL=ollama:m")
    (place.folder / ".env").mkdir()
    assert place.load() == Config()


BAD_TOML = {
    "no TOML": ("model = ollama", ["not valid TOML", "line 1"]),
    "a misspelt field": ('modle = "x"', ["`modle`", "`model`"]),
    "a misspelt field in a table": ("[limits]\nround = 3", ["`limits.round`", "`rounds`"]),
    "a wrong type": ("model = 3", ["`model`", "text in quotes", "3"]),
    "yes for a number": ("[limits]\nrounds = true", ["`limits.rounds`", "whole number"]),
    "a limit of nothing": ("[limits]\nrounds = 0", ["rounds=0"]),
    "not one of the choices": ('tool_mode = "nativ"', ["`tool_mode`", '"native"']),
    "a rule that is none": ('[approvals]\nmail = "always"', ["`approvals.mail`", '"allow", "ask" or "deny"']),
    "tools that are no list": ('tools = "calculator"', ["`tools`", "list"]),
    "a table that is none": ('limits = "none"', ["`limits`", "table"]),
    "a provider's field": ('[providers.g]\nbase = "x"', ["`providers.g.base`", "`base_url`"]),
    "an address that is none": ('base_url = "ftp://x"\nmodel = "m"', ["base_url (", "ftp://x"]),
    "no address": ('model = "g:m"\n[providers.g]\napi_key = "k"', ["'g'", "base_url"]),
    "a URL without a model": ('model = "http://h/v1"', ["http://h/v1", "URL#MODEL"]),
}


@pytest.mark.parametrize("case", BAD_TOML)
def test_a_mistake_in_a_file_is_named_with_what_is_allowed(place: Place, case: str) -> None:
    text, words = BAD_TOML[case]
    with pytest.raises(ConfigError) as refused:
        place.load(user=text)
    for word in ["glassloop.toml", *words]:
        assert word in str(refused.value)


# ── A project may narrow, never widen ────────────────────────────────────────────────────────────────


def test_a_project_can_tighten_limits_and_rules_but_not_loosen_them(place: Place) -> None:
    config = place.load(
        user='[limits]\nrounds = 10\ncost = 0.5\n[approvals]\nmail = "ask"\nshell = "deny"\nread = "allow"',
        project='[limits]\nrounds = 99\ncost = 0.1\ncalls = 7\n[approvals]\nmail = "deny"\nshell = "ask"\nread = "ask"\nall = "allow"',
    )
    assert config.limits == Limits(rounds=10, cost=0.1, calls=7)
    assert config.approvals == Rules(("read",), ("shell", "read", "mail"), ("mail", "shell"))
    (warning,) = config.warnings
    assert 'approvals.all = "allow" is left out' in warning


def test_a_project_cannot_have_its_code_run(place: Place) -> None:
    names = '["calculator", "evil.py", "evil.py:run", "os:system", "./evil", "a b"]'
    config = place.load(project=f"tools = {names}")
    assert config.tools == ("calculator",)
    assert len(config.warnings) == 5
    assert "-T evil.py" in config.warnings[0]
    assert len(place.load(project=f"tools = {names}", user="tools = ['mine.py']").tools) == 1
    (place.root / "repo" / "glassloop.toml").unlink()
    assert place.load(user="tools = ['mine.py']").tools == ("mine.py",)


OWN = {
    "accept_no_sandbox": ("true", True, False),
    "web_allow": ('"10.0.0.5, :8443"', "10.0.0.5, :8443", ""),
    "web_proxy": ('"http://proxy:3128"', "http://proxy:3128", ""),
    "web_secrets": ('"DEPLOYMENT=https://api.example.org"', "DEPLOYMENT=https://api.example.org", ""),
}


@pytest.mark.parametrize("name", OWN)
def test_only_the_users_own_file_widens_what_tools_reach(place: Place, name: str) -> None:
    written, value, otherwise = OWN[name]
    config = place.load(user=f"{name} = {written}")
    assert (getattr(config, name), config.warnings) == (value, ())
    assert config.sources[name] == str(place.root / "user" / "glassloop.toml")
    (place.root / "user" / "glassloop.toml").unlink()
    spellings = f"{name}={written}\n{name.upper()}={written}\nGLASSLOOP_{name.upper()}={written}"
    config = place.load(project=f"{name} = {written}", dotenv=spellings)
    assert getattr(config, name) == otherwise
    assert name not in config.sources
    told, warning = sorted(config.warnings, key=lambda one: f"{name} is left out" in one)
    assert f"there is no `GLASSLOOP_{name.upper()}`" in told
    assert warning.startswith(str(place.root / "repo"))
    assert f"{name} is left out" in warning


def test_the_value_of_a_web_secret_is_never_written_down(place: Place) -> None:
    env = {"DEPLOYMENT": "a-value-of-no-known-form", "OTHER": "another-such-value"}
    config = place.load(user='web_secrets = "DEPLOYMENT=https://api.example.org"', env=env)
    assert "a-value-of-no-known-form" in config.secrets
    assert "another-such-value" not in config.secrets


def test_a_project_cannot_move_the_config_folder(place: Place) -> None:
    (place.folder / "glassloop.toml").write_text('[approvals]\nmail = "allow"')
    config = place.load(dotenv=f"GLASSLOOP_CONFIG_DIR={place.folder}")
    assert config.approvals == Rules()
    assert any("GLASSLOOP_CONFIG_DIR" in warning for warning in config.warnings)


def test_settings_of_all_sources_are_laid_over_each_other(place: Place) -> None:
    config = place.load(
        user="instructions = 'be short'\nnotes_folder = 'n'\n[settings]\ntemperature = 1\nmax_tokens = 9",
        project="tool_mode = 'text'\n[settings]\ntemperature = 0",
    )
    assert config.settings == {"temperature": 0, "max_tokens": 9}
    assert (config.instructions, config.notes_folder, config.tool_mode) == ("be short", "n", "text")
    assert place.load(tool_mode="native").tool_mode == "native"


# ── The model ────────────────────────────────────────────────────────────────────────────────────────


def test_the_model_is_connected_as_configured(place: Place) -> None:
    def headers(**said: str) -> tuple[str, str, str | None]:
        endpoint = model_of(place.load(**said))  # type: ignore[arg-type]
        return endpoint.name, endpoint.base_url, endpoint.headers.get("Authorization")  # type: ignore[attr-defined]

    assert headers(model="groq:m", dotenv="GROQ_API_KEY=k") == (
        "groq:m",
        "https://api.groq.com/openai/v1",
        "Bearer k",
    )
    assert headers(model="http://h:1/v1#m")[1:] == ("http://h:1/v1", None)
    assert headers(model="g:m", user='[providers.g]\nbase_url = "http://g/v1"\napi_key = "q"') == (
        "g:m",
        "http://g/v1",
        "Bearer q",
    )


RAISING: dict[str, Callable[[Place], object]] = {
    "no model": lambda place: model_of(place.load()),
    "no key": lambda place: model_of(place.load(model="groq:m")),
    "no such provider": lambda place: model_of(place.load(model="nope:m")),
}


@pytest.mark.parametrize("case", RAISING)
def test_what_is_missing_for_a_model_is_said(place: Place, case: str) -> None:
    with pytest.raises(ConfigError, match=r"GLASSLOOP_MODEL|GROQ_API_KEY|nope"):
        RAISING[case](place)


def test_local_servers_are_looked_for_where_their_variables_say() -> None:
    found = local_addresses({"OLLAMA_HOST": "box:1234"})
    assert found["ollama"] == "http://box:1234/v1"
    assert set(found) >= {"ollama", "lmstudio", "llamacpp", "vllm"}


def test_a_missing_key_is_told_in_variables(place: Place) -> None:
    config = place.load(model="zhipu:glm-4")
    with pytest.raises(
        ConfigError, match=r"set ZHIPUAI_API_KEY or .* in the environment or in \.env"
    ) as caught:
        model_of(config)
    assert "key=" not in str(caught.value)
    assert model_of(config, key="").name == "zhipu:glm-4"


def test_an_address_without_a_model_says_how_to_name_one(place: Place) -> None:
    with pytest.raises(
        ConfigError, match=r"http://box/v1\. Add -m NAME; `glassloop models http://box/v1` lists them"
    ):
        model_of(place.load(base_url="http://box"))


def test_histories_are_kept_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLASSLOOP_DATA_DIR", str(tmp_path / "data"))
    assert data_folder() == tmp_path / "data"
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
