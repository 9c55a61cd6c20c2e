"""A report of what was carried, for people and programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import join
from typing import Any

from foredeck.model.figures import counted, short_count
from foredeck_agents.carry.agents import NAMES, Agent
from foredeck_agents.carry.first_prompt import Folded, Priced
from foredeck_agents.carry.messages import Carried, NewSession
from foredeck_agents.carry.origin import SourceSession


@dataclass(frozen=True, slots=True)
class CarryReport:
    """What was carried, and where.

    `chars_beside`: what the agent sends beside the chat; `priced`: the model behind the first
    prompt's price.
    """

    origin: SourceSession
    agent: Agent
    session: NewSession
    file: Path
    carried: Carried
    prompt: Folded
    changed: Sequence[str]
    chars_beside: int
    priced: Priced | None
    dry_run: bool

    @property
    def tokens(self) -> int:
        return round(self.carried.chars / self.prompt.rate)

    @property
    def beside(self) -> int:
        """Tokens of what the agent sends beside it."""
        return round(self.chars_beside / self.prompt.rate)

    @property
    def dollars(self) -> float | None:
        """What the first prompt costs."""
        return None if self.priced is None else self.priced.dollars(self.tokens + self.beside)

    def to_json(self) -> dict[str, Any]:
        return {
            "from": self.origin.session,
            "session": self.session.id,
            "agent": self.agent.harness,
            "file": str(self.file),
            "messages": len(self.carried.messages),
            "tokens": self.tokens,
            "tokens_whole": self.prompt.whole,
            "tokens_beside": self.beside,
            "chars_per_token": self.prompt.rate,
            "dollars": self.dollars,
            "priced_as": None if self.priced is None else self.priced.model,
            "folded": self.prompt.folded,
            "left_out": dict(+self.carried.left_out),
            "changed": dict(+self.carried.changed),
            "secrets": self.carried.secrets,
            "unmoved": self.carried.unmoved,
            "changed_on_disk": list(self.changed),
            "commands": self.agent.resumed(self.session, self.file),
        }

    def lines(self) -> Iterator[str]:
        what = "would be carried" if self.dry_run else "is carried"
        source = NAMES.get(self.origin.harness, self.origin.harness)
        yield (
            f"Session {self.origin.session} {what} from {source} to {self.agent.name}: "
            f"{counted(len(self.carried.messages), 'message')}, about "
            f"{short_count(self.tokens)} tokens, {short_count(self.prompt.whole)} before anything "
            "folded."
        )
        yield self._cost()
        rows = {
            "Left out": self.carried.left_out,
            "Carried under their own names": self.carried.changed,
        }
        for what, counts in rows.items():
            if listed := [f"{name} ({count:,})" for name, count in counts.most_common() if count]:
                yield f"{what}: {', '.join(listed)}."
        if self.carried.secrets:
            yield f"{counted(self.carried.secrets, 'secret')} masked."
        if self.carried.unmoved:
            yield (
                f"{counted(self.carried.unmoved, 'message')} with {self.origin.cwd} in your words "
                "or a file's contents: carried as they are."
            )
        if self.changed:
            yield f"Changed on disk since: {', '.join(self.changed)}."
        folder = self.session.cwd
        if not Path(folder).is_dir():
            yield f"{folder} is not on this machine: --folder FOLDER says where it goes on."
        if self.dry_run:
            yield "\nNothing was written (--dry-run)."
            return
        yield f"\nIt is {self.file}. To go on there:"
        commands = self.agent.resumed(self.session, self.file)
        into = [] if folder == str(Path.cwd()) else [["cd", folder]]
        yield f"  {' && '.join(map(join, [*into, *commands]))}"

    def _cost(self) -> str:
        own = f"{short_count(self.beside)} of {self.agent.name}'s own instructions and tools"
        text = f"The first prompt there has these tokens and {own}"
        if self.priced is None:
            return f"{text}; --model says what it costs."
        return f"{text}: ${self.dollars:.2f} at the price of {self.priced.model}."
