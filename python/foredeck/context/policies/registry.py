"""Policies by name, made from the configuration: built in, or brought by another package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from foredeck.config.model import Config
from foredeck.config.prompt import AdaptiveSection, check_policy, installed_policies
from foredeck.context.policies.adaptive import Adaptive
from foredeck.context.policies.pastes import FoldingPastes
from foredeck.context.policies.policy import KeepAll, LastN, Policy, SeedWindow
from foredeck.errors import ConfigError


def _variant(config: Config, **constants: Any) -> AdaptiveSection:
    """Constants of a variant of `adaptive` that ignores what is configured for it, except for what
    may be folded at all."""
    allowed = {k: v for k, v in config.adaptive if k.startswith("fold_")}
    return AdaptiveSection(**{**allowed, **constants})


POLICIES: dict[str, Callable[[Config], Policy]] = {
    "seed-window": lambda config: SeedWindow(config.seed_window.per_turn, config.seed_window.turns),
    "keep-all": lambda _config: KeepAll(),
    "last-n": lambda config: LastN(config.last_n.results),
    "adaptive": lambda config: Adaptive(config.adaptive),
    "lean": lambda config: Adaptive(
        _variant(config, patience_edited=16, patience_edits=20), name="lean"
    ),
    "careful": lambda config: Adaptive(
        _variant(
            config,
            patience=20,
            idle_output=0.7,
            patience_edited=60,
            fold_answers=False,
        ),
        name="careful",
        min_names=1,
    ),
}


def make_policy(name: str, config: Config | None = None) -> Policy:
    """The policy of that name.

    Raises `ConfigError` for a name that is not known, and for a policy of another package that
    cannot be made.
    """
    config = config or Config()
    if name in POLICIES:
        policy = POLICIES[name](config)
    else:
        try:
            policy = _make_installed(check_policy(name), config.policy_options)
        except ValueError as error:
            raise ConfigError(f"policy: {error}") from None
    if not config.pastes.objects or isinstance(policy, KeepAll):
        return policy
    rule = policy if isinstance(policy, Adaptive) else Adaptive(config.adaptive)
    return FoldingPastes(policy, rule)


def _make_installed(name: str, options: Mapping[str, Any]) -> Policy:
    """Whatever goes wrong in another package's code, the user reads which package it is."""
    entry = installed_policies()[name]
    package = entry.dist.name if entry.dist else entry.value
    try:
        policy = entry.load()(**options)
    except Exception as error:
        raise ConfigError(f"Policy {name!r} of {package} cannot be made: {error!r}.") from error
    if not isinstance(policy, Policy):
        raise ConfigError(f"Policy {name!r} of {package} lacks name, use_rule or decide.")
    return policy
