"""Other extensions, and tools that are not Pi's four."""

from __future__ import annotations

from foredeck_bench.lifecycle.case import Case, real


def _case(text: str, *tests: str) -> Case:
    return Case("6", text, real(*tests))


CASES = (
    _case(
        "pi-subagents, pi-mcp-adapter, pi-web-access and pi-aliases, loaded before us and after",
        "npm_extensions::their_tools_and_ours_work_in_one_session",
        "npm_extensions::a_session_that_another_command_begins_is_taken_up",
    ),
    _case(
        "drops tool results, calls or messages; shortens; throws; unknown roles",
        "extensions::another_extension_leaves_prompts_valid_and_data_whole",
        "extensions::a_lost_result_is_said_to_be_lost",
        "extensions::a_history_that_another_extension_rewrites_loses_nothing",
    ),
    _case(
        "inserts and takes back a nudge before the last user message",
        "extensions::a_nudge_that_comes_and_goes_is_recorded_as_it_was_sent",
    ),
    _case(
        "cancels compaction, or writes it itself",
        "neighbours::another_extension_owns_compaction",
    ),
    _case("replaces read", "extensions::a_read_of_another_extension_is_shown_as_it_gave_it"),
    _case("replaces bash", "neighbours::a_bash_of_another_extension_is_kept_as_it_gave_it"),
    _case(
        "blocks tools and changes results",
        "extensions::blocked_tools_and_changed_results_are_taken_as_they_are",
    ),
    _case(
        "rewrites the request in before_provider_request",
        "neighbours::a_request_that_another_extension_rewrites_goes_out_as_it_left_it",
        "neighbours::who_rewrites_what_was_sent_before_is_told_of_once",
        "neighbours::who_puts_another_request_in_the_stead_of_ours_shows_in_what_the_provider_counts",
    ),
    _case(
        "custom messages", "rendering::custom_messages_of_another_extension_pass_and_are_kept_whole"
    ),
    _case("foredeck loaded twice", "install::of_two_copies_the_second_stands_back"),
    _case("Pi's own grep, find and ls", "neighbours::searching_tools_list_and_leave_content_alone"),
    _case(
        "code mode's nested calls (1.x)", "neighbours::nested_calls_of_code_mode_change_no_script"
    ),
    _case("MCP tools", "npm_extensions::their_tools_and_ours_work_in_one_session"),
    _case("bash run by the user with !", "rendering::what_the_user_ran_is_in_the_prompt"),
)
