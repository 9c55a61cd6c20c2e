"""Observing a session in the background: when, in which way, and what stands for chat then."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from asked_models import COST, RECORD, Models, settled

from context.messages import result
from foredeck.accounting.figure import stored_questions
from foredeck.config import Config
from foredeck.context.state.session import Session
from foredeck.engine import observing_runs as runs
from foredeck.engine.engine import Engine
from foredeck.engine.observing import Observing
from foredeck.engine.observing_runs import ALONE
from foredeck.errors import ToolError
from foredeck.hosts.host import CompleteParams, Host
from foredeck.hosts.protocol import CommandParams, SessionCompactParams
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.observations import rules
from foredeck.observations.keeping import delete
from foredeck.observations.reading import Observation, OtherSessionsSection, stored_notes
from foredeck.sources.filesystem import open_filesystems
from foredeck.sources.projects import project_of
from foredeck.store.place import open_store
from observations.chat import rounds as chat_rounds
from observations.desk import MODE, block, keeper, observer, pick

START_MS = 1_777_800_000_000
NOTE = "User asked for the queue to survive a restart"


def noted(question: CompleteParams, more: str = "") -> str:
    """An answer in the form that is asked for, at the first time that the question shows."""
    del question
    return f"<observations>\n2026-05-03\n- 09:20 high request: {NOTE}{more}\n</observations>"


class Observed:
    """An engine with one session whose chat grows by rounds of a tool call each."""

    def __init__(
        self, home: Path, models: Models, started_by: str | None = None, **settings: Any
    ) -> None:
        self.home, self.models, self.rounds = home, models, 0
        models.answer = noted
        self.settings, self.started_by = settings, started_by
        self.host = SimulatedHost("s", model=RECORD)
        self.host.add({"role": "user", "content": "Keep the queue.", "timestamp": START_MS})
        self.shown: list[str] = []
        self.told: list[str] = []
        self.open()

    def open(self) -> None:
        observing = {"threshold": 9000, "buffer_tokens": 2000, **self.settings.get("observing", {})}
        asking = {"share": 1, **self.settings.get("asking", {})}
        config = Config.model_validate(
            {
                **{"home": self.home, "observations": self.settings.get("when", "on")},
                **{"observing": observing, "asking": asking},
            }
        )
        self.engine = Engine(config, Host(self.tell, models=self.models, show=self.shown.append))
        opening = self.host.opening(str(self.home))
        self.engine.open_session(opening.model_copy(update={"started_by": self.started_by}))
        self.host.replace_engine()

    def tell(self, level: str, text: str) -> None:
        assert level == "info"
        self.told.append(text)

    async def call(self) -> None:
        self.host.accept(self.engine.assemble(self.host.request(self.now)))
        await settled()

    async def rounds_of(self, count: int, chars: int = 8000, said: str = "") -> None:
        for _ in range(count):
            await self.round(chars, said)

    async def pause(self) -> None:
        """A question after so long that the provider's cache holds nothing."""
        self.rounds += 120
        said = [{"type": "text", "text": "Done."}]
        self.host.add(
            {"role": "assistant", "content": said, "timestamp": self.now},
            {"role": "user", "content": "And now?", "timestamp": self.now},
        )
        await self.call()

    async def round(self, chars: int = 8000, said: str = "") -> None:
        """One call, and the result of the tool that its answer calls."""
        await self.call()
        self.rounds += 1
        name = f"c{self.rounds}"
        spoken = [{"type": "text", "text": said}] if said else []
        use = {"type": "toolCall", "id": name, "name": "bash", "arguments": {"command": name}}
        text = " ".join(f"row-{self.rounds}-{number}" for number in range(chars // 9))
        self.host.add(
            {"role": "assistant", "content": [*spoken, use], "timestamp": self.now},
            result(name, "bash", text, timestamp=self.now),
        )

    @property
    def now(self) -> int:
        return START_MS + 60_000 * self.rounds

    @property
    def session(self) -> Session:
        return self.engine.opened.session

    @property
    def observing(self) -> Observing:
        return self.engine.opened.facilities.part(Observing)

    def observations(self) -> list[Observation]:
        return [*stored_notes(self.session.objects.store, ["s"]).observations]

    async def command(self, arguments: str = "") -> str:
        params = CommandParams(session="s", name="observe", args=arguments)
        text = self.engine.command(params)["text"]
        await settled()
        return text

    def outcomes(self) -> list[tuple[str, str]]:
        return [
            (each.outcome, each.reason)
            for each in stored_questions(self.session.objects.store, "s")
        ]


@pytest.fixture
def models() -> Models:
    return Models()


@pytest.fixture
def observed(tmp_path: Path, models: Models) -> Iterator[Observed]:
    made = Observed(tmp_path / "home", models)
    yield made
    made.engine.close()


async def test_chat_is_observed_while_the_agent_works_and_its_notes_take_its_place(
    observed: Observed, models: Models
) -> None:
    await observed.rounds_of(6)
    found = observed.observations()
    assert len(found) > 2
    assert all(each.document.observed_by == "model" for each in found)
    covered = [address for each in found for address in each.document.covers]
    assert len(covered) == len(set(covered)), "no message is observed twice"
    assert len(models.asked) == len(found)
    assert "row-1-1 " in str(observed.host.prompt()), "nothing leaves while that would cost more"
    await observed.pause()
    prompt = str(observed.host.prompt())
    assert observed.engine.decision.reason == "cold"
    assert NOTE in prompt
    assert "row-1-1 " not in prompt, "what the notes stand for has left"
    assert "Keep the queue." in prompt, "what the user said in few words stays"
    assert re.search(
        r"100% of the [\d,]+ tokens that have left the prompt were observed before",
        await observed.command("status"),
    )
    doing = r"foredeck: noting down what was said and done, with p/m, for about \$0\.\d{4}"
    assert re.fullmatch(doing, observed.shown[0])
    assert observed.shown[1] == ""


async def test_the_next_engine_goes_on_where_the_last_has_ended(
    observed: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "POLL_S", 0)
    await observed.rounds_of(6)
    await observed.pause()
    before, noted_before = observed.host.prompt(), observed.observations()
    observed.engine.close()
    observed.open()
    await observed.call()
    assert observed.host.prompt() == before
    assert [each.id for each in observed.observations()] == [each.id for each in noted_before]
    # The question waits for the model to begin: added to the prompt it costs less.
    observed.models.warm = 8
    await observed.round()
    await observed.round()
    assert len(observed.observations()) > len(noted_before)


async def test_what_the_user_deletes_meanwhile_replaces_nothing(observed: Observed) -> None:
    await observed.rounds_of(6)
    first, *others = (each.id for each in observed.observations())
    assert [each.id for each in observed.observing.notes.known()] == [first, *others]
    with closing(open_store(Config(home=observed.home))) as store:  # as the command line does
        delete(store, first, "ann")
    await observed.command("status")
    branch = observed.observing.on_branch
    assert [each.id for each in branch.observations] == others
    assert [each.observation.id for each in branch.placed] == [first, *others]
    await observed.pause()
    assert "row-1-1 " in str(observed.host.prompt())


async def test_off_costs_nothing_and_writes_nothing(tmp_path: Path, models: Models) -> None:
    made = Observed(tmp_path / "home", models, when="off")
    with closing(made.engine):
        await made.rounds_of(5)
        assert made.engine.opened.facilities.stand_ins is None
        assert (models.asked, models.about, made.observations()) == ([], [], [])
        with pytest.raises(ToolError, match="`observations` is off"):
            await made.command()


async def test_a_subagent_is_not_observed(tmp_path: Path, models: Models) -> None:
    made = Observed(tmp_path / "home", models, started_by="parent")
    with closing(made.engine):
        await made.rounds_of(4)
        assert made.observations() == []


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Notes begin by themselves at 10,000 tokens of chat."""
    monkeypatch.setattr(rules, "BEGIN_SHARE", 0.05)


@pytest.mark.usefixtures("early")
async def test_auto_asks_where_that_pays(tmp_path: Path, models: Models) -> None:
    made = Observed(tmp_path / "home", models, when="auto")
    models.cost = {**COST, "output": 60}
    with closing(made.engine):
        await made.rounds_of(4)
        assert models.about == []
        await made.rounds_of(2)
        assert made.observations() == []
        ((outcome, reason),) = made.outcomes()
        assert outcome == "refused"
        assert re.match(r"it would cost \$0\.\d+ and save \$0\.\d+$", reason)
        await made.rounds_of(3)
        assert len(made.outcomes()) == 1, "the same reason stands once on record"
        assert "No model is asked: it would cost $" in await made.command("status")
        await made.rounds_of(20)
        assert made.observations(), "after many calls more of them are expected"


async def test_what_no_cache_is_known_to_hold_is_not_waited_for(
    tmp_path: Path, models: Models
) -> None:
    models.lives = {}
    made = Observed(tmp_path / "home", models, observing={"buffer_tokens": 4000})
    with closing(made.engine):
        await made.rounds_of(4, chars=800, said="All of it. " * 400)
        assert made.observing.last.startswith("No model is asked: it would cost $")


async def test_a_failure_replaces_nothing_and_is_not_repeated_at_every_call(
    observed: Observed, models: Models
) -> None:
    models.answer = lambda _question: "I would rather talk about ducks."
    await observed.rounds_of(4)
    assert observed.observations() == []
    asked = [str(question.messages) for question in models.asked]
    assert sum("<conversation>" in text for text in asked) == 2, (
        "once more when as much again has been said"
    )
    assert any("<answer>" in text for text in asked), "with what could not be read"
    assert "An observation came to nothing: The model's answer is of no use" in (
        observed.observing.last
    )
    models.answer = noted
    await observed.rounds_of(4)
    first = observed.observations()[0]
    assert first.document.covers[0] == observed.session.chat.branch.plan.items[0].key.address


async def test_condensing_that_fails_waits_for_more_notes_and_holds_up_no_observation(
    tmp_path: Path, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "NOTES_SHARE", 2000 / RECORD["contextWindow"])
    made = Observed(tmp_path / "home", models)

    def is_reflectors(question: CompleteParams) -> bool:
        return "<notes>" in str(question.messages) or "<answer>" in str(question.messages)

    def answer(question: CompleteParams) -> str:
        return "Quack." if is_reflectors(question) else noted(question, " word" * 600)

    models.answer = answer

    def reflected() -> int:
        return sum(map(is_reflectors, models.asked))

    with closing(made.engine):
        while not reflected():
            await made.round()
        once, notes = reflected(), len(made.observations())
        assert "Condensing older notes came to nothing" in made.observing.last
        await made.rounds_of(3)
        assert reflected() == once, "the same is not paid for at every call"
        assert len(made.observations()) > notes, "the chat is observed as before"
        await made.rounds_of(9)
        assert once < reflected() <= 3 * once, "once more when as much again is noted"


async def test_what_a_killed_engine_has_left_is_cleared_and_told(
    observed: Observed, models: Models
) -> None:
    lease = observed.observing.keeper.lease
    lease.owner = f"{lease.owner.partition('/')[0]}/{2**22 + 1}/killed"
    models.wait = asyncio.Event()
    await observed.rounds_of(3)
    assert len(models.asked) == 1
    killed, models.wait = observed.engine, None
    observed.open()
    told = observed.session.inbox.user_messages
    assert told == [
        "foredeck: An observation was cut off when its engine ended; nothing of it was kept, and "
        "its messages are observed again."
    ]
    await observed.rounds_of(6)
    assert observed.observations()
    killed.close()


@pytest.mark.usefixtures("early")
@pytest.mark.parametrize("why", ["single slot", "no model", "asking is off"])
async def test_auto_goes_on_without_a_model_and_says_so_once(tmp_path: Path, why: str) -> None:
    models = Models(single_slot=why == "single slot")
    models.none = "there is no API key for p" if why == "no model" else None
    made = Observed(
        tmp_path / "home", models, when="auto", asking={"enabled": why != "asking is off"}
    )
    reason = {
        "single slot": "p/m answers one question at a time (asking.single_slot)",
        "no model": "there is no API key for p",
        "asking is off": "asking in the background is switched off (asking.enabled)",
    }[why]
    with closing(made.engine):
        await made.rounds_of(9, said="I looked at the queue and changed it. " * 200)
        assert models.asked == []
        found = made.observations()
        assert len(found) > 1
        assert {each.document.observed_by for each in found} == {"foredeck"}
        assert made.outcomes() == [("refused", reason)], "each reason stands once on record"
        assert made.told == [ALONE.format(reason=reason)]
        assert f"No model is asked: {reason}." in await made.command("status")
    made.open()
    with closing(made.engine):
        await made.rounds_of(3, said="I looked at the queue and changed it. " * 200)
        assert len(made.observations()) > len(found)
        assert len(made.told) == 1, "nor is it said again after a restart"


async def test_the_user_asks_for_it(tmp_path: Path) -> None:
    models = Models(single_slot=True)
    made = Observed(tmp_path / "home", models, when="auto", observing={"threshold": 50_000})
    with closing(made.engine):
        await made.rounds_of(4)
        text = await made.command()
        assert re.match(r"Noting down [\d,]+ tokens of chat in the background \(default", text)
        (question,) = models.asked
        assert question.wanted, "a model that answers one at a time is asked where the user wants"
        assert len(made.observations()) == 1
        status = await made.command("status")
        assert "are noted in 1 observation and 0 reflections" in status
        assert "The last time: " in status
        with pytest.raises(ToolError, match="It is /foredeck observe"):
            await made.command("everything")


async def test_what_was_noted_is_condensed_when_the_user_asks(
    observed: Observed, models: Models
) -> None:
    assert await observed.command("reflect") == "There are no observations to condense."
    models.answer = lambda question: noted(question, " word" * 100)
    await observed.rounds_of(5)
    models.answer = noted
    told = await observed.command("reflect")
    assert re.fullmatch(r"Condensing all notes, [\d,]+ tokens, in the background\.", told)
    assert "tokens of notes condensed to" in observed.told[-1]
    assert "and 1 reflection of" in await observed.command("status")
    assert await observed.command("reflect") == "There are no observations to condense."


async def test_the_user_insists_where_a_price_is_named(tmp_path: Path, models: Models) -> None:
    models.cost = {**COST, "output": 60}
    made = Observed(tmp_path / "home", models, when="auto", asking={"share": 0.0001})
    with closing(made.engine):
        await made.rounds_of(2)
        await made.command()
        assert made.observations() == []
        assert "it would cost $" in made.told[-1]
        assert made.told[-1].endswith(" /foredeck observe yes asks all the same.")
        await made.command("yes")
        assert len(made.observations()) == 1
        await made.rounds_of(2)
        await made.command()
        assert len(made.observations()) == 1, "it was this once"
    poor = Observed(tmp_path / "home2", models, when="auto", asking={"share": 0})
    with closing(poor.engine):
        await poor.rounds_of(3)
        await poor.command()
        assert "; questions may cost 0% of the session's" in poor.observing.last
        assert len(models.asked) == 1, "the caps hold for what the user asks for, too"


async def test_the_mode_is_said_or_guessed(observed: Observed) -> None:
    await observed.rounds_of(1)
    assert await observed.command("mode") == (
        "This is observed as default work: too few tool calls to tell."
    )
    assert await observed.command("mode testing") == (
        "This is observed as testing work: you have said so."
    )
    await observed.rounds_of(3)
    assert observed.observations()[0].document.mode == "testing"
    assert observed.observations()[0].document.mode_by == "user"
    assert (await observed.command("mode guess")).startswith("This is observed as default work")
    with pytest.raises(ToolError, match="Modes: default, explore"):
        await observed.command("mode dancing")


async def test_a_mode_that_was_said_is_kept_with_the_session_and_its_forks(
    observed: Observed,
) -> None:
    await observed.command("mode research")
    await observed.rounds_of(1)
    await observed.command("mode testing")
    observed.engine.close()
    observed.open()
    assert "testing work: you have said so" in await observed.command("status")
    fork = SimulatedHost("f").opening(str(observed.home), "fork", parent="s")
    observed.engine.open_session(fork)
    assert observed.observing.mode().mode == "testing"
    observed.open()
    await observed.command("mode guess")
    observed.engine.close()
    observed.open()
    assert observed.observing.mode().by == "guess"


async def test_what_was_compacted_while_another_job_ran_is_observed_all_the_same(
    observed: Observed, models: Models
) -> None:
    models.wait = asyncio.Event()
    await observed.rounds_of(3)
    assert len(models.asked) == 1
    await observed.call()
    whole = [item.key.address for item in observed.session.chat.branch.plan.items]
    observed.engine.compact(
        SessionCompactParams(session="s", reason="manual", messages=[], time_ms=observed.now)
    )
    await settled()
    summed_up = SimulatedHost("s", model=RECORD)
    summary = {"role": "user", "content": "Go on. " * 9000, "timestamp": observed.now}
    summed_up.add(summary, entries=[None])
    observed.engine.assemble(summed_up.request(observed.now))
    await settled()
    models.wait.set()
    await settled()
    covered = [address for each in observed.observations() for address in each.document.covers]
    assert covered == whole


async def test_notes_of_a_project_are_shown_to_its_other_sessions_only_where_they_share_them(
    tmp_path: Path, models: Models
) -> None:
    with closing(open_store(Config(home=tmp_path))) as store:
        project = project_of(str(tmp_path), open_filesystems(Config(), str(tmp_path))).id
        writer, _ = observer(block("high decision: User wants the walrus"))
        other = keeper(store, session="other")
        other.project = project
        await other.observe(chat_rounds(3), pick, writer, MODE)

    def section(scope: str) -> str:
        own = Observed(tmp_path, models, observing={"scope": scope})
        lease = own.observing.keeper.lease
        assert lease.key == ("s" if scope == "thread" else project)
        found = own.engine.opened.facilities.sections if own.engine.opened else ()
        texts = [one.text(4000) for one in found if isinstance(one, OtherSessionsSection)]
        own.engine.close()
        return "".join(texts)

    assert section("thread") == ""
    assert "User wants the walrus" in section("resource")
