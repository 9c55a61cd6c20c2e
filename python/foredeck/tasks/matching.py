"""Finds tasks by words."""

from __future__ import annotations

import re

from foredeck.model.names import RUN, humps, is_unspaced, telling_parts, words_in
from foredeck.tasks.board import Task
from foredeck.tasks.work import TaskWork

_TITLE, _LABEL, _SUMMARY, _DESCRIPTION = 8, 6, 3, 2
"""Weight of a word by place."""
_WHOLE = 2
"""Relative to a beginning."""
_NAME = re.compile(r"t-[0-9a-z]{4,}")


class TaskMatcher:
    """Ranks tasks by matching words, then by their places, newer first."""

    def __init__(self, work: TaskWork) -> None:
        self._work = work
        self._descriptions: dict[str, tuple[str, frozenset[str]]] = {}
        """By task: the version that was read, and its words."""

    def find(self, query: str) -> list[Task]:
        """Tasks with all words of `query`, else with some; best first."""
        typed = RUN.findall(query)
        words = sorted({*words_in(query), *(part for w in typed for part in telling_parts(w))})
        ranked = [(self._rank(task, words), task) for task in self._work.board.all()]
        best = max((rank[0] for rank, _ in ranked), default=0)
        best_matches = [(rank, task) for rank, task in ranked if best and rank[0] == best]
        best_matches.sort(key=lambda pair: (-pair[0][1], pair[1].is_closed, -pair[1].updated_ms))
        by_name = self._named(query)
        return [*by_name, *(task for _, task in best_matches if task not in by_name)]

    def _named(self, query: str) -> list[Task]:
        board = self._work.board
        id_lists = (board.names.find(name) for name in _NAME.findall(query.lower()))
        ids = (ids[0] for ids in id_lists if len(ids) == 1)
        return [task for id in ids if (task := board.get(id)) is not None]

    def _rank(self, task: Task, words: list[str]) -> tuple[int, int]:
        fields = (
            (_words(task.title), _TITLE),
            (_words(" ".join(task.labels)), _LABEL),
            (_words(task.summary or ""), _SUMMARY),
            (self._description(task), _DESCRIPTION),
        )
        weights = [max(_weight(word, there, w) for there, w in fields) for word in words]
        return sum(weight > 0 for weight in weights), sum(weights)

    def _description(self, task: Task) -> frozenset[str]:
        # Read from the store once for each version: the board has no descriptions.
        cached = self._descriptions.get(task.id)
        if cached is None or cached[0] != task.token:
            cached = task.token, _words(self._work.description(task) or "")
            self._descriptions[task.id] = cached
        return cached[1]


def _weight(word: str, there: frozenset[str], weight: int) -> int:
    if word in there:
        return weight * _WHOLE
    if is_unspaced(word):
        return weight if any(word in other for other in there) else 0
    return weight if any(other.startswith(word) for other in there) else 0


def _words(text: str) -> frozenset[str]:
    return frozenset(words_in(text)) | {part for w in RUN.findall(text) for part in humps(w)}
