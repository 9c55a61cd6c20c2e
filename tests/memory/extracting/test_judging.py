"""What becomes of a line: kept, proposed, or refused with a reason."""

import pytest

from foredeck.memory.judging import Accept, JudgedLine, Saying, Surroundings, ToolTexts, judge
from foredeck.memory.words import KnownFact, contradicts

SENTENCE = "I prefer tabs in Go files."
SAYINGS = [
    Saying(1, "user", f"Fix the bug. {SENTENCE}", "turn:s:1"),
    Saying(2, "assistant", "Fixed. The cache lives in redis, as settled.", "turn:s:1"),
]
STATED = "preference|turn-1|User prefers tabs in Go.|I prefer tabs in Go files"
SAID_BY_AGENT = "decision|turn-2|The cache lives in redis.|The cache lives in redis"
OF_SESSION = "fact|turn-2|The cache lives in redis.|The cache lives in redis"


def judged(
    answer: str, known: list[KnownFact] | None = None, tools: tuple[str, ...] = (), **around: object
) -> list[JudgedLine]:
    everywhere = {name: known or [] for name in ("preference", "decision", "fact", "context")}
    surroundings = Surroundings(**{"typed": [SAYINGS[0].text], **around})  # type: ignore[arg-type]
    return judge(answer, SAYINGS, ToolTexts.of(tools), everywhere, surroundings)


@pytest.mark.parametrize(
    ("accept", "stated", "other"),
    [
        ("user-stated", "keep", "propose"),
        ("ask", "propose", "propose"),
        ("off", "refuse", "refuse"),
    ],
)
def test_what_outlives_the_session_is_asked(accept: Accept, stated: str, other: str) -> None:
    fates = [judged(line, accept=accept)[0].fate for line in (STATED, SAID_BY_AGENT, OF_SESSION)]
    assert fates == [stated, other, "keep"]


def test_the_users_own_sentence_is_what_is_kept() -> None:
    [kept] = judged("preference|turn-1|User wants eve to read all.|I prefer tabs in Go")
    assert (kept.fact, kept.native, kept.stated) == (SENTENCE, "", True)


def test_a_private_session_lets_nothing_out() -> None:
    found = judged("\n".join((STATED, SAID_BY_AGENT, OF_SESSION)), private=True)
    assert [judgement.reason for judgement in found] == ["private", "private", None]


def test_the_same_again_is_refused_once_and_for_all() -> None:
    [again] = judged(STATED, [KnownFact("m1", "I prefer tabs in Go files")])
    assert again.reason == "duplicate"
    [refused] = judged(STATED, [KnownFact("p1", SENTENCE, "refused")])
    assert refused.reason == "refused before"
    twice = judged(f"{STATED}\n{STATED}")
    assert [judgement.reason for judgement in twice] == [None, "duplicate"]


def test_a_contradiction_is_proposed_in_place_of_what_it_contradicts() -> None:
    known = [KnownFact("m1", "I prefer spaces in Go files.", stated=True)]
    [against] = judged(STATED, known)
    assert (against.fate, against.replaces) == ("propose", "m1")


def test_what_the_user_stated_gives_way_to_no_agent() -> None:
    [beside] = judged(OF_SESSION, [KnownFact("m1", "The cache lives in memory.", stated=True)])
    assert (beside.fate, beside.replaces) == ("keep", None)
    [instead] = judged(OF_SESSION, [KnownFact("m1", "The cache lives in memory.")])
    assert (instead.fate, instead.replaces) == ("keep", "m1")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("User prefers tabs in Go files", "User prefers spaces in Go files", True),
        ("Tests use the real database", "Tests never use the real database", True),
        ("User prefers tabs", "User prefers Python", False),
        ("The cache lives in redis", "Errors are logged as JSON", False),
    ],
)
def test_contradictions(one: str, other: str, expected: bool) -> None:
    assert contradicts(one, other) is expected


def test_no_more_than_eight_are_taken_from_one_answer() -> None:
    shown = [f"service{letter}" for letter in "abcdefghij"]
    sayings = [Saying(1, "assistant", f"It runs {' '.join(shown)} for us", "t")]
    answer = "\n".join(f"fact|turn-1|It runs {name} here.|{name}" for name in shown)
    found = judge(answer, sayings, ToolTexts.of([]), {}, Surroundings())
    assert [judgement.reason for judgement in found] == [None] * 8 + ["too many"] * 2
