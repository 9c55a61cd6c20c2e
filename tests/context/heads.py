"""Sections of a head, for tests."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Said:
    """A section that says what it is given, as many whole lines as fit."""

    name: str
    lines: list[str] = field(default_factory=list)

    def text(self, limit: int) -> str:
        """The first lines."""
        kept: list[str] = []
        for line in self.lines:
            if len("\n".join([*kept, line])) > limit:
                break
            kept.append(line)
        return "\n".join(kept)


@dataclass
class Counting:
    """A section that says something else each time that it is asked."""

    name: str
    lines: int = 1
    asked: int = 0

    def text(self, limit: int) -> str:
        """As many lines as fit, with a number that never comes again."""
        self.asked += 1
        said = [f"{self.name} {n}, asked {self.asked} times" for n in range(self.lines)]
        return Said(self.name, said).text(limit)
