"""`foredeck carry`: reads a session, has it folded, writes it as another agent's, and reports."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from shlex import join
from tempfile import TemporaryDirectory
from typing import Any, TextIO

from foredeck.cli.arguments import resolve_config
from foredeck.cli.output import answer
from foredeck.cli.person import asked, can_ask, named_or_chosen
from foredeck.cli.stored import made_store, opened_store
from foredeck.config import Config
from foredeck.errors import ForedeckError
from foredeck.model.figures import counted, short_count
from foredeck.store.clock import now_ms
from foredeck.store.place import open_store, store_place
from foredeck.store.sessions import is_private
from foredeck.store.store import Store
from foredeck_agents.carry.agents import AGENTS, NAMES, Agent
from foredeck_agents.carry.first_prompt import (
    Folded,
    Going,
    Priced,
    Unwritten,
    chars_beside,
    folded,
    models_of,
    priced,
)
from foredeck_agents.carry.messages import Carried, Folders, NewSession, carried, stamp_of
from foredeck_agents.carry.note import changed_since, foreign_tools, note_lines, open_tasks
from foredeck_agents.carry.origin import SourceSession, find_origin, opencode_origin, title_of


class CarryRefused(ForedeckError):
    """The text says what to do instead."""

    exit_code = 2


def run(args: Namespace) -> int:
    """`foredeck carry`."""
    args.session = named_or_chosen(args, args.session)
    agent = AGENTS[args.to or _asked_agent(args.session)]
    with _opened(args) as (config, store):
        origin = find_origin(store, args.session, ingests=not args.dry_run)
        if is_private(store, origin.session) and not args.private:
            raise CarryRefused(
                f"session {origin.session} is private: {agent.name} would keep it as it keeps its "
                "own sessions. `foredeck carry --private` does so."
            )
        report = _carried(config, store, origin, agent, args)
    return answer(args, report.to_json(), report.lines)


def _asked_agent(session: str) -> str:
    name = asked(f"Where is it to go on? [{', '.join(AGENTS)}]").lower() if can_ask() else ""
    if name not in AGENTS:
        first, *others = (f"--to {agent}" for agent in AGENTS)
        raise CarryRefused(
            f"where is it to go on? `{join(['foredeck', 'carry', session])} {first}`, or "
            f"{', '.join(others)}."
        )
    return name


@contextmanager
def _opened(args: Namespace) -> Iterator[tuple[Config, Store]]:
    config = resolve_config(args).config
    has_own = Path(args.session).is_file() or opencode_origin(args.session) is not None
    if has_own and args.dry_run and not store_place(config).exists():
        with TemporaryDirectory() as home:
            config = config.model_copy(update={"home": Path(home), "store": "sqlite"})
            with closing(open_store(config)) as store:
                yield config, store
        return
    with (made_store if has_own else opened_store)(args) as store:
        yield config, store


def _carried(
    config: Config, store: Store, origin: SourceSession, agent: Agent, args: Namespace
) -> CarryReport:
    now, folder = now_ms(), (args.folder or Path(origin.cwd or ".")).absolute()
    if not folder.is_dir() and not args.dry_run:
        if args.folder:
            raise CarryRefused(f"--folder {args.folder}: there is no such folder.")
        raise CarryRefused(
            f"{folder}, where session {origin.session} worked, is not on this machine: "
            "--folder FOLDER says where it goes on."
        )
    own = args.model or _own_model(origin, agent)
    cwd, model = str(folder), own or next(filter(None, models_of(store, agent.harness)), "")
    others = () if args.model else chain(models_of(store, agent.harness), [origin.model])
    price = priced(chain([model], others))
    beside = chars_beside(store, agent.harness) or agent.beside
    session = NewSession(agent.new_id(), cwd, title_of(store, origin), stamp_of(now), model)
    file = agent.place(session, resolve_config(args).config.home)
    changed = changed_since(origin.messages, origin.cwd, cwd)
    source = NAMES.get(origin.harness, origin.harness or "another agent")
    foreign = [] if agent.harness == origin.harness else foreign_tools(origin.messages)
    tasks = open_tasks(store, config, cwd)
    before = "" if origin.cwd == cwd else origin.cwd
    note = note_lines(source, origin.session, session.id, before, changed, foreign, tasks)
    record = agent.record(model or "unknown", args.fit)
    going = Going(session.id, cwd, str(file), agent.harness, record)
    # The file first: where there can be none, no session is stored that is nowhere.
    with nullcontext(None) if args.dry_run else _new_file(file) as out:
        target: Any = Unwritten(store, now) if out is None else store
        prompt = folded(config, target, origin, going, "\n".join(note), now)
        messages = carried(
            prompt.messages, prompt.ours, session.id, agent.words, Folders(origin.cwd, cwd)
        )
        messages.messages = agent.shown(messages.messages)
        if out is not None:
            out.write(agent.text(session, messages.messages))
    return CarryReport(
        origin, agent, session, file, messages, prompt, changed, beside, price, args.dry_run
    )


def _own_model(origin: SourceSession, agent: Agent) -> str:
    provider = origin.model.partition("/")[0]
    return origin.model if provider == agent.provider or agent.words is None else ""


@contextmanager
def _new_file(file: Path) -> Iterator[TextIO]:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with file.open("x", encoding="utf-8") as out:
        try:
            file.chmod(0o600)
            yield out
            out.flush()
        except BaseException:
            file.unlink()
            raise


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
