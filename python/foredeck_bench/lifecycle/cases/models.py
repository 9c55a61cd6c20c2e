"""Switches of model and provider, and windows of every size."""

from __future__ import annotations

from foredeck_bench.lifecycle.case import Case, real

_FITTING = "tests/context/test_fitting.py::test_"


def _case(text: str, *tests: str, below: tuple[str, ...] = ()) -> Case:
    return Case("3", text, (*real(*tests), *(_FITTING + name for name in below)))


CASES = (
    _case(
        "another model, window, wire and price in mid-session; images refused there",
        "models::every_prompt_fits_the_model_that_gets_it",
    ),
    _case(
        "thinking that is bound to the bytes before it",
        "rendering::signed_thinking_keeps_its_prefix_inside_a_turn",
        "rendering::redacted_thinking_passes_as_it_is",
        below=("sealed_reasoning_of_the_turn_is_bound_no_more",),
    ),
    _case(
        "ids of another shape, over chat completions",
        "models::every_prompt_fits_the_model_that_gets_it",
        "rendering::long_sessions_over_chat_completions_stay_valid",
    ),
    _case(
        "windows from 8k to 1M: always a valid prompt inside",
        "models::every_prompt_fits_the_model_that_gets_it",
        below=("every_prompt_fits_whatever_was_said_and_whichever_model",),
    ),
    _case(
        "the newest user message and the calls in flight are never dropped",
        "compaction::a_result_that_makes_the_prompt_too_long_is_tried_once_more_in_its_turn",
        below=("the_question_stays_while_its_turn_outgrows_the_window",),
    ),
    _case(
        "one message that alone exceeds the window",
        "models::a_question_larger_than_the_window_goes_out_shortened",
        below=("a_result_in_flight_larger_than_the_window_is_cut",),
    ),
)
