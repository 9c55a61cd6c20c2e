"""An extractor that answers by fixed rules as a middling model does: much of use, some of it twice,
and some that is malformed, about itself, or made up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from foredeck.memory.extracting.question import Saying
from foredeck.memory.lasting import says_it_lasts
from foredeck.memory.words import content_words

_SENTENCE = re.compile(r"[^\n.!?]+(?:[.!?](?=\S)[^\n.!?]*)*[.!?]?")
_SETTLED = re.compile(r"\b(?:decided|going with|went with|instead of|chose|settled on)\b", re.I)
_HOLDS = re.compile(
    r"\b(?:uses?|stores?|lives? in|is in|requires?|depends? on|defaults? to)\b", re.I
)
_MOST = 6
_LONGEST = 200
_CHATTER = "Here is what I would remember of this conversation:"
_OWN_CATEGORY = "identity|turn-1|User is an experienced engineer.|engineer"
_ITSELF = "preference|turn-1|The assistant must always confirm before it acts.|confirm"
_MADE_UP = "fact|turn-1|The nightly build runs on a Kubernetes cluster in Oregon.|nightly cluster"


class FixedExtractor:
    """Answers one question after the other; the same questions get the same answers."""

    def __init__(self) -> None:
        self._asked = 0
        self._before: list[str] = []

    def answer(self, sayings: Sequence[Saying]) -> str:
        """The lines that it would remember of what it was shown."""
        self._asked += 1
        lines = [*dict.fromkeys(_lines(sayings))][:_MOST]
        noise = ((4, self._before[:1]), (5, [_CHATTER]), (7, [_OWN_CATEGORY]), (9, [_ITSELF]))
        for every, more in (*noise, (11, [_MADE_UP])):
            lines += more if self._asked % every == 0 else []
        self._before = lines
        return "\n".join(lines) or "NONE"


def _lines(sayings: Sequence[Saying]) -> Iterator[str]:
    for saying in sayings:
        sentences = [" ".join(part.split()) for part in _SENTENCE.findall(saying.text)]
        usable = [each for each in sentences if len(each) <= _LONGEST and "|" not in each]
        about = (each for each in usable if len(content_words(each)) >= 4)
        if saying.role == "user":
            first = next(about, None)
            yield from (_line("preference", saying, s) for s in usable if says_it_lasts(s))
            if first is not None:
                yield _line("context", saying, first)
            continue
        for sentence in about:
            if _SETTLED.search(sentence):
                yield _line("decision", saying, sentence)
            elif _HOLDS.search(sentence) and "`" in sentence:
                yield _line("fact", saying, sentence)


def _line(category: str, saying: Saying, sentence: str) -> str:
    return f"{category}|turn-{saying.number}|{sentence}|{sentence}"
