"""Work beside the agent's own: when jobs run, and what may be asked of a model."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from asked_models import COST, RECORD, USAGE, Models, settled

from foredeck.accounting.figure import stored_questions
from foredeck.config import Config
from foredeck.config.sections import AskingSection
from foredeck.context.state.facilities import Facilities, FacilityInputs
from foredeck.context.state.session import Session
from foredeck.engine.asking import NOT_KEPT, SessionAsking, why_not
from foredeck.engine.background import Job, SessionEvent
from foredeck.engine.engine import Engine
from foredeck.errors import ForedeckError
from foredeck.hosts.host import (
    AskingTerms,
    AskTimedOut,
    CompleteParams,
    Host,
    ModelName,
    NoModel,
    NotAsked,
    UselessAnswer,
    cost_of,
)
from foredeck.hosts.protocol import CommandParams
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.model.records import AskedDocument
from foredeck.prices import rates_at
from foredeck.store.clock import MINUTE_MS

QUESTION = CompleteParams(messages=[{"role": "user", "content": "?" * 400}], max_tokens=100)
NOW = 1_000_000_000


class Opened:
    """An engine with one session, whose agent has made a call that cost about $0.30."""

    def __init__(self, home: Path, models: Models | None, **asking: Any) -> None:
        self.jobs: list[Job] = []
        self.seen: list[str] = []
        config = Config(home=home, asking=AskingSection(**asking))
        self.engine = Engine(config, Host(models=models), facilities=self._facilities)
        params = SimulatedHost("s").opening(str(home))
        self.engine.open_session(params)

    def _facilities(self, _opening: FacilityInputs) -> Facilities:
        return Facilities([self])

    def due(self, happened: SessionEvent) -> Sequence[Job]:
        self.seen.append(happened)
        due, self.jobs = self.jobs, []
        return due

    def close(self) -> None:
        self.seen.append("closed")

    def call(self) -> None:
        host = SimulatedHost("s", model=RECORD)
        host.add({"role": "user", "content": "word " * 80_000, "timestamp": 1}, entries=[None])
        self.engine.assemble(host.request(4))

    @property
    def session(self) -> Session:
        return self.engine.opened.session

    def run(self, *works: Callable[[SessionAsking], Awaitable[None]]) -> None:
        """Have these done as jobs, one after the other."""
        self.jobs += [Job(str(number), work, priority=-number) for number, work in enumerate(works)]

    def questions(self) -> list[AskedDocument]:
        return stored_questions(self.session.objects.store, "s")

    def cost(self) -> str:
        return self.engine.command(CommandParams(session="s", name="cost", args=""))["text"]


@pytest.fixture
def models() -> Models:
    return Models()


@pytest.fixture
def opened(tmp_path: Path, models: Models) -> Iterator[Opened]:
    made = Opened(tmp_path / "home", models)
    with closing(made.engine):
        yield made


async def asked(opened: Opened, question: CompleteParams = QUESTION, **more: Any) -> Any:
    """The answer, or the error, of a question that a job asks after one call."""
    found: list[Any] = []

    async def ask(asking: SessionAsking) -> None:
        try:
            found.append(await asking.ask("observe", question, **more))
        except ForedeckError as error:
            found.append(error)

    opened.run(ask)
    opened.call()
    await settled()
    return found[0]


async def test_a_job_asks_and_what_it_took_is_kept_and_shown_apart(
    opened: Opened, models: Models
) -> None:
    assert (await asked(opened)).text == "noted"
    (kept,) = opened.questions()
    assert (kept.purpose, kept.outcome, kept.model) == ("observe", "answered", "p/m")
    assert (kept.fresh, kept.output, kept.cost, kept.call) == (1000, 100, 0.0045, 1)
    assert kept.price == pytest.approx(115 * 3e-6 + 100 * 15e-6), "by 3.5 characters a token"
    assert models.asked[0].wanted is None
    lines = opened.cost().splitlines()
    assert "foredeck's own questions are $0.0045 of it: observe 1." in lines


async def test_nothing_runs_unless_something_has_happened(opened: Opened) -> None:
    ran: list[str] = []

    async def work(_asking: SessionAsking) -> None:
        ran.append("work")

    opened.run(work)
    await settled()
    assert ran == []
    opened.cost()
    await settled()
    assert (ran, opened.seen) == (["work"], ["command"])


async def test_jobs_run_one_at_a_time_by_priority_and_a_failing_one_harms_nobody(
    opened: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[str] = []

    async def first(_asking: SessionAsking) -> None:
        ran.append("first begins")
        await asyncio.sleep(0)
        ran.append("first ends")
        raise ZeroDivisionError

    async def second(_asking: SessionAsking) -> None:
        ran.append("second")

    opened.jobs = [Job("b", second), Job("a", first, priority=1)]
    opened.call()
    await settled()
    assert ran == ["first begins", "first ends", "second"]
    assert "a failed" in caplog.text


async def test_a_job_that_waits_gives_way_to_none_that_matters_less(opened: Opened) -> None:
    ran: list[str] = []
    going = asyncio.Event()

    def work(name: str) -> Callable[[SessionAsking], Awaitable[None]]:
        async def run(_asking: SessionAsking) -> None:
            ran.append(name)
            await going.wait()

        return run

    for job in (
        Job("extract", work("extract")),
        Job("observe", work("before the compaction"), priority=2),
        Job("observe", work("weaker"), priority=1),
        Job("reflect", work("earlier"), priority=1),
        Job("reflect", work("later"), priority=1),
    ):
        opened.jobs = [job]
        opened.call()
        await settled()
    assert ran == ["extract"]
    going.set()
    await settled()
    assert ran == ["extract", "before the compaction", "later"]


async def test_without_a_host_that_has_models_nobody_is_asked_what_is_due(tmp_path: Path) -> None:
    made = Opened(tmp_path / "home", None)
    with closing(made.engine):
        made.call()
        assert made.seen == []


async def test_the_end_of_the_session_ends_its_jobs_and_their_question(tmp_path: Path) -> None:
    models = Models()
    models.wait = asyncio.Event()
    made = Opened(tmp_path / "home", models)
    ended: list[str] = []

    async def work(asking: SessionAsking) -> None:
        try:
            await asking.ask("observe", QUESTION)
        finally:
            ended.append("ended")

    made.run(work)
    made.call()
    await settled()
    assert [each.outcome for each in made.questions()] == ["open"]
    made.engine.close()
    models.wait.set()
    await settled()
    assert ended == ["ended"]
    again = Opened(tmp_path / "home", models)
    with closing(again.engine):
        (kept,) = again.questions()
        assert kept.outcome == "cancelled"
        assert "$0.0018" in again.cost(), "it counts with the price that was expected"


@pytest.mark.parametrize(
    ("failure", "outcome"),
    [
        (UselessAnswer("429 too many requests", USAGE), "useless"),
        (AskTimedOut("no answer"), "timed_out"),
        (NotAsked("off"), "refused"),
        (NoModel("none"), "refused"),
    ],
)
async def test_what_fails_is_kept_too(
    opened: Opened, models: Models, failure: ForedeckError, outcome: str
) -> None:
    models.failure = failure
    assert await asked(opened) is failure
    (kept,) = opened.questions()
    assert (kept.outcome, kept.reason) == (outcome, str(failure))


async def test_after_a_failure_there_is_a_pause(opened: Opened, models: Models) -> None:
    models.failure = UselessAnswer("529 overloaded", USAGE)
    await asked(opened)
    models.failure = None
    refused = await asked(opened)
    assert isinstance(refused, NotAsked)
    assert "the last question failed (529 overloaded); the next is in 5 min" in str(refused)
    assert len(models.asked) == 1


async def test_a_model_that_answers_one_at_a_time_is_asked_only_where_the_user_says_so(
    tmp_path: Path,
) -> None:
    models = Models(single_slot=True)
    made = Opened(tmp_path / "home", models)
    with closing(made.engine):
        assert "p/m answers one question at a time" in str(await asked(made))
        assert models.asked == []
        assert (await asked(made, wanted=True)).text == "noted"
    allowed = Opened(tmp_path / "home2", models, single_slot=True)
    with closing(allowed.engine):
        await asked(allowed)
    assert [question.wanted for question in models.asked] == [True, True]


async def test_one_switch_ends_all_asking(tmp_path: Path) -> None:
    made = Opened(tmp_path / "home", models := Models(), enabled=False)
    with closing(made.engine):
        assert "switched off (asking.enabled)" in str(await asked(made))
        assert models.asked == []


async def test_another_model_is_asked_where_it_is_configured(tmp_path: Path) -> None:
    made = Opened(tmp_path / "home", models := Models(), model="q/small", share=0.5)
    models.warm = 1
    with closing(made.engine):
        await asked(made)
        await asked(made, QUESTION.model_copy(update={"warm": 1}))
    small = ModelName(provider="q", id="small")
    assert [question.model for question in models.asked] == [small, None]
    assert models.about == [small, None], "the warm cache is that of the model in use"


async def test_a_prompt_that_is_not_kept_any_more_is_not_sent(
    opened: Opened, models: Models
) -> None:
    refused = await asked(opened, QUESTION.model_copy(update={"warm": 1}))
    assert (type(refused), str(refused)) == (NotAsked, NOT_KEPT)
    assert models.asked == []


async def test_where_there_is_no_model_nothing_is_noted(opened: Opened, models: Models) -> None:
    models.none = "choose one with /model"
    assert str(await asked(opened)) == "choose one with /model"
    assert opened.questions() == []


async def test_questions_stay_within_their_share_of_what_the_session_costs(opened: Opened) -> None:
    dear = QUESTION.model_copy(update={"max_tokens": 10_000})
    refused = await asked(opened, dear)
    assert isinstance(refused, NotAsked)
    assert "it would cost $0.1503; questions may cost 8% of the session's $" in str(refused)


async def test_what_is_not_worth_its_price_is_not_asked(opened: Opened) -> None:
    assert str(await asked(opened, worth=0.001)) == "it would cost $0.0018 and save $0.0010"


def kept(minutes_ago: int, outcome: str = "answered", cost: float | None = 0.01) -> AskedDocument:
    time_ms = NOW - minutes_ago * MINUTE_MS
    return AskedDocument.model_validate(
        {
            **{"id": "asked:s:1", "session": "s", "purpose": "observe", "time_ms": time_ms},
            **{"ended_ms": time_ms, "outcome": outcome, "cost": cost, "price": 0.02},
            "reason": "it broke",
        }
    )


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ([kept(1)] * 3, "3 questions were asked within the hour"),
        ([kept(1)] * 2 + [kept(61)], None),
        ([kept(1)] * 2 + [kept(1, "refused")], None),
        ([kept(100)] * 8, "it would cost $0.0300"),
        ([kept(100)] * 5, None),
        ([kept(100, "open", None)] * 3, None),
        ([kept(100, "open", None)] * 4, "have cost $0.0800"),
        ([kept(0, "useless", 0)], "in 1 min"),
        ([kept(1, "useless", 0)], None),
        ([kept(1, "useless", 0), kept(1, "timed_out", 0)], "in 1 min"),
        ([kept(1, "useless", 0), kept(1)], None),
        ([kept(50, "useless", 0)] * 30, "in 10 min"),
    ],
)
def test_limits(before: list[AskedDocument], reason: str | None) -> None:
    caps = AskingSection(share=0.1, per_hour=3)
    found = why_not(before, caps, NOW, session=1.0, price=0.03)
    if reason is None:
        assert found is None
    else:
        assert found is not None
        assert reason in found


def test_a_warm_question_reads_the_prompt_and_sends_itself() -> None:
    warm = QUESTION.model_copy(update={"warm": 3})
    terms = AskingTerms("test/model", COST, False, 3, 50_000, 4.0)
    assert terms.price(warm, 20) == pytest.approx(101 * 3e-6 + 50_000 * 0.3e-6 + 20 * 15e-6)
    assert terms._replace(cost=cost_of({})).price(warm, 20) == 0


def test_what_a_model_must_think_has_room_and_a_price() -> None:
    terms = AskingTerms("test/model", COST, False, 3, 0, 4.0)
    low = terms._replace(thinking="low", warm_thinking="xhigh")
    asked, warm = (QUESTION.model_copy(update={"warm": call}) for call in (None, 3))
    assert terms.with_room(asked) == asked
    assert low.with_room(asked).max_tokens == asked.max_tokens + 2048
    assert low.with_room(warm).max_tokens == warm.max_tokens + 16_384
    assert low.price(asked) - terms.price(asked) == pytest.approx(2048 * 15e-6)
    assert low.price(asked, 20) - terms.price(asked, 20) == pytest.approx(682 * 15e-6)


def test_a_long_prompt_has_the_prices_of_its_tier() -> None:
    above = {"inputTokensAbove": 40_000, "input": 6, "output": 30, "cacheRead": 0.6}
    cost = cost_of({"cost": {**COST, "tiers": [above]}})
    warm = QUESTION.model_copy(update={"warm": 3})
    price = AskingTerms("test/model", cost, False, 3, 50_000, 4.0).price(warm, 20)
    assert price == pytest.approx(101 * 6e-6 + 50_000 * 0.6e-6 + 20 * 30e-6)
    assert rates_at(cost, 40_000)["input"] == 3
