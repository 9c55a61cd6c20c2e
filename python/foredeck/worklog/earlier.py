"""What an open session knows of its project's earlier work, and what its own branch adds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from foredeck.worklog.done import FinishedWork
from foredeck.worklog.lessons import Lesson, Run, SessionLessons, worked_as


@dataclass(frozen=True, slots=True)
class EarlierWork:
    """What the project's other sessions did and learned, as the layer had it at the opening."""

    lessons: Sequence[Lesson] = ()
    done: Sequence[FinishedWork] = ()


@dataclass(slots=True)
class BranchLessons:
    """What the commands of one branch teach, taken in their order.

    earlier  lessons of the project's other sessions
    names    of the commands that were taken in, in their order: another branch has others
    """

    earlier: Sequence[Lesson] = ()
    names: list[str] = field(default_factory=list)
    own: list[Lesson] = field(default_factory=list)
    _learning: SessionLessons = field(default_factory=SessionLessons)

    def follow(self, commands: Iterable[tuple[str, Run]]) -> None:
        """Take in the commands of a branch, all of them, each with its name. Where they go on from
        those that are known only the new ones are read, else everything is begun again."""
        given = list(commands)
        if [name for name, _run in given[: len(self.names)]] != self.names:
            self.names, self.own, self._learning = [], [], SessionLessons()
        for name, run in given[len(self.names) :]:
            self.names.append(name)
            self.own += self._learning.take(run)

    def answer(self, run: Run) -> Lesson | None:
        """The form in which a command that fails has worked before; those of the branch first."""
        return worked_as(run, self.own) or worked_as(run, self.earlier)
