"""Lines that the model reads: short, stable, deterministic."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from foredeck.model.figures import cut
from foredeck.model.quoting import name as named
from foredeck.model.quoting import one_line, quoted, word

WHY_NO_CONTENT = {
    "binary": "it is not text",
    "huge": "it is too large; read it with offset and limit",
    "listed": "it was only listed; it cannot be reached from here",
    "deleted": "it was deleted",
    "unreadable": "it cannot be read",
    "special": "it is not a regular file",
    "pointer": "it is only pointed to, and nothing is fetched; read it with a tool of yours",
    "session": "what was said in it is its chat (chat:ID)",
}


CARRIED = "[foredeck] The chat below is from "
"""How the first message of a session begins that was carried over from another agent."""


def deleted(older: int | None) -> str:
    why = WHY_NO_CONTENT["deleted"]
    return why if older is None else f"{why}; an older version may be had, such as v{older}"


def handle(ordinal: int, version: int | None = None) -> str:
    return f"@{ordinal}" if version is None else f"@{ordinal} v{version}"


def unchanged(name: str) -> str:
    return f"Unchanged: the same as {name} above."


def contained(name: str) -> str:
    """A partial read of what is visible."""
    return f"Unchanged: these lines are in {name} above."


def unlabelled(ordinal: int, tool: str, args: str) -> str:
    """Went out without foredeck, so it has no handle."""
    return f"@{ordinal} ({word(tool)} {quoted(args)})" if args else f"@{ordinal} ({word(tool)})"


def outside_project(path: str) -> str:
    """A file that foredeck may not read by itself."""
    return f"{named(path)} is outside this project, and no tool has read it: use read."


def not_text(name: str, chars: int) -> str:
    """In place of a binary file's text."""
    return (
        f"{name} is not text: {chars:,} characters that stand for its bytes are left out. "
        "Use bash (file, xxd, iconv) to see what is in it."
    )


def time_now(at: datetime, zone: str) -> str:
    """On a message after a pause; `zone` is the host's name of it."""
    # Days in English, whatever the locale of the process is.
    day = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[at.weekday()]
    name = f"{named(zone)}, " if zone else ""
    return f"[foredeck] Now {day} {at:%Y-%m-%d %H:%M} ({name}{at.tzname()})."


def difference(ordinal: int, version: int, diff: str) -> str:
    return f"@{ordinal} v{version}, changed since the copy above:\n{diff}"


def newer_copy(ordinal: int, version: int) -> str:
    return f"@{ordinal} v{version}, replaces the older copy above"


def older_copy(ordinal: int, version: int) -> str:
    return f"@{ordinal} v{version}, older than the copy above"


def brought_up_to_date(ordinal: int, version: int) -> str:
    """Heading of an updated read."""
    return f"@{ordinal} v{version}, with the later edits"


def old_version(ordinal: int, version: int) -> str:
    return f"@{ordinal} v{version}, not the newest version"


def reference(
    ordinal: int, fields: Mapping[str, Any], *, chars: int, lines: str = "", images: int = 0
) -> str:
    """A folded result's line; `lines` is their number, or a file's range (`860-1059`)."""
    count = f"lines {lines}" if "-" in lines else f"{lines} lines"
    parts = [
        "failed" if fields.get("status") == "fail" else "",
        quoted(fields["args_display"]) if fields.get("args_display") else "",
        count if lines else "",
        f"{chars} chars",
        f"{images} images" if images > 1 else "1 image" if images else "",
    ]
    return f"@{ordinal} folded: {', '.join(filter(None, parts))}"


def done(ordinal: int) -> str:
    """A folded receipt of a write."""
    return f"@{ordinal} done"


def active_reference(ordinal: int, fields: Mapping[str, Any]) -> str:
    return f"@{ordinal} tool={word(fields['tool'])} status={fields['status']}"


_LEFT = re.compile(
    r'@\d+ (?:done|folded: (?:failed, )?(?:"(?:[^"\\]|\\.)*", )?(?:lines \d+-\d+, |\d+ lines, )?'
    r"\d+ chars(?:, \d+ images?)?)"
)
"""Of a `reference` or `done` line, what follows from the result."""


