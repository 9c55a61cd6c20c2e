"""Policies by name, made from the configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from foredeck.context.adaptive import Adaptive, Patience
from foredeck.context.policy import KeepAll, LastN, Policy, SeedWindow
from foredeck.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Tuning:
    """What the user can change about policies."""

    per_turn: int = 5
    turns: int = 3
    last_n: int = 10
    patience: Patience = field(default_factory=Patience)
    min_names: int = 2


def _lean(tuning: Tuning) -> Policy:
    patience = replace(tuning.patience, results=12.0, edited=30.0)
    return Adaptive(patience, name="lean", min_names=tuning.min_names)


POLICIES: dict[str, Callable[[Tuning], Policy]] = {
    "seed-window": lambda tuning: SeedWindow(tuning.per_turn, tuning.turns),
    "keep-all": lambda _tuning: KeepAll(),
    "last-n": lambda tuning: LastN(tuning.last_n),
    "adaptive": lambda tuning: Adaptive(tuning.patience, min_names=tuning.min_names),
    "lean": _lean,
    "careful": lambda tuning: Adaptive(tuning.patience, name="careful", min_names=1),
}


def make_policy(name: str, tuning: Tuning | None = None) -> Policy:
    """The policy of that name. Raises `ConfigError` for a name that is not known."""
    if name not in POLICIES:
        raise ConfigError(f"No policy is called {name!r}. Known: {', '.join(sorted(POLICIES))}.")
    return POLICIES[name](tuning or Tuning())
