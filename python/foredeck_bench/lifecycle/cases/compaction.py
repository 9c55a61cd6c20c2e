"""Compaction: at the threshold, by the user, after a refusal."""

from __future__ import annotations

from foredeck_bench.lifecycle.case import Case, real

_BELOW = "tests/context/test_compacting.py::test_"
_FITTING = "tests/context/test_fitting.py::test_"


def _case(text: str, *tests: str, below: tuple[str, ...] = ()) -> Case:
    return Case("2", text, (*real(*tests), *below))


CASES = (
    _case(
        "threshold: never early on Pi's raw count",
        "compaction::at_the_threshold_what_can_be_folded_goes_before_chat_does",
        below=(
            f"{_BELOW}it_is_cancelled_while_there_is_room",
            f"{_BELOW}what_folds_counts_as_gone",
        ),
    ),
    _case(
        "threshold: never not at all",
        "compaction::at_the_threshold_chat_is_summed_up_without_a_model",
        below=(f"{_BELOW}the_hosts_count_holds_while_nothing_was_measured",),
    ),
    _case(
        "threshold: a summary that no model writes, bounded and deterministic",
        "compaction::at_the_threshold_chat_is_summed_up_without_a_model",
        below=(
            f"{_BELOW}a_summary_is_bounded",
            f"{_BELOW}the_same_messages_get_the_same_summary",
        ),
    ),
    _case(
        "/compact with instructions, written by the user's model",
        "compaction::the_users_own_compaction_is_written_by_the_model_and_can_be_activated",
    ),
    _case(
        "/compact without a model, by configuration",
        "compaction::by_configuration_the_users_compaction_needs_no_model",
    ),
    _case(
        "overflow in mid-turn: one retry with a smaller prompt",
        "compaction::a_prompt_that_is_refused_as_too_long_is_tried_once_more_and_smaller",
        "compaction::a_result_that_makes_the_prompt_too_long_is_tried_once_more_in_its_turn",
    ),
    _case(
        "overflow once more: Pi's own way, and the session goes on",
        "compaction::a_prompt_that_is_refused_again_is_left_to_pi",
    ),
    _case(
        "without the engine: Pi's own way",
        "compaction::without_the_engine_pi_compacts_in_its_own_way",
    ),
    _case(
        "old chat is an object: activated, and by a range of turns",
        "sessions::after_compaction_everything_can_be_activated",
        below=(f"{_FITTING}turns_that_were_put_away_can_be_had_word_for_word",),
    ),
    _case(
        "each compaction is a record: range, ids, summary, who asked",
        "compaction::at_the_threshold_chat_is_summed_up_without_a_model",
        below=(f"{_FITTING}what_a_compaction_is_of_is_recorded",),
    ),
    _case(
        "time marks where work paused for more than half an hour",
        "compaction::a_summary_tells_when_work_stood_still",
        below=(
            f"{_BELOW}a_summary_in_full",
            f"{_BELOW}a_pause_of_more_than_half_an_hour_is_marked",
        ),
    ),
    _case(
        "resume after a compaction sends the same bytes",
        "sessions::a_resumed_session_after_compaction_sends_the_same_bytes",
    ),
)