def described_anew(line: str, said: str) -> str:
    match = _LEFT.match(line)
    return line if match is None else ", ".join(filter(None, [match[0], said]))


def said_of(fields: Mapping[str, Any], usual: Collection[str]) -> str:
    name = [f"name={named(fields['nickname'])}"] if fields.get("nickname") else []
    own = [n for n in fields.get("view") or () if n not in usual and n != "nickname"]
    state = fields.get("state") if "state" in own else None
    return ", ".join([*name, *_viewed_fields({**fields, "state": state}, own)])


def folded_argument(ordinal: int, chars: int) -> str:
    """Replaces a long argument; the shim recognises its form."""
    return f"<activate @{ordinal}: {chars} chars folded>"


def folded_paste(ordinal: int, chars: int, lines: tuple[int, int] | None) -> str:
    """The shim recognises its form. `lines`: the omitted range, if whole."""
    which = f"lines {lines[0]}-{lines[1]}, " if lines else ""
    return f"<activate @{ordinal}: {which}{chars} chars folded>"


def pasted(ordinal: int) -> str:
    """A long user message, which shows no handle."""
    return f"@{ordinal} (in a message of the user's)"


def folded_answer(ordinal: int, turn: int, chars: int) -> str:
    """The middle of a long answer of an earlier turn."""
    return f'\n<activate "@{ordinal} turn {turn}": {chars} chars folded>\n'


def whole_call(arguments: Mapping[str, Any], result: str) -> str:
    sections = [
        f"{name}:\n{value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in arguments.items()
    ]
    return "\n".join([*sections, f"result:\n{result}"])


def no_result() -> str:
    """Replaces a missing result."""
    return "[foredeck] No result: the call was interrupted."


def no_named_result() -> str:
    return "[foredeck] The results here name other calls, so this one's is not known."


def object_line(ordinal: int, fields: Mapping[str, Any]) -> str:
    """An object's metadata by its view or type. `path` is the model's name of a file."""
    kind = fields.get("type")
    name = f" name={named(fields['nickname'])}" if fields.get("nickname") else ""
    if (view := fields.get("view")) is not None:
        line = " ".join([f"@{ordinal} {kind}", *_viewed_fields(fields, view)])
        return line if "nickname" in view else line + name
    if kind == "file":
        path = named(fields.get("path") or "")
        state = fields.get("state") or "text"
        note = "" if state == "text" else f" {state}"
        return f"@{ordinal} file {path} chars={fields.get('char_count') or 0}{note}{name}"
    if kind == "toolcall":
        return (
            f"@{ordinal} toolcall tool={word(fields.get('tool') or 'unknown')} "
            f"status={fields.get('status') or 'ok'} "
            f"args={quoted(fields.get('args_display') or '')}{name}"
        )
    if kind == "user":
        size = f"chars={fields.get('char_count') or 0} lines={fields.get('line_count') or 0}"
        return f"@{ordinal} user {size} {quoted(fields.get('first_line') or '')}{name}"
    if kind == "pointer":
        return f"@{ordinal} pointer {named(fields.get('locator') or '')}{name}"
    if kind == "compaction":
        return f"@{ordinal} compaction {one_line(str(fields.get('short')))}{name}"
    return f"@{ordinal} {kind}{name}"


def pool_heading() -> str:
    return "Objects known in this session (activate one by its @handle to see its content):"


def active_heading() -> str:
    return "Content of the active objects:"


def newly_active_heading() -> str:
    """Further content, while what is above may not change."""
    return "Content of active objects that is new, or newer than above:"


def history_cut() -> str:
    """Begins a list that starts with an answer."""
    return "[foredeck] Earlier messages are not shown."


def deactivated(ordinal: int) -> str:
    return f"@{ordinal} is inactive; its content leaves when the prompt is next rewritten."


def out_of_pool(ordinal: int) -> str:
    """`deactivate` on an inactive object."""
    return f"@{ordinal} was inactive; it is off the list now."


def unpinned(ordinal: int) -> str:
    return f"@{ordinal} is no longer pinned."


def not_pinned(ordinal: int) -> str:
    return f"@{ordinal} was not pinned."


