"""What the scripted model does in the demo: it fixes a bug in the sample repository.

The story touches what foredeck does: outputs of every kind, a file read again before and after
an edit, pauses in which the provider's cache expires, an old output brought back, a file pinned.
"""

from __future__ import annotations

from dataclasses import dataclass

from foredeck_bench.scripted import Text, ToolCall
from foredeck_bench.twin.steps import StepResult

FIRST_RUN = "@4"
"""Handle of the output that the model brings back at the end."""

PRICING = "stocktake/pricing.py"
PRICING_TESTS = "tests/test_pricing.py"
TESTS = "python3 -m unittest"


@dataclass(frozen=True, slots=True)
class Turn:
    """What the user says, and the model's replies to it, one per model call. `later`: they say it
    an hour after the turn before."""

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
    told = "    def test_beyond_the_last_tier(self):\n"
    new = (
        "    def test_one_piece_before_a_tier(self):\n"
        '        self.assertEqual(self.price(999), "0.15")\n\n'
    )
    edit = {"oldText": told, "newText": new + told}
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
