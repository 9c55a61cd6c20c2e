"""Policies by name, made from the configuration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from foredeck.config.model import Config
from foredeck.config.prompt import AdaptiveSection
from foredeck.context.policies.adaptive import Adaptive
from foredeck.context.policies.policy import KeepAll, LastN, Policy, SeedWindow
from foredeck.errors import ConfigError


def _relative(config: Config, **constants: Any) -> AdaptiveSection:
    """Constants of a policy that is what it is, whatever is configured for `adaptive`: only what
    may be folded at all is the user's to say."""
    allowed = {k: v for k, v in config.adaptive if k.startswith("fold_")}
    return AdaptiveSection(**{**allowed, **constants})


POLICIES: dict[str, Callable[[Config], Policy]] = {
    "seed-window": lambda config: SeedWindow(config.seed_window.per_turn, config.seed_window.turns),
    "keep-all": lambda _config: KeepAll(),
    "last-n": lambda config: LastN(config.last_n.results),
    "adaptive": lambda config: Adaptive(config.adaptive),
    "lean": lambda config: Adaptive(
        _relative(config, patience=12, patience_edited=30, fold_answers=True), name="lean"
    ),
    "careful": lambda config: Adaptive(_relative(config, min_names=1), name="careful"),
}


def make_policy(name: str, config: Config | None = None) -> Policy:
    """The policy of that name. Raises `ConfigError` for a name that is not known."""
    if name not in POLICIES:
        raise ConfigError(f"No policy is called {name!r}. Known: {', '.join(sorted(POLICIES))}.")
    return POLICIES[name](config or Config())
