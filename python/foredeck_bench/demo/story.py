"""What the scripted model does in the demo: it fixes a bug, and touches on the way what foredeck
does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from foredeck_bench.demo.table import WIDTH
from foredeck_bench.twin.script import ModelRequest, Script, StepResult, Text, ToolCall
from foredeck_bench.twin.server import ScriptedModel

FIRST_RUN = "@4"
"""Handle of the output that the model brings back at the end."""

PRICING = "stocktake/pricing.py"
PRICING_TESTS = "tests/test_pricing.py"
TESTS = "python3 -m unittest"


@dataclass(frozen=True, slots=True)
class Turn:
    """What the user says, and the model's replies. `later`: an hour after the turn before."""

    prompt: str
    replies: tuple[StepResult, ...]
    later: bool = False


def story() -> list[Turn]:
    """The turns of the demo, in order."""
    return [_mend(), _look_around(), _test(), _bring_back(), _finish()]


def _mend() -> Turn:
    edit = {"oldText": "if quantity > tier.quantity:", "newText": "if quantity >= tier.quantity:"}
    return Turn(
        "The tests fail. Find out why, and mend it.",
        (
            _bash(TESTS),
            [_read(PRICING_TESTS), _read(PRICING)],
            _bash("grep -rn 'tier' --include='*.py' ."),
            _read(PRICING),
            ToolCall("edit", {"path": PRICING, "edits": [edit]}),
            _read(PRICING),
            _bash(TESTS),
            Text("A tier now begins at its own quantity, not one piece later. All tests pass."),
        ),
    )


def _look_around() -> Turn:
    return Turn(
        "Is the same mistake made anywhere else? Read the other modules.",
        (
            _read("stocktake/ledger.py"),
            [_read("stocktake/models.py"), _read("stocktake/valuation.py")],
            _bash("grep -rnE '[<>]=?' --include='*.py' stocktake"),
            _read("stocktake/report.py"),
            _read("stocktake/parsing.py"),
            _read("stocktake/cli.py"),
            [_read("tests/test_ledger.py"), _read("tests/test_valuation.py")],
            _read("stocktake/ledger.py"),
            Text("No: every other comparison means what its docstring says."),
        ),
    )


def _test() -> Turn:
    anchor = "    def test_beyond_the_last_tier(self):\n"
    new = (
        "    def test_one_piece_before_a_tier(self):\n"
        '        self.assertEqual(self.price(999), "0.15")\n\n'
    )
    edit = {"oldText": anchor, "newText": new + anchor}
    return Turn(
        "Back from lunch. Add a test for the last piece before a tier begins.",
        (
            _bash("grep -n 'def test' tests/test_pricing.py"),
            ToolCall("edit", {"path": PRICING_TESTS, "edits": [edit]}),
            _bash(f"{TESTS} -v tests.test_pricing"),
            _bash("git diff --stat"),
            Text("test_one_piece_before_a_tier passes: 999 bolts still cost 0.15 each."),
        ),
        later=True,
    )


def _bring_back() -> Turn:
    return Turn(
        "Which tests failed at first? And keep the pricing module at hand.",
        (
            ToolCall("activate", {"id": FIRST_RUN}),
            ToolCall("pin", {"id": PRICING}),
            _bash("python3 -m stocktake valuation data/movements.csv"),
            _bash("python3 -m stocktake balance data/movements.csv"),
            Text(
                "test_a_tier_begins_at_its_own_quantity and test_a_quote_takes_the_best_discount."
            ),
        ),
        later=True,
    )


def _finish() -> Turn:
    note = "# Changes\n\n- A price tier begins at its own quantity, no longer one piece later.\n"
    return Turn(
        "Write it down in CHANGES.md, and run the tests a last time.",
        (
            ToolCall("write", {"path": "CHANGES.md", "content": note}),
            _bash("git status --short"),
            _bash(TESTS),
            Text("Done: CHANGES.md is written and all tests pass."),
        ),
    )


def _read(path: str) -> ToolCall:
    return ToolCall("read", {"path": path})


def _bash(command: str) -> ToolCall:
    return ToolCall("bash", {"command": command})


PLAN = ("Mend the price tiers", "Write a changelog entry for the tiers")
SUMMARY = "A tier begins at its own quantity: >= in best_tier of stocktake/pricing.py."
PROMPT = "Customers still complain about the price tiers. What is left to do there?"

_NAME = re.compile(r"\bt-[0-9a-z]+")


def plan() -> Iterator[str]:
    """What the user types before the first session: two tasks."""
    return (f"/tasks new {title}" for title in PLAN)


def conclude(notices: list[str]) -> str:
    notice = next(text for text in notices if PLAN[0] in text)
    return f"/tasks close {_NAME.findall(notice)[0]} {SUMMARY}"


def second_script() -> Script:
    """What the scripted model does in the second session."""
    return [
        [
            ToolCall("memory-search", {"query": "price tier quantity", "limit": 2}),
            ToolCall("task-query", {"action": "list", "status": "closed"}),
        ],
        _claim_again,
        ToolCall("task-query", {"action": "ready"}),
        ToolCall("bash", {"command": f"{TESTS} --fast"}),
        ToolCall("bash", {"command": TESTS}),
        ToolCall("bash", {"command": f"{TESTS} --fast tests.test_pricing"}),
        Text("The tiers are mended already; only the changelog entry is left."),
    ]


def _claim_again(request: ModelRequest) -> ToolCall:
    """A model without memory would begin the finished task."""
    *_, listed = request.results.values()
    return ToolCall("task-mutate", {"action": "claim", "id": _NAME.findall(listed)[0]})


def told(model: ScriptedModel) -> Iterator[str]:
    """What foredeck said to the model by itself."""
    bodies = [recorded.request for recorded in model.requests if not recorded.side]
    before = bodies[0].body["messages"][0]["content"][0]["text"]
    yield from before.split("\n") if before.startswith("[foredeck]") else ()
    for result in bodies[-1].results.values():
        yield from (line for line in result.split("\n") if line.startswith("[foredeck] worked"))


def narrate(event: Mapping[str, Any], lines: int = 0) -> None:
    """Prints what a tool was asked, with the first lines of its answer, and what users are told."""
    if event.get("type") == "tool_execution_start":
        arguments = (value for value in (event.get("args") or {}).values())
        words = [str(value) for value in arguments if not isinstance(value, list)]
        print(f"    {event.get('toolName')} {' '.join(words)}"[:WIDTH], flush=True)
    elif event.get("type") == "tool_execution_end":
        for line in _text(event).split("\n")[:lines]:
            print(f"        {line}"[:WIDTH])
    elif event.get("method") == "notify":
        print(f"    ({event.get('message')})"[:WIDTH], flush=True)


def _text(event: Mapping[str, Any]) -> str:
    blocks = (event.get("result") or {}).get("content") or ()
    return "\n".join(str(block.get("text") or "") for block in blocks)
