"""Which texts that recorded models went on to edit were not in view, and what had let them go?

    python -m foredeck_bench.lost [--jobs N] [--set KEY=VALUE]... [--list] PATH...

Each PATH is a set of its own, as for `foredeck_bench.weigh`, which says how many were lost; this
says where each stood last, at which rebase it went, and whether the file's text was known by then:
of a recording only what was read in whole or written is. A loss in a file of which another text
was lost shortly before counts apart, since a model that has to read the file again has it then.
"""

from __future__ import annotations

import posixpath
import sys
import tempfile
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from foredeck.accounting.shapes import Shape, Shapes, blocks_of, texts_of
from foredeck.cli.output import table
from foredeck.context.messages.shape import Message
from foredeck.engine.engine import Engine
from foredeck.errors import ForedeckError
from foredeck.histories.recordings import find_recordings, load_recording, stem_of
from foredeck.model.documents import FileDocument
from foredeck.model.figures import counted
from foredeck.replay.options import ReplayOptions
from foredeck.replay.replayed_session import ReplayedSession
from foredeck.sources.tool_calls import edits_of, path_argument
from foredeck_bench.judging.evidence import View
from foredeck_bench.judging.judge import RETURN_CALLS

HEAD = ("losses", "again", "gone at a rebase", "stood in", "the file's text", "calls before")


class LostEdit(NamedTuple):
    """A text that was edited at a call of a session, counted from 1, and was not in view."""

    session: str
    call: int
    path: str
    gone_at: int
    """The call at which it had left; 0 where it had never been in view."""
    reason: str
    """Of that call's rebase."""
    pause_s: float
    """Between that call and the one before."""
    stood_in: str
    """The tool whose result, or whose call, showed it last; `pieces` where several did."""
    known: str
    """Whether the session knew the file's text, and whether that text holds it."""
    again: bool
    """Whether another text of the file was lost in the calls before."""


class _Sent(NamedTuple):
    """One call as it went out."""

    prompt: Sequence[Message]
    shapes: Sequence[Shape]
    reason: str
    time_ms: int


@dataclass(slots=True)
class LostEdits:
    """Those of one session, or of several."""

    edits: int = 0
    """How many texts were edited."""
    lost: list[LostEdit] = field(default_factory=list)


def main(arguments: Sequence[str]) -> int:
    """Replay, and print a table for each set. Returns the exit code."""
    parser = ArgumentParser(prog="python -m foredeck_bench.lost", description=__doc__)
    parser.add_argument("paths", metavar="PATH", nargs="+", type=Path)
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: %(default)s)")
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE", dest="settings")
    parser.add_argument("--list", action="store_true", help="print each loss, too")
    asked = parser.parse_args(arguments)
    options = ReplayOptions(settings=tuple(asked.settings))
    try:
        for path in asked.paths:
            losses = LostEdits()
            with ProcessPoolExecutor(max_workers=asked.jobs) as pool:
                for each in pool.map(partial(find_losses, options), find_recordings([path])):
                    losses.edits += each.edits
                    losses.lost += each.lost
            print(f"\n{path.name}: {len(losses.lost)} of {counted(losses.edits, 'edit')} lost\n")
            print("\n".join(report(losses.lost, listed=asked.list)))
    except ForedeckError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def find_losses(options: ReplayOptions, path: Path) -> LostEdits:
    """Replay one recorded session. Raises `ForedeckError` where that is not possible."""
    recording, losses = load_recording(path), LostEdits()
    shapes, sent = Shapes(), list[_Sent]()
    with (
        tempfile.TemporaryDirectory(prefix="foredeck-lost-") as home,
        closing(ReplayedSession(Path(home), recording, options)) as replayed,
    ):
        for call in recording.calls:
            prompt, decision = replayed.call(call)
            sent.append(_Sent(prompt, shapes.of(prompt), decision.reason or "", call.time_ms))
            for text, named in edited_texts(recording.messages[call.seen].message):
                losses.edits += 1
                gone_at = _gone_at(sent, text)
                if gone_at is None:
                    continue
                file = posixpath.normpath(posixpath.join(recording.cwd or "/", named))
                known = _known(replayed.engine, file, text)
                again = _is_again(losses.lost, file, len(sent))
                about = _about(sent, gone_at, text)
                found = LostEdit(stem_of(path), len(sent), file, gone_at, *about, known, again)
                losses.lost.append(found)
    return losses