def already_visible(name: str, *, pinned: bool) -> str:
    """`activate` or `pin` on visible content."""
    return f"{name} is above, and pinned." if pinned else f"{name} is above."


def no_content(ordinal: int, why: str) -> str:
    """`activate` on an object without text."""
    return f"@{ordinal} has no content to show: {why}."


def empty(ordinal: int) -> str:
    """`activate` on an empty text."""
    return f"@{ordinal} is empty."


def rest_of(name: str, shown: int, total: int) -> str:
    """How to get the text after `shown` characters."""
    return f'activate "{name} chars {shown + 1}-{total}" for the rest'


def cut_short(shown: int, total: int, rest: str) -> str:
    """Ends content longer than one activation."""
    return f"\n[The first {shown:,} of {total:,} characters: {rest}.]"


def beginning_visible(name: str, shown: int, total: int, rest: str) -> str:
    """Answers `activate` on long content whose beginning is visible."""
    return f"The first {shown:,} of {total:,} characters of {name} are above: {rest}."


def left_out(ordinal: int, start: int, end: int, total: int) -> str:
    """The middle of a text that does not fit the window."""
    return (
        f"\n[foredeck] {end - start:,} of {total:,} characters do not fit here: "
        f'activate "@{ordinal} chars {start + 1}-{end}" shows some of them.\n'
    )


def no_longer_above(ordinal: int) -> str:
    """In place of a tool's word that something is above, once it is gone."""
    return f"@{ordinal} is not above any more: activate it again if you need it."


def go_on() -> str:
    """Ends a turn whose beginning was compacted."""
    return "[foredeck] The messages above were cut down to fit the context window. Go on."


def turn_ended() -> str:
    """Ends a turn after a pause, when folding affects its reasoning."""
    return (
        "[foredeck] After a pause, older output above was folded, and your reasoning in this turn "
        "was left out. Go on with the task."
    )


def summarised(ordinal: int, pinned: Sequence[int] = ()) -> str:
    """Follows a summary by the host's model; `pinned` left the view."""
    pins = f" {pinned_away(pinned)}" if pinned else ""
    return (
        f'[foredeck] The summary above covers @{ordinal}: activate "@{ordinal} turns A-B" shows '
        f'these turns in full, "@{ordinal}::lost" what the summary leaves out.{pins}'
    )


def pinned_away(ordinals: Sequence[int]) -> str:
    """Pinned objects that leave the view."""
    return f"Pinned, but out of view: {', '.join(map(handle, ordinals))}."


def cut_part(shown: int, total: int) -> str:
    return f"\n[The first {shown:,} of {total:,} characters: ask for a smaller part.]"


def images_left_out(count: int) -> str:
    """Images that do not fit the window."""
    subject = "An image is" if count == 1 else f"{count} images are"
    return f"[foredeck] {subject} left out here: the context window is too small."


def images_not_here(count: int) -> str:
    """Ends `activate`'s answer if the host's tool results are text only."""
    subject = "Its image is" if count == 1 else f"Its {count} images are"
    return f"{subject} stored, but cannot be shown here: open the file, or run the tool again."


def handles_of(session: str) -> str:
    """Precedes another session's text, whose handles are its own."""
    called = named(session)
    return f"[foredeck] Said in session {called}: what is @12 there is {called}:@12 here."


def images_unknown(ordinal: int, count: int) -> str:
    """Answers `activate` on a result with unsupported images."""
    subject = "An image of it is" if count == 1 else f"{count} images of it are"
    return f"{subject} no PNG, JPEG, GIF or WebP: run the tool of @{ordinal} again to see more."


def summary_heading(span: str, ordinal: int) -> str:
    """First line of foredeck's summary; `span` is the turns it covers."""
    return (
        f'[foredeck] {span}, summed up without a model. activate "@{ordinal} turns A-B" shows '
        f'these turns in full, "@{ordinal}::lost" what is left out here.'
    )


def turns_span(first: int, last: int, begun: str = "", ended: str = "") -> str:
    """`Turns 3-7 (2026-02-02 03:40 +01:00 to ...)`; without times if unknown."""
    when = f" ({begun} to {ended})" if begun else ""
    return (f"Turns {first}-{last}" if last > first else f"Turn {first}") + when


