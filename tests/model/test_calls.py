"""Call records: the stored form, which never changes, and the view by which it is read."""

from typing import Any

import pytest

from foredeck.model.call_values import (
    NO_PREDICTION,
    CachePrediction,
    CalledModel,
    CallStats,
    Decision,
    read_stored,
)
from foredeck.model.calls import NO_CHANGES, CallRecord

STORED: dict[str, Any] = {
    "id": "call:s:4",
    "type": "call",
    "session": "s",
    "ordinal": 4,
    "parent": "call:s:3",
    "shared": 7,
    "keys": [["e8", "aa"], [None, "bb"]],
    "tip": "t4",
    "ops": [
        [8, "reference", [{"text": "@3"}], 3, 1, None, "cc"],
        [5, "folded", [], None, None, None, None, [1, -1]],
    ],
    "changed_from": 6,
    "says": [[0, [{"purpose": "list_start"}]]],
    "omitted": [2],
    "system": None,
    "model": {
        **{"name": "p/m", "api": "x", "window": 1000, "read": 0.2, "write": 1.0},
        **{"guessed": True, "ttl_s": 300.0, "input_price": 3.0},
    },
    "time_ms": 17,
    "layout": "anchored",
    "policy": "keep-all",
    "decision": {
        **{"kind": "rebase", "reason": "pays", "changed_from": 5},
        **{"carrying_cost": 9, "rewrite_cost": 8, "reasoning_cost": 7, "factor": 0.5},
    },
    "sets": {"active+": [3], "pinned-": [1], "released+": [5]},
    "state": {"policy": {"seen": 1}, "cost": {"baseline": 2.5, "actual": 1.5}},
    "foldable": {"+": [[4, 0]], "-": [[2, 1]]},
    "stats": {
        **{"messages": 9, "chars_host": 900, "chars_sent": 500, "rate": 3.5, "reports": 2},
        **{"images": [1, 1334], "rebase_in": 6},
        **{"objects": 4, "active": 2, "pinned": 1, "folded": 3},
    },
    "cache": {
        **{"rule": "markers", "hit": 0, "read": 1, "written": 2, "fresh": 3, "marked": 5},
        **{"warmed_ms": 11, "reported": [3, 70, 20, 5]},
    },
    "acks": [[3, "applied"], [3, "rewritten", "messages"]],
}


def test_what_is_read_is_written_as_it_was_stored() -> None:
    record = CallRecord(STORED)
    assert record.model.to_record() == STORED["model"]
    assert record.decision.to_record() == STORED["decision"]
    assert record.sets.to_record() == STORED["sets"]
    assert record.cost.to_record() == STORED["state"]["cost"]
    assert record.foldable.to_record() == STORED["foldable"]
    assert record.stats.to_record() == STORED["stats"]
    assert record.cache.to_record() == STORED["cache"]
    assert [row.to_row() for row in record.ops] == STORED["ops"]
    assert [ack.to_row() for ack in record.acks] == STORED["acks"]


@pytest.mark.parametrize(
    "decision",
    [
        {"kind": "append"},
        {"kind": "host", "reason": "away", "edited": 0},
        {"kind": "rebase", "reason": "window", "changed_from": 0, "compaction": ""},
        {
            "kind": "rebase",
            "reason": "look-back",
            "changed_from": 3,
            "carrying_cost": 1,
            "rewrite_cost": 0,
        },
    ],
)
def test_a_decision_keeps_its_zeros(decision: dict[str, Any]) -> None:
    assert read_stored(Decision, decision).to_record() == decision


def test_what_a_record_leaves_out_has_a_default() -> None:
    record = CallRecord({"shared": 0, "keys": [], "ordinal": 1})
    assert (record.decision, record.stats, record.model) == (Decision(), CallStats(), CalledModel())
    assert record.sets == NO_CHANGES
    assert record.cache == NO_PREDICTION
    assert (record.ops, record.acks, record.says) == ([], [], {})
    assert CalledModel().to_record() == {}
    assert NO_PREDICTION.to_record() is None
    assert CachePrediction(rule="none", hit=-1, read=0, written=0, fresh=5).to_record() == {
        **{"rule": "none", "hit": -1, "read": 0, "written": 0, "fresh": 5}
    }
