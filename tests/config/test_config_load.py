"""Where values come from, which wins, and what an error says."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from foredeck.config import Config, Resolved, load_config
from foredeck.config.keys import RESERVED, all_keys, environment_name, key_name
from foredeck.config.model import BUILT_IN
from foredeck.errors import ConfigError
from foredeck_bench.docs_pages import described


class Layers:
    """The places that a configuration comes from, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.user_file = folder / "config.toml"
        self.project = folder / "project"
        self.project_file = self.project / ".pi" / "foredeck.toml"
        self.project_file.parent.mkdir(parents=True)

    def load(
        self, *flags: str, trusted: bool = True, environ: dict[str, str] | None = None
    ) -> Resolved:
        return load_config(
            project=self.project,
            trusted=trusted,
            flags=flags,
            environ=environ or {},
            user_file=self.user_file,
        )

    def left_out(self) -> str:
        """What is said to be wrong with the project's file, the rest of which counts."""
        return "\n".join(self.load().left_out)

    def error(self, *flags: str, environ: dict[str, str] | None = None) -> str:
        with pytest.raises(ConfigError) as caught:
            self.load(*flags, environ=environ)
        return str(caught.value)


@pytest.fixture
def layers(tmp_path: Path) -> Layers:
    return Layers(tmp_path)


def test_without_any_layer_everything_is_a_default(layers: Layers) -> None:
    resolved = layers.load()
    assert resolved.config == Config()
    assert {str(origin) for origin in resolved.origins.values()} == {"default"}
    assert set(resolved.origins) == set(all_keys())


def test_each_layer_overrides_the_one_before_and_is_remembered(layers: Layers) -> None:
    layers.user_file.write_text(
        "observations = 'on'\nlayout = 'pools'\n"
        "[seed_window]\nper_turn = 11\nturns = 12\n[rebase]\ncache_ttl_s = 60\n"
    )
    layers.project_file.write_text(
        "observations = 'off'\npolicy = 'keep-all'\n[seed_window]\nper_turn = 21\nturns = 22\n"
    )
    environ = {"FOREDECK_OBSERVATIONS": "on", "FOREDECK_SEED_WINDOW__PER_TURN": "31"}
    resolved = layers.load("observations=off", environ=environ)
    config = resolved.config
    assert config.layout == "pools"
    assert config.rebase.cache_ttl_s == 60
    assert (config.seed_window.turns, config.seed_window.per_turn) == (22, 31)
    assert (config.observations, config.policy) == ("off", "keep-all")
    assert {key: str(origin) for key, origin in resolved.origins.items() if origin.place} == {
        "layout": f"user: {layers.user_file}",
        "rebase.cache_ttl_s": f"user: {layers.user_file}",
        "policy": f"project: {layers.project_file}",
        "seed_window.turns": f"project: {layers.project_file}",
        "seed_window.per_turn": "environment: FOREDECK_SEED_WINDOW__PER_TURN",
        "observations": "flag: --set observations",
    }
    assert resolved.values["seed_window.turns"] == 22


def test_the_project_file_is_not_even_read_unless_trusted(layers: Layers) -> None:
    layers.project_file.write_text("this is not TOML")
    assert layers.load(trusted=False).left_out == ()
    assert layers.left_out().startswith(f"{layers.project_file}: not valid TOML")


@pytest.mark.parametrize(
    "setting",
    [
        *('store = "sqlite"', 'xtdb.topology = "memory"', 'head.shows = ["notes"]'),
        *("sources.watch = false", '[[sources.mounts]]\nprefix = "/"\nhost_path = "/etc"'),
        *("deadline_ms = 30000", "rewind = false"),
    ],
)
def test_a_project_cannot_set_what_it_is_not_trusted_with(layers: Layers, setting: str) -> None:
    layers.project_file.write_text(setting)
    assert layers.load().config == Config()
    text = layers.left_out()
    assert "cannot be set by a project" in text
    assert "not trusted" in text
    assert "config.toml, by environment or by flag" in text
    layers.user_file.write_text(setting)
    layers.project_file.unlink()
    layers.load()


def test_what_a_project_may_set_is_how_its_sessions_are_shown_to_the_model() -> None:
    """A new key has to be weighed: what can a hostile repository do with it?"""
    refused = {key.name.partition(".")[0] for key in all_keys().values() if key.user_only}
    assert refused == {
        *("store", "home", "xtdb", "head", "memory", "sources", "policy_options", "rewind"),
        *("guard", "asking", "deadline_ms"),
    }


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("store = 'xtdb'", "'store' cannot be set by a project"),
        ("nonsense = 1", "unknown key 'nonsense'"),
        ("observations = 'loud'", "observations: must be 'auto', 'on' or 'off', not 'loud'"),
        ("notes.folders = ['/etc']", "'notes.folders' names a folder outside the project"),
        ("notes.folders = ['x', 'a/../../b']", "'notes.folders' names a folder outside"),
        ("notes.folders = ['~/diary']", "'notes.folders' names a folder outside"),
        ("notes.folders = ['C:\\x']", "'notes.folders' names a folder outside"),
        ("notes.folders = 'x'", "notes.folders: must be a valid tuple"),
    ],
)
def test_the_rest_of_a_projects_file_counts(layers: Layers, wrong: str, said: str) -> None:
    layers.project_file.write_text(f"{wrong}\nlayout = 'pools'\n")
    assert layers.load().config == Config(layout="pools")
    assert said in layers.left_out()
    assert said in layers.load().warning


