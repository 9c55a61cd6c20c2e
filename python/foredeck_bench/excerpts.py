"""How much of what an agent wrote its observer is shown, over recorded sessions."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from foredeck.cli.arguments import add_json_flag
from foredeck.cli.output import Progress, print_json, table
from foredeck.cli.registry import Command
from foredeck.context.messages.shape import to_item
from foredeck.context.messages.transcript import observable
from foredeck.context.plan.plan import Plan
from foredeck.errors import ForedeckError
from foredeck.histories.recordings import find_recordings, load_recording
from foredeck.model.names import identifiers
from foredeck.observations.chunks import Chunk, ChunkRules, Position, next_chunk, pending_tokens
from foredeck.observations.excerpt import WallTime, excerpt
from foredeck.observations.observers import AskedQuestion, ModelObserver, ModelReply
from foredeck.sources.tool_calls import edits_of, written_texts

CHARS_PER_TOKEN = 4


@dataclass(slots=True)
class ExcerptFigures:
    """Sums over chunks. `names`: identifiers that a call of `write` or `edit` wrote and that did
    not stand in what it replaced, counted once for each call; `shown`: those of them in the excerpt
    of their chunk. `tokens`: of the messages; `excerpt_tokens`: of what the observer is shown."""

    chunks: int = 0
    calls: int = 0
    names: int = 0
    shown: int = 0
    tokens: int = 0
    excerpt_tokens: int = 0

    @property
    def share(self) -> float:
        """Of the names that were written: how many are shown."""
        return self.shown / self.names if self.names else 1.0

    @property
    def per_chunk(self) -> str:
        """`2,145 of 7,860`: tokens shown of a chunk's, on average."""
        each = max(1, self.chunks)
        return f"{self.excerpt_tokens // each:,} of {self.tokens // each:,}"

    def see(self, chunk: Chunk, text: str) -> None:
        """Count one chunk, whose excerpt is `text`."""
        self.chunks += 1
        self.tokens += chunk.tokens
        self.excerpt_tokens += len(text) // CHARS_PER_TOKEN
        for names in _written(chunk):
            self.calls += 1
            self.names += len(names)
            self.shown += sum(name in text for name in names)


def chunks_of(path: Path, rules: ChunkRules) -> Iterator[Chunk]:
    """The chunks of a recorded session as they are observed while it goes on: each as soon as
    enough waits. Raises `TranscriptError`."""
    transcript = load_recording(path)
    chat = Plan()
    for recorded in transcript.messages:
        chat.append(to_item(recorded.message, recorded.entry, {}))
    messages = observable(
        chat.items, lambda chars: int(chars / CHARS_PER_TOKEN), cwd=transcript.cwd or ""
    )
    position = Position()
    for call in transcript.calls:
        seen = messages[: call.seen]
        if pending_tokens(seen, position) < rules.least:
            continue
        chunk = next_chunk(seen, position, rules)
        if chunk is not None:
            part = chunk.part
            is_open = part is not None and part.end < part.length
            done = position.messages + len(chunk.covers)
            position = Position(done, part.end if part is not None and is_open else 0)
            yield chunk


def measure_excerpts(path: Path) -> ExcerptFigures:
    """The figures of one session. Raises `TranscriptError`."""
    figures, rules = ExcerptFigures(), ChunkRules()
    for chunk in chunks_of(path, rules):
        figures.see(chunk, excerpt(chunk, rules, WallTime()))
    return figures


def question_about(chunk: Chunk) -> AskedQuestion:
    """What a model would be asked about a chunk."""
    return ModelObserver(_ask_nobody, lambda text: len(text) // CHARS_PER_TOKEN).question(
        chunk, "default"
    )


async def _ask_nobody(_asked: AskedQuestion) -> ModelReply:
    return ModelReply("")


def total_of(sessions: Iterable[ExcerptFigures]) -> ExcerptFigures:
    """The sums of them."""
    total = ExcerptFigures()
    for figures in sessions:
        for each in fields(ExcerptFigures):
            setattr(total, each.name, getattr(total, each.name) + getattr(figures, each.name))
    return total


def _written(chunk: Chunk) -> Iterator[frozenset[str]]:
    """For each call of a chunk that wrote something and did not fail, the names that it wrote."""
    failed = {each.call_id for each in chunk.messages if each.kind == "result" and each.failed}
    for message in chunk.messages:
        for call in message.calls:
            texts = written_texts(call.arguments)
            if texts and call.id not in failed:
                before = [edit.old for edit in edits_of(call.arguments)]
                yield identifiers("\n".join(texts)) - identifiers("\n".join(before))


# The command


_SHORT = 44


class NoChunk(ForedeckError):
    """A recording has no chunk of that number."""

    exit_code = 2


def _run(args: Namespace) -> int:
    paths = find_recordings(args.paths)
    if args.print is not None:
        _print_chunk(paths[0], args.print)
        return 0
    with Progress("reading", total=len(paths)) as progress:
        found = {}
        for path in paths:
            found[path.name] = measure_excerpts(path)
            progress.advance(note=path.name)
    total = total_of(found.values())
    if args.json:
        sessions = {name: asdict(figures) for name, figures in found.items()}
        print_json({"sessions": sessions, "total": asdict(total)})
        return 0
    rows = [
        (name[:_SHORT], str(f.chunks), str(f.calls), str(f.names), f"{f.share:.1%}", f.per_chunk)
        for name, f in [*found.items(), ("total", total)]
        if f.chunks
    ]
    print(table([("", "chunks", "calls", "names", "shown", "tokens a chunk, of"), *rows]))
    print(
        "\nnames: identifiers that calls of write and edit have written anew; shown: the share that"
        "\nstands in what an observer of that chunk is shown."
    )
    return 0


def _print_chunk(path: Path, number: int) -> None:
    """What a model would be asked about one chunk."""
    chunks = list(chunks_of(path, ChunkRules()))
    if not 0 < number <= len(chunks):
        raise NoChunk(f"{path.name} has {len(chunks)} chunks.")
    asked = question_about(chunks[number - 1])
    print(f"{asked.system}\n\n{asked.text}")


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "paths", metavar="PATH", nargs="+", type=Path, help="session files of Pi, or folders"
    )
    parser.add_argument(
        "--print", metavar="N", type=int, help="print the question about chunk N of the first file"
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Cut recorded sessions into the chunks that an observer would be asked about, and count\n"
        "how many of the names that the agent wrote stand in what it is shown. No model runs."
    ),
    example="foredeck bench excerpts ../shared/transcripts",
    configure=_configure,
    run=_run,
)
