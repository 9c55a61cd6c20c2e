"""A policy of another package: the example in docs/context.md works as it stands there."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.messages import lines
from context.scenes import ask, bash, finish, go_on, later, outputs
from foredeck.config.load import load_config
from foredeck.config.model import BUILT_IN, ENTRY_POINTS, Config
from foredeck.context.policies.policy import POLICIES, make_policy
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
    metadata = site / f"half_full-{project['version']}.dist-info"
    metadata.mkdir(parents=True)
    (site / "half_full.py").write_text(blocks("python")[0])
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    named = project["entry-points"][ENTRY_POINTS].items()
    points = "\n".join(f"{name} = {place}" for name, place in named)
    (metadata / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\n{points}\n")
    monkeypatch.delitem(sys.modules, "half_full", raising=False)
    monkeypatch.syspath_prepend(site)
    return site


FOLDS_ALL = """
from foredeck.context.plan.ops import PieceRef
from foredeck.context.policies.policy import PolicyDecision, Rules

class HalfFull:
    name = "half-full"
    rules = {rules}

    def decide(self, history):
        offered = [*history.contents, *history.pieces]
        return PolicyDecision(foldable=frozenset([PieceRef(999), *(each.ref for each in offered)]))
"""


@pytest.fixture
def folding(installed: Path, new_host: NewHost) -> Callable[..., Host]:
    """A host whose policy lets all go, with these rules."""

    def make(rules: str, **settings: Any) -> Host:
        (installed / "half_full.py").write_text(FOLDS_ALL.format(rules=rules))
        return new_host(policy="half-full", **settings)

    return make


@pytest.mark.usefixtures("installed")
def test_the_example_folds_what_was_unused_longest(new_host: NewHost) -> None:
    host = new_host(policy="half-full", policy_options={"share": 0.5})
    host.set_window(20_000)
    ask(host)
    bash(host, "first", f"load_orders save_orders\n{lines(400, 'first')}")
    bash(host, "second", lines(400, "second"))
    bash(host, "third", lines(400, "third"))
    finish(host, "It is between load_orders and save_orders.")
    host.wait(600)
    sent = ask(host)
    assert [is_reference(sent.text(n)) for n in (2, 4, 6)] == [False, True, False]
    assert sent.record.policy == "half-full"


@pytest.mark.parametrize(
    ("rules", "runs"), [("None", None), ("Rules()", None), ("Rules(runs_after=2)", 1)]
)
def test_calls_join_a_run_only_where_the_policy_asks(
    folding: Callable[..., Host], rules: str, runs: int | None
) -> None:
    host = folding(rules)
    ask(host)
    outputs(host, 9)
    sent = later(host)
    assert is_reference(sent.text(len(host.messages) - 3))
    assert sent.record.decision.call_groups == runs


@pytest.mark.parametrize(
    ("tools", "pastes", "left"), [("on", True, ()), ("on", False, (0,)), ("off", True, (0, 1))]
)
def test_no_policy_folds_what_nothing_could_bring_back(
    folding: Callable[..., Host], tools: str, pastes: bool, left: tuple[int, ...]
) -> None:
    host = folding("Rules()", tools={"context": tools}, pastes={"objects": pastes})
    said = [lines(900, "asked"), lines(300, "answered")]
    ask(host, said[0])
    go_on(host, answer=said[1])
    sent = later(host)
    assert tuple(n for n in (0, 1) if sent.text(n) == said[n]) == left


@pytest.mark.usefixtures("installed")
def test_the_configuration_on_the_page_can_be_loaded(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(blocks("toml")[1])
    config = load_config(user_file=file, environ={}).config
    assert make_policy(config.policy, config).name == "half-full"


@pytest.mark.usefixtures("installed")
def test_options_can_be_given_as_text() -> None:
    flags = ("policy=half-full", 'policy_options={"share": 1}')
    assert load_config(flags=flags, environ={}).config.policy_options == {"share": 1}


def test_a_name_that_nobody_brings_is_an_error_that_lists_all_there_are(installed: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(flags=["policy=best"], environ={})
    assert all(name in str(caught.value) for name in ("'best'", *BUILT_IN, "half-full"))
    assert installed.exists()


@pytest.mark.usefixtures("installed")
def test_a_policy_that_cannot_be_made_is_an_error_that_names_its_package() -> None:
    config = Config(policy="half-full", policy_options={"size": 1})
    with pytest.raises(ConfigError, match=r"'half-full' of half-full cannot be made"):
        make_policy(config.policy, config)


def test_what_is_no_policy_is_an_error(installed: Path) -> None:
    (installed / "half_full.py").write_text("class HalfFull:\n    name = 'large'\n")
    with pytest.raises(ConfigError, match="lacks name, rules or decide"):
        make_policy("half-full")


def test_a_package_cannot_take_a_built_in_name(installed: Path) -> None:
    (points,) = installed.glob("*/entry_points.txt")
    points.write_text(f"[{ENTRY_POINTS}]\nkeep-all = half_full:HalfFull\n")
    assert make_policy("keep-all").name == "keep-all"


def test_every_built_in_policy_is_made_under_its_own_name() -> None:
    assert set(POLICIES) == set(BUILT_IN), (
        "name it in POLICIES (context/policies/policy.py) and in BUILT_IN (config/model.py)"
    )
    for name in BUILT_IN:
        assert make_policy(name).name == name