def test_a_wrong_value_of_a_project_leaves_the_users_own(layers: Layers) -> None:
    layers.user_file.write_text("observations = 'off'\n")
    layers.project_file.write_text("observations = 'loud'\nlayout = 'pools'\n")
    config = layers.load().config
    assert (config.observations, config.layout) == ("off", "pools")
    assert "observations: must be" in layers.left_out()
    layers.user_file.write_text("observations = 'loud'\n")
    layers.project_file.write_text("layout = 'pools'\n")
    assert f"{layers.user_file}: observations: must be" in layers.error()


def test_many_wrong_keys_are_named_in_few_words(layers: Layers) -> None:
    layers.project_file.write_text("".join(f"wrong{n} = 1\n" for n in range(4000)))
    resolved = layers.load()
    assert len(resolved.left_out) == 4000
    assert resolved.warning.count("\n") == 2
    assert resolved.warning.endswith("and 3,999 more: `foredeck config --trusted` lists them")


def test_a_projects_file_may_not_lead_out_of_it(layers: Layers) -> None:
    layers.user_file.write_text("layout = 'pools'\n")
    layers.project_file.symlink_to(layers.user_file)
    assert layers.left_out() == f"{layers.project_file}: it leads out of the project"


def test_no_file_can_say_where_the_state_is(layers: Layers) -> None:
    for file, told in ((layers.user_file, layers.error), (layers.project_file, layers.left_out)):
        file.write_text('home = "/tmp/elsewhere"')
        assert told() == (
            f"{file}: 'home' cannot be set in a file, since the Pi extension has to know it "
            "before it reads one; set FOREDECK_HOME in the environment"
        )
        file.unlink()


def test_the_null_device_is_an_empty_file() -> None:
    assert load_config(environ={}, user_file=Path(os.devnull)).config == Config()


def test_a_pipe_or_a_device_is_not_read(layers: Layers) -> None:
    os.mkfifo(layers.project_file)
    why = "cannot be read: it is a named pipe, not a file"
    assert layers.left_out() == f"{layers.project_file}: {why}"
    layers.user_file.symlink_to("/dev/zero")
    assert layers.error() == f"{layers.user_file}: cannot be read: it is a device, not a file"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("#" * 70_000, "cannot be read: it is larger than 65,536 bytes"),
        ("policy = " + "[" * 60_000, "its values are nested too deeply"),
        ("a." * 30_000 + "a = 1", "a line has more than 30 dots: no key has so many parts"),
    ],
)
def test_a_file_that_is_no_configuration_is_refused(
    layers: Layers, content: str, text: str
) -> None:
    layers.project_file.write_text(content)
    assert layers.left_out() == f"{layers.project_file}: {text}"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("seed_windw = 1", "unknown key 'seed_windw'"),
        ("[seed_window]\nper_trun = 1", "did you mean 'seed_window.per_turn'?"),
        ("[seed_windw]\nturns = 1", "did you mean 'seed_window.turns'?"),
        ("[nonsense]\n", "unknown key 'nonsense'"),
        ("turns = 1", "did you mean 'seed_window.turns'?"),
        ("qqqq = 1", "`foredeck config` lists all keys"),
        ("seed_window = 1", "'seed_window' is a section; set a key in it"),
        ("[layout]\na = 1", "layout: must be 'anchored' or 'pools', not"),
        ("deadline_ms = 'soon'", "deadline_ms: must be a valid integer, not 'soon'"),
        (
            "[seed_window]\nturns = 0",
            "seed_window.turns: must be greater than or equal to 1, not 0",
        ),
        ("store = 'mongo'", "store: must be 'sqlite' or 'xtdb', not 'mongo'"),
        ("[xtdb]\nurl = 'localhost:3000'", "must be an address that starts with http://"),
        ("[xtdb]\ntoken_file = 'token'", "xtdb.token_file: must be an absolute path"),
        ("[sources]\nsandboxed = true", "sources.sandboxed needs sources.filesystem_id"),
        ("[[sources.mounts]]\nprefix = '/a'", "sources.mounts[0]: needs host_path"),
        (
            "[[sources.mounts]]\nprefix = '/a'\nhost_pth = '/b'",
            "sources.mounts[0].host_pth: unknown; the keys here are prefix, host_path,",
        ),
        (
            "[[sources.mounts]]\nprefix = 'a'\nfilesystem_id = 'f'",
            "sources.mounts[0].prefix: must be an absolute path",
        ),
    ],
)
def test_an_error_names_the_file_the_key_and_what_to_do(
    layers: Layers, content: str, text: str
) -> None:
    layers.user_file.write_text(content)
    error = layers.error()
    assert text in error
    if "sandboxed" not in content:
        assert error.startswith(f"{layers.user_file}: ")