def short_summary(span: str, questions: str, files: int, errors: int) -> str:
    return f"{span}: {questions}; {files} files, {errors} errors"


def question_heading(turn: int) -> str:
    """Before the current turn's question, in a summary."""
    return f"Asked in turn {turn}, which is not done yet:"


def question_gap(chars: int, ordinal: int, turn: int) -> str:
    """Replaces the middle of a long question."""
    return f'\n({chars:,} chars left out: activate "@{ordinal} turns {turn}")\n'


def turn_line(turn: int, text: str) -> str:
    return f"- turn {turn}: {one_line(text)}"


def file_line(ordinal: int, path: str, done: str, turn: int, state: str) -> str:
    """A file in a summary: what was done, when last, and its state."""
    return f"- @{ordinal} {named(path)}: {done}, last in turn {turn}; {state}"


def error_line(ordinal: int | None, call: str, turn: int, error: str) -> str:
    """A failed call in a summary."""
    name = "" if ordinal is None else f"@{ordinal} "
    return f"- {name}{one_line(call)} (turn {turn}): {one_line(error)}"


def open_errors(count: int) -> str:
    """Failed calls never repeated with success, in a summary."""
    return f"- not fixed: {count} of the errors above"


def turn_under_way(turn: int) -> str:
    return f"- turn {turn} was not done"


def more_lines(count: int, first: int, last: int) -> str:
    """Omitted lines of a summary, and their turns."""
    return f"- ... {count} more ({turns_span(first, last).lower()})"


def pause(milliseconds: int, until: str) -> str:
    minutes = milliseconds // 60_000
    long = f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
    return f"(paused {long}, until {until})"


def turn_heading(turn: int, time: str) -> str:
    return f"--- turn {turn}" + (f", {time}" if time else "")


def message_heading(kind: str, *, stopped: bool) -> str:
    """Precedes a message in a transcript."""
    return f"--- {kind}{' (stopped)' if stopped else ''}"


def call_line(ordinal: int | None, tool: str, args: str, status: str) -> str:
    """A tool call in a transcript."""
    name = "" if ordinal is None else f" @{ordinal}"
    return f"--- toolcall{name} tool={word(tool)} args={quoted(args)} status={status}"


FIELD_WORDS = {
    "char_count": "chars",
    "file_type": "type",
    "line_count": "lines",
    "args_display": "args",
    "nickname": "name",
    "short_summary": "summary",
}
"""Displayed names of some metadata fields."""

VIEWED_CHARS = 400
"""Most characters of one field."""


def _viewed_fields(fields: Mapping[str, Any], view: Sequence[str]) -> Iterator[str]:
    # A view that was imported may name a field twice, and any.
    for name in dict.fromkeys(view):
        value = fields.get(name)
        if value is None or value == "":
            continue
        if name == "path":
            yield named(str(value))
        elif isinstance(value, str):
            yield f"{FIELD_WORDS.get(name, name)}={quoted(cut(value, VIEWED_CHARS))}"
        else:
            yield f"{FIELD_WORDS.get(name, name)}={cut(quoted(value), VIEWED_CHARS)}"
    if fields.get("state") not in (None, "text") and "state" not in view:
        yield str(fields["state"])


def changed_on_disk(ordinal: int, path: str) -> str:
    return f"[foredeck] @{ordinal} {named(path)} changed on disk: the copy above is old."


def overwritten_on_disk(ordinal: int, path: str, version: int) -> str:
    """Saved from outside during the agent's write; `version`: what it held."""
    return (
        f"[foredeck] Something else saved @{ordinal} {named(path)} right before your write: "
        f'activate "@{ordinal} v{version}" shows that.'
    )


def deleted_on_disk(ordinal: int, path: str) -> str:
    return f"[foredeck] @{ordinal} {named(path)} was deleted on disk."


def moved_on_disk(ordinal: int, new: int, path: str, *, outdated: bool = False) -> str:
    """A visible file that was renamed. `outdated`: the visible copy is older than the move."""
    notice = f"[foredeck] @{ordinal} moved to {named(path)}, which is @{new}"
    return f"{notice}: the copy above is old." if outdated else f"{notice}."