def edited_texts(answer: Message) -> Iterator[tuple[str, str]]:
    """The texts that an answer's edits are of, each with the path that the edit names."""
    for block in blocks_of(answer):
        arguments = block.get("arguments")
        if block.get("name") == "edit" and isinstance(arguments, dict):
            for edit in edits_of(arguments):
                if edit.old.strip():
                    yield edit.old, path_argument(arguments) or ""


def report(lost: Sequence[LostEdit], *, listed: bool = False) -> Iterator[str]:
    """The lines of a set: losses by cause, the most frequent first, then each where asked for."""
    causes = Counter((loss.reason, loss.stood_in, loss.known) for loss in lost)
    rows = []
    for cause, count in sorted(causes.items(), key=lambda pair: (-pair[1], pair[0])):
        own = [loss for loss in lost if (loss.reason, loss.stood_in, loss.known) == cause]
        again = sum(loss.again for loss in own)
        before = sorted(loss.call - loss.gone_at for loss in own if loss.gone_at)
        middle = str(before[len(before) // 2]) if before else ""
        rows.append((str(count), str(again), *cause, middle))
    yield table([HEAD, *rows])
    for loss in lost if listed else ():
        when = f" at call {loss.gone_at} after {loss.pause_s:.0f} s" if loss.gone_at else ""
        stood_in = f", stood in {loss.stood_in}" if loss.stood_in else ""
        yield (
            f"{loss.session} call {loss.call}: {loss.path}{stood_in}, {loss.reason}{when}, "
            f"the file's text {loss.known}"
        )


def _is_again(lost: Sequence[LostEdit], path: str, call: int) -> bool:
    return any(each.path == path and call - each.call <= RETURN_CALLS for each in lost)


def _gone_at(sent: Sequence[_Sent], text: str) -> int | None:
    """The call, from 1, at which a text had left the prompt; 0 for one that never was in any, None
    for one that is in view."""
    view = View()
    for number in range(len(sent), 0, -1):
        view.show(sent[number - 1].shapes)
        if view.has_text(text):
            return number + 1 if number < len(sent) else None
    return 0


def _about(sent: Sequence[_Sent], gone_at: int, text: str) -> tuple[str, float, str]:
    """Reason of the rebase, seconds of the pause before it, and where the text had stood."""
    if not gone_at:
        return "never in view", 0.0, ""
    after, before = sent[gone_at - 1], sent[gone_at - 2]
    holders = [message for message in before.prompt if _holds(message, text)]
    stood_in = _tool(holders[-1]) if holders else "pieces"
    return after.reason, (after.time_ms - before.time_ms) / 1000, stood_in


def _holds(message: Message, text: str) -> bool:
    return any(text in held for held in texts_of(message))


def _tool(message: Message) -> str:
    """Whose result a message is; of an answer which calls it makes."""
    if message.get("role") == "toolResult":
        return str(message.get("toolName") or "a tool")
    calls = {str(b.get("name")) for b in blocks_of(message) if b.get("type") == "toolCall"}
    return f"a call of {' and '.join(sorted(calls))}" if calls else str(message.get("role"))


def _known(engine: Engine | None, path: str, text: str) -> str:
    """What the session knows of the text of the file that is edited."""
    session = engine.opened.session if engine and engine.opened else None
    ordinal = session.objects.index.by_label.get(path) if session else None
    document = None
    if session is not None and ordinal is not None:
        document = session.objects.store.get(
            session.objects.index.entries[ordinal].object, FileDocument
        )
    if document is None or document.content is None:
        return "unknown"
    return "known" if text in document.content else "out of date"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