def test_all_errors_of_all_layers_are_told_at_once(layers: Layers) -> None:
    layers.user_file.write_text("one = 1\n")
    text = layers.error("three=3", environ={"FOREDECK_TWO": "2"})
    assert [line.split(": ")[0] for line in text.split("\n")] == [
        str(layers.user_file),
        "FOREDECK_TWO",
        "--set three",
    ]


def test_a_file_that_is_not_utf8_or_is_a_folder_is_an_error(layers: Layers) -> None:
    layers.user_file.write_bytes(b"layout = '\xff'")
    assert "not valid TOML" in layers.error()
    layers.user_file.unlink()
    layers.user_file.mkdir()
    assert f"{layers.user_file}: cannot be read" in layers.error()


def test_variables_of_others_are_ignored_and_empty_ones_are_unset(layers: Layers) -> None:
    environ = dict.fromkeys(RESERVED, "x") | {
        "FOREDECK": "x",
        "FOREDECK_DEMO_MODEL": "x",
        "FOREDECK_XTDB_JAVA": "x",
        "FOREDECK_XTDB_PGHOST": "x",
        "FOREDECK_LAYOUT": "",
        "OTHER": "x",
    }
    assert layers.load(environ=environ).config == Config()


def test_text_becomes_the_kind_of_its_key(layers: Layers) -> None:
    mounts = [{"prefix": "/w", "host_path": "/srv/w"}, {"prefix": "/n", "filesystem_id": "nas"}]
    config = layers.load(
        "rebase.cache_ttl_s=none",
        "sources.watch=false",
        environ={
            "FOREDECK_HOME": "~/state",
            "FOREDECK_REBASE__CACHE_TTL_S": "60",
            "FOREDECK_ASKING__SHARE": "0.9",
            "FOREDECK_SOURCES__MOUNTS": json.dumps(mounts),
        },
    ).config
    assert config.home == Path.home() / "state"
    assert layers.load("home=state").config.home == Path.cwd() / "state"
    assert config.rebase.cache_ttl_s is None
    assert config.asking.share == 0.9
    assert config.sources.watch is False
    assert config.sources.mounts[0].host_path == Path("/srv/w")
    assert config.sources.mounts[1].filesystem_id == "nas"


def test_a_list_that_is_not_json_says_so(layers: Layers) -> None:
    text = layers.error(environ={"FOREDECK_SOURCES__MOUNTS": "/a:/b"})
    assert "FOREDECK_SOURCES__MOUNTS: sources.mounts: must be JSON" in text


@pytest.mark.parametrize("flag", ["layout", "=pools", ""])
def test_a_flag_that_is_not_key_and_value_says_so(layers: Layers, flag: str) -> None:
    assert "is not KEY=VALUE" in layers.error(flag)


def test_every_key_has_a_variable_a_type_and_a_description() -> None:
    for name, key in all_keys().items():
        assert key_name(environment_name(name)) == name
        assert described(name).endswith("."), name
        assert key.type_text != "table", name
    assert ", ".join(f"`{name}`" for name in BUILT_IN) in described("policy")


def test_an_xtdb_address_selects_the_store(layers: Layers) -> None:
    url = "http://127.0.0.1:3000"
    resolved = layers.load(environ={"FOREDECK_XTDB_URL": url})
    assert (resolved.config.store, resolved.config.xtdb.url) == ("xtdb", url)
    assert str(resolved.origins["store"]) == "environment: FOREDECK_XTDB_URL"
    stated = {"FOREDECK_XTDB_URL": url, "FOREDECK_STORE": "sqlite"}
    assert layers.load(environ=stated).config.store == "sqlite"
    other = {"FOREDECK_XTDB__URL": url, "FOREDECK_XTDB_JAVA": "/opt/java"}
    assert layers.load(environ=other).config.xtdb.url == url
    layers.project_file.write_text(f"[xtdb]\nurl = '{url}'\n")
    assert "cannot be set by a project" in layers.left_out()


def test_a_constant_is_no_setting_but_for_benches(layers: Layers) -> None:
    layers.user_file.write_text("[adaptive]\npatience = 20\n")
    assert "unknown key 'adaptive.patience'" in layers.error()
    layers.user_file.write_text("")
    set_by = {"FOREDECK_ADAPTIVE__PATIENCE": "20"}
    assert "unknown key 'adaptive.patience'" in layers.error(environ=set_by)
    resolved = layers.load(environ={**set_by, "FOREDECK_TEST_CONSTANTS": "1"})
    assert resolved.config.adaptive.patience == 20
    assert "adaptive.patience" not in resolved.origins
