"""A policy of another package: the example in docs/context.md works as it stands there."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from context.conftest import NewHost
from context.messages import lines
from context.scenes import ask, bash, finish
from foredeck.config.load import load_config
from foredeck.config.model import BUILT_IN, ENTRY_POINTS, Config
from foredeck.context.policies.built_in import POLICIES, make_policy
from foredeck.errors import ConfigError
from foredeck.model.quoting import is_reference

PAGE = Path(__file__).parents[2] / "docs" / "context.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's package as an installer leaves it: a module, and metadata beside it."""
    site = tmp_path / "site-packages"
    project = tomllib.loads(blocks("toml")[0])["project"]
    metadata = site / f"nothing_large-{project['version']}.dist-info"
    metadata.mkdir(parents=True)
    (site / "nothing_large.py").write_text(blocks("python")[0])
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    named = project["entry-points"][ENTRY_POINTS].items()
    points = "\n".join(f"{name} = {place}" for name, place in named)
    (metadata / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\n{points}\n")
    monkeypatch.delitem(sys.modules, "nothing_large", raising=False)
    monkeypatch.syspath_prepend(site)
    return site


@pytest.mark.usefixtures("installed")
def test_the_example_folds_what_it_says(new_host: NewHost) -> None:
    host = new_host(policy="nothing-large", policy_options={"limit": 500})
    ask(host)
    bash(host, "small", lines(2, "small"))
    bash(host, "large", lines(200, "large"))
    finish(host)
    host.wait(600)
    sent = ask(host)
    assert [is_reference(sent.text(n)) for n in (2, 4)] == [False, True]
    assert sent.record.policy == "nothing-large"


@pytest.mark.usefixtures("installed")
def test_the_configuration_on_the_page_can_be_loaded(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(blocks("toml")[1])
    config = load_config(user_file=file, environ={}).config
    assert make_policy(config.policy, config).name == "nothing-large"


@pytest.mark.usefixtures("installed")
def test_options_can_be_given_as_text() -> None:
    flags = ("policy=nothing-large", 'policy_options={"limit": 1}')
    assert load_config(flags=flags, environ={}).config.policy_options == {"limit": 1}


def test_a_name_that_nobody_brings_is_an_error_that_lists_all_there_are(installed: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(flags=["policy=best"], environ={})
    assert all(name in str(caught.value) for name in ("'best'", *BUILT_IN, "nothing-large"))
    assert installed.exists()


@pytest.mark.usefixtures("installed")
def test_a_policy_that_cannot_be_made_is_an_error_that_names_its_package() -> None:
    config = Config(policy="nothing-large", policy_options={"size": 1})
    with pytest.raises(ConfigError, match=r"'nothing-large' of nothing-large cannot be made"):
        make_policy(config.policy, config)


def test_what_is_no_policy_is_an_error(installed: Path) -> None:
    (installed / "nothing_large.py").write_text("class NothingLarge:\n    name = 'large'\n")
    with pytest.raises(ConfigError, match="lacks name, use_rule or decide"):
        make_policy("nothing-large")


def test_a_package_cannot_take_a_built_in_name(installed: Path) -> None:
    (points,) = installed.glob("*/entry_points.txt")
    points.write_text(f"[{ENTRY_POINTS}]\nkeep-all = nothing_large:NothingLarge\n")
    assert make_policy("keep-all").name == "keep-all"


def test_every_built_in_policy_is_made_under_its_own_name() -> None:
    assert set(POLICIES) == set(BUILT_IN), (
        "name it in POLICIES (context/policies/built_in.py) and in BUILT_IN (config/model.py)"
    )
    for name in BUILT_IN:
        assert make_policy(name).name == name
