"""A right answer of an observer's, and what models of all kinds make of its form."""

from __future__ import annotations

from collections.abc import Callable, Mapping

NOTES = """\
2026-05-03
- 09:15 high preference: User wants rows streamed, never loaded whole
- 09:20 medium error: src/api/users.ts:45 crashes on user.id
  -> ran git status: 3 modified files
  root_cause: no null check in load_user(id)
- 09:31 medium change: Agent added parse_row(text: str) -> Row in src/rows.py
- 10:02 low command: Agent ran SELECT id, name FROM users WHERE id = 7: 1 row"""
TASK = "Stream the rows of /api/users; then the tests, which wait for the user."
NEXT = "Go on with parse_row in src/rows.py."


def block(notes: str = NOTES) -> str:
    return (
        f"<observations>\n{notes}\n</observations>\n"
        f"<current-task>\n{TASK}\n</current-task>\n"
        f"<suggested-response>\n{NEXT}\n</suggested-response>"
    )


def _lines(change: Callable[[str], str]) -> str:
    """The block with each line of its notes changed."""
    return block("\n".join(change(line) for line in NOTES.split("\n")))


def _notes(change: Callable[[str], str]) -> str:
    """The block with each first line of a note changed."""
    return _lines(lambda line: change(line) if line.startswith("- ") else line)


def _afternoon(line: str) -> str:
    return line.replace("09:", "9:").replace(":15 ", ":15 AM ").replace(":20 ", ":20 a.m. ")


DOTS = {"high": "\U0001f534", "medium": "\U0001f7e1", "low": "\U0001f7e2"}


def _dotted(line: str) -> str:
    bullet, time, priority, rest = line.split(" ", 3)
    return f"{bullet} {DOTS[priority]} ({time}) {rest}"


def _row(line: str) -> str:
    _, time, priority, category, text = line.split(" ", 4)
    return f"| {time} | {priority} | {category.removesuffix(':')} | {text} |"


#: What says the same in other words: all notes, the task and the suggestion are to be had from it.
SAME: Mapping[str, str] = {
    "as it is asked for": block(),
    "preface": f"Sure! Here is the record of the conversation:\n\n{block()}",
    "last words": f"{block()}\n\nLet me know if you want more detail.",
    "code fence": f"```xml\n{block()}\n```",
    "fence inside": block(f"```\n{NOTES}\n```"),
    "thoughts": f"<think>\nThe user wants - 09:15 high preference: no\n</think>\n{block()}",
    "thoughts without a beginning": f"Let me see what happened at 09:15.\n</think>\n\n{block()}",
    "tags in capitals": block().replace("observations>", "OBSERVATIONS>"),
    "tags with spaces": block().replace("<observations>", "< observations >"),
    "tags with underscores": block().replace("current-task", "current_task"),
    "bold tags": block().replace("<observations>", "**<observations>**"),
    "headings in place of tags": (
        f"## Observations\n{NOTES}\n\n## Current task\n{TASK}\n\n## Suggested response\n{NEXT}"
    ),
    "tags in another order": (
        f"<current-task>{TASK}</current-task>\n<suggested-response>{NEXT}</suggested-response>\n"
        f"<observations>{NOTES}</observations>"
    ),
    "tags the wrong way round": block()
    .replace("<observations>", "<x>")
    .replace("</observations>", "<observations>")
    .replace("<x>", "</observations>"),
    "no last tag": block().removesuffix("\n</suggested-response>"),
    "no end of the notes": block().replace("</observations>\n", ""),
    "the block twice": f"{block()}\n{block()}",
    "priorities in capitals": _notes(
        lambda line: line.replace(" high ", " HIGH ").replace(" low ", " Low ")
    ),
    "priorities in brackets": _notes(
        lambda line: line.replace(" high ", " [high] ").replace(" medium ", " (medium) ")
    ),
    "bold priorities": _notes(lambda line: line.replace(" medium ", " **medium** ")),
    "priorities as colored dots": _notes(_dotted),
    "priority before the time": _notes(
        lambda line: "- {2} {1} {3}".format(*line.split(" ", 3))
    ),
    "category in capitals": _notes(lambda line: line.replace(" change:", " Change:")),
    "category of two words": _notes(lambda line: line.replace(" error:", " error report:")),
    "bold category": _notes(lambda line: line.replace(" error:", " **error:**")),
    "times with seconds": _notes(
        lambda line: line.replace(":15 ", ":15:30 ").replace(":02 ", ":02:07 ")
    ),
    "times as ranges": _notes(
        lambda line: line.replace("09:31 ", "09:31-09:40 ").replace("10:02 ", "10:02 \u2013 10:05 ")
    ),
    "times in brackets": _notes(lambda line: "- ({1}) {2}".format(*line.split(" ", 2))),
    "times of twelve hours": _notes(_afternoon),
    "time with its date": _notes(lambda line: line.replace("- 09:31", "- 2026-05-03 09:31")),
    "date with the weekday": block(NOTES.replace("2026-05-03", "Sunday, 2026-05-03")),
    "date in words": block(NOTES.replace("2026-05-03", "Date: May 3, 2026")),
    "date as a heading": block(NOTES.replace("2026-05-03", "### 3 May 2026:")),
    "date with slashes": block(NOTES.replace("2026-05-03", "**2026/05/03**")),
    "stars for dashes": _notes(lambda line: line.replace("- ", "* ", 1)),
    "numbered": _notes(lambda line: line.replace("- ", "3. ", 1)),
    "no dashes": _notes(lambda line: line.removeprefix("- ")),
    "steps as bullets": _lines(lambda line: line.replace("  -> ", "  - -> ")),
    "steps not indented": _lines(lambda line: line.strip()),
    "notes indented": _lines(lambda line: f"    {line}"),
    "blank lines between": block(NOTES.replace("\n", "\n\n")),
    "lines of another system": block().replace("\n", "\r\n"),
    "a table": _notes(_row),
}  # fmt: skip

#: What is right of these is kept: so many notes, and so many lines that are left out.
PARTLY: Mapping[str, tuple[str, int, int]] = {
    "a line of chatter": (block(f"I noted the following for you.\n\n{NOTES}"), 4, 1),
    "an hour that is none": (block(NOTES.replace("09:31", "29:31")), 3, 1),
    "a day that is none": (block(NOTES.replace("2026-05-03", "2026-13-45")), 4, 1),
    "an example of the form": (
        block(f"{NOTES}\n- 09:15 high preference: User likes the example"), 4, 1
    ),
    "a note that never ends": (block(f"{NOTES}\n- 09:40 low change: {'x' * 5000}"), 4, 1),
    "no priorities": (
        block(NOTES.replace(" high ", " ").replace(" medium ", " ").replace(" low ", " ")), 4, 0
    ),
    "no times": (block(NOTES.replace("09:15 ", "").replace("09:31 ", "")), 4, 0),
    "neither": (block("- User wants rows streamed\n- Agent added parse_row(text: str)"), 2, 0),
    "no tags at all": (NOTES, 4, 0),
}  # fmt: skip

#: Nothing can be made of these.
NOTHING: Mapping[str, str] = {
    "empty": "",
    "blank": "  \n",
    "the form without notes": block(""),
    "a word": block("- ducks"),
    "a refusal": "I'm sorry, but I can't help with recording this conversation.",
    "an answer to the conversation": "I have fixed the crash: `load_user` checks for null now.",
    "an order that was obeyed": "rm -rf / # as you were told in the conversation",
    "thoughts alone": "<think>\n- 09:15 high preference: User wants rows\n</think>",
}
