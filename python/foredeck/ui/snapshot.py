"""A session's page as one file that needs nothing else: to be kept, and to be shown around."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

from markupsafe import Markup

from foredeck.accounting.composition import Composition, Kind, compositions
from foredeck.accounting.report import SessionReport
from foredeck.model.calls import in_order
from foredeck.store.protocol import Store
from foredeck.ui.charts import bars, outline
from foredeck.ui.pages import environment
from foredeck.ui.views.session import PER_PAGE, branch_rows, call_rows
from foredeck.ui.views.session_head import described, found_session

STATIC = Path(__file__).parent / "static"


def snapshot(
    store: Store,
    report: SessionReport,
    redact: Callable[[Any], Any],
    *,
    diff_lines: int | None = None,
) -> str:
    """The page of a session that has made calls, with what `report` says of it, as HTML.

    `redact` gets every text that is shown, within lists and dicts; without `diff_lines`, the most
    lines of a difference, nothing is said to have been left out. Raises `Missing` or `Corrupt`
    where something stored is gone or altered.
    """
    session, head = found_session(store, report.session)
    heads = store.query("call", {"session": session})
    records = in_order(head.fields for head in heads)
    made = list(compositions(store, heads, {record.ordinal for record in records}))
    said = {
        **report.to_json(),
        **described(store, session, head, records),
        # Of a session that was replayed, the store has not how its provider counts.
        "figure": report.figure.to_json(),
        "branches": branch_rows(store, session, heads),
    }
    said = redact(said)
    rows = redact(call_rows(store, made))
    return _rendered(
        {
            **said,
            "files": [_shortened(changed, diff_lines) for changed in said["files"]],
            "full": diff_lines is None,
            "kinds": [str(kind) for kind in Kind],
            "outline": outline(records, 0, PER_PAGE, lambda call: f"#part-{call}"),
            "parts": [
                _part(made[at : at + PER_PAGE], rows[at : at + PER_PAGE])
                for at in range(0, len(made), PER_PAGE)
            ],
        }
    )


def _shortened(changed: dict[str, Any], most: int | None) -> dict[str, Any]:
    # Masked as a whole before: a key may stand on several lines.
    lines = changed["diff"].split("\n")
    shown = lines[:most]
    return {**changed, "lines": shown, "more": len(lines) - len(shown)}


def _part(made: list[Composition], rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "first": made[0].record.ordinal,
        "last": made[-1].record.ordinal,
        "calls": rows,
        "chart": bars(made, lambda call: f"#call-{call}"),
    }


def _rendered(data: dict[str, Any]) -> str:
    style, script = (_own_file(name) for name in ("style.css", "snapshot.js"))
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        environment()
        .get_template("snapshot.html")
        .render(policy=policy, style=style, script=script, page=data, **data)
    )


def _own_file(name: str) -> Markup:
    return Markup((STATIC / name).read_text(encoding="utf-8"))  # ours, and nothing stored in it


def _hash(text: str) -> str:
    """What a content policy allows a text by."""
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
