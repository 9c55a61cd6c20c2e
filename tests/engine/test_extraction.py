"""What is remembered of a session whose user has no model that may be asked for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from asked_models import RECORD, Models, settled

from context.messages import assistant
from foredeck.config import Config
from foredeck.engine.engine import Engine
from foredeck.errors import StoreUnavailable
from foredeck.hosts.host import Host
from foredeck.hosts.protocol import InputParams, SessionEventParams
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.memory import extracting
from foredeck.memory.trust import load_user
from foredeck.memory.user_acts import UserActs

RULE = "Never use tabs in Python files."


def typed(text: str) -> InputParams:
    return InputParams(text=text, source="interactive", screen=True, arguments=[])


class Talk:
    """An engine with one session of a person's."""

    def __init__(self, home: Path, work: Path, session: str, models: Models) -> None:
        self.home, self.host, self.turns = home, SimulatedHost(session, model=RECORD), 0
        self.told: list[str] = []
        host = Host(lambda _level, text: self.told.append(text), models=models)
        self.engine = Engine(Config(home=home), host)
        opening = self.host.opening(str(work))
        self.engine.open_session(opening.model_copy(update={"by_user": True}))
        self.host.replace_engine()

    async def say(self, text: str) -> None:
        """One turn, typed by the user and answered by the agent."""
        self.turns += 1
        self.host.add({"role": "user", "content": text, "timestamp": self.turns})
        asked = self.host.request(self.turns).model_copy(update={"typed": [typed(text)]})
        self.host.accept(self.engine.assemble(asked))
        answer = assistant("Done with that.", timestamp=self.turns)
        event = {"session": self.host.session, "kind": "answer", "message": answer, "entry": None}
        self.engine.session_event(SessionEventParams.model_validate(event))
        self.host.add(answer)
        await settled()
        await asyncio.sleep(0.1)  # the project's files are looked through in a thread
        await settled()

    def kept(self) -> list[tuple[str, str, str]]:
        acts = UserActs(self.engine.opened.session.objects.store, load_user(self.home))
        entries = [*acts.of_user(), *acts.proposals()]
        return [(e.document.category, e.trust, e.document.fact) for e in entries]


@pytest.fixture
def models() -> Models:
    return Models(single_slot=True)


@pytest.fixture
def talk(tmp_path: Path, models: Models) -> Iterator[Talk]:
    (tmp_path / "work").mkdir()
    made = Talk(tmp_path / "home", tmp_path / "work", "s", models)
    with closing(made.engine):
        yield made


async def test_rules_that_the_user_states_are_kept_without_a_model(
    talk: Talk, models: Models
) -> None:
    await talk.say(f"Fix the parser. {RULE} Never mind the tests.")
    await talk.say("From now on we ship on Fridays.")
    await talk.say("I never saw that error. Is it always there?")
    assert models.asked == []
    assert talk.kept() == [
        ("decision", "user-stated", "From now on we ship on Fridays."),
        ("preference", "user-stated", RULE),
    ]
    assert talk.told[0].startswith(f'Kept in memory, as you said it: "{RULE}" (m-')
    await talk.say(RULE)
    assert len(talk.kept()) == 2, "what is there is not kept twice"


async def test_what_could_not_be_stored_is_read_out_again(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StoreUnavailable("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(extracting, "read_out", fail)
        await talk.say(RULE)
    assert talk.kept() == []
    await talk.say("Look at the parser and its tables.")
    assert talk.kept() == [("preference", "user-stated", RULE)]


async def test_after_a_mere_word_no_model_is_looked_for(talk: Talk, models: Models) -> None:
    await talk.say("Go on.")
    assert models.about == []
    await talk.say("Look at the parser and its tables.")
    assert len(models.about) == 1


async def test_what_a_file_says_is_not_kept_as_the_users_word(talk: Talk, tmp_path: Path) -> None:
    (tmp_path / "work" / "AGENTS.md").write_text(RULE)
    await talk.say(RULE)
    assert ("preference", "user-stated", RULE) not in talk.kept()
