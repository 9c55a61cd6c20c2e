"""Branches and copies of sessions, host edits, session files from elsewhere."""

from __future__ import annotations

from foredeck_bench.lifecycle.case import Case, real

_BRANCHES = "tests/context/test_branches.py::test_"


def _case(text: str, *tests: str, below: tuple[str, ...] = ()) -> Case:
    return Case("1", text, (*real(*tests), *(_BRANCHES + name for name in below)))


CASES = (
    _case(
        "/tree: going back gives the prompt that stood there, coming back finds the old bytes",
        "sessions::the_tree_brings_back_each_branch_as_it_was",
        below=("going_back_and_forth_gives_the_prompts_that_stood_there",),
    ),
    _case(
        "/tree: sets belong to the branch, handles to the session",
        "sessions::the_tree_brings_back_each_branch_as_it_was",
        below=("sets_belong_to_the_branch", "a_file_read_on_two_branches_is_one_object"),
    ),
    _case(
        "/tree: abandoned branches stay in history and can be shown",
        "branches::an_abandoned_branch_is_listed_and_shown",
    ),
    _case("fork, over RPC", "sessions::a_fork_inherits_handles_and_bytes"),
    _case(
        "fork, clone, new and switch over RPC, where session_start comes twice",
        "replaced::sessions_replaced_over_rpc_are_each_opened_once",
    ),
    _case("new and switch keep apart", "sessions::new_and_switched_sessions_keep_apart"),
    _case("reload, over RPC", "replaced::a_reload_leaves_bytes_sets_and_one_engine"),
    _case(
        "/tree, /fork, /clone, /reload, /foredeck, /new and quit at the terminal",
        "interactive::branches_and_copies_at_the_terminal",
    ),
    _case("/compact at the terminal", "interactive::compaction_at_the_terminal"),
    _case(
        "resume in a new process sends the same bytes",
        "sessions::continue_in_a_new_process_sends_the_same_bytes",
    ),
    _case("no session file", "sessions::without_a_session_file_nothing_is_lost"),
    _case(
        "context_edit of Pi's own after a retry",
        "rendering::a_reply_cut_off_by_the_network_is_tried_again",
        below=("a_failed_answer_that_the_host_leaves_out_later_changes_nothing",),
    ),
    _case(
        "context_edit of another extension: replaced and hidden entries, the original stays",
        "edited::entries_replaced_and_hidden_by_another_extension",
        below=("an_edited_result_is_shown_as_edited",),
    ),
    _case(
        "session file that is cut off", "adopted::a_file_that_is_cut_off_goes_on_with_what_is_left"
    ),
    _case("session file of an older Pi", "adopted::a_file_of_an_older_pi_is_taken_in"),
    _case(
        "session file of another machine, with other paths",
        "adopted::a_file_of_another_machine_is_taken_in",
    ),
    _case(
        "begun without foredeck: indexed with a word, sent as it was while that is cached",
        "adopted::a_history_is_taken_in_with_a_word_and_sent_as_it_was",
        "sessions::a_session_from_before_foredeck_goes_on_with_it",
    ),
    _case(
        "foredeck removed in mid-session, also after a summary of its own",
        "adopted::foredeck_removed_in_the_middle_leaves_plain_pi",
        "compaction::by_configuration_the_users_compaction_needs_no_model",
    ),
    _case(
        "foredeck removed, and back again",
        "sessions::a_session_goes_on_without_foredeck_and_with_it_again",
    ),
)
