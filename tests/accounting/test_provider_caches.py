"""What each provider's cache holds: ideal, by markers, and in steps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from foredeck.accounting.cache import (
    CACHES,
    BreakpointCache,
    Cache,
    IdealCache,
    MarkedCache,
    PromptMaker,
    Shape,
    Shapes,
    SteppedCache,
    wire_blocks,
)
from foredeck.cli.main import main
from foredeck.errors import ConfigError
from foredeck_lab.replay.options import load_cost

HEAD = 2000.0


def shape(name: str, *, asks: bool = True, blocks: int = 1, tokens: int = 500) -> Shape:
    answers = name if asks else ""
    role = "toolResult" if asks else "assistant"
    return Shape(name.encode(), tokens, (), blocks, role, answers)


def ask(cache: Cache, names: str, seconds: int, *, mark: str = "", blocks: int = 1) -> float:
    """What a request of these messages reads; capitals are the assistant's."""
    shapes = [shape(name, asks=name.islower(), blocks=blocks) for name in names]
    return cache.request(PromptMaker(1.0).make("m", shapes, HEAD, mark), seconds * 1000).read


def test_an_ideal_cache_reads_the_longest_prefix_that_is_alive() -> None:
    cache = IdealCache(300)
    assert ask(cache, "aBc", 0) == 0
    assert ask(cache, "aBcDe", 100) == HEAD + 1500
    assert ask(cache, "aBxDe", 200) == HEAD + 1000
    assert ask(cache, "aBcDe", 500) == HEAD + 1000


def test_markers_leave_entries_at_the_ends_of_requests_only() -> None:
    cache = MarkedCache(300)
    assert ask(cache, "aBc", 0) == 0
    assert ask(cache, "aBcDe", 1) == HEAD + 1500
    assert ask(cache, "aBcXy", 2) == HEAD + 1500
    assert ask(cache, "aBx", 3) == HEAD, "no marker ever stood behind B"


def test_a_marker_looks_back_over_twenty_blocks_and_no_further() -> None:
    cache = MarkedCache(300)
    ask(cache, "aBc", 0, blocks=9)
    assert ask(cache, "aBcDe", 1, blocks=9) == HEAD + 1500
    assert ask(cache, "aBcDeFgHi", 2, blocks=5) == HEAD, "30 blocks behind"
    near = MarkedCache(300)
    ask(near, "a", 0, blocks=19)
    assert ask(near, "aB" + "c", 1, blocks=10) == HEAD
    assert ask(near, "aB" + "c", 1, blocks=9) == HEAD + 1500


def test_one_more_marker_finds_what_is_too_far_behind() -> None:
    cache = MarkedCache(300)
    ask(cache, "aBc", 0, blocks=9)
    assert ask(cache, "aBcDeFgHi", 1, blocks=9, mark="c") == HEAD + 1500


def test_an_entry_lives_on_from_its_last_use_and_no_other_does() -> None:
    cache = MarkedCache(300)
    ask(cache, "aBc", 0)
    assert ask(cache, "aBcDe", 200) == HEAD + 1500
    assert ask(cache, "aBcDeFg", 450) == HEAD + 2500
    assert ask(cache, "aBcXy", 480) == HEAD + 1500, "read at 200"
    assert ask(cache, "aBcYy", 700) == HEAD + 1500, "read at 480"
    assert ask(cache, "aBcZy", 1010) == 0


def test_a_short_prompt_is_not_kept() -> None:
    for cache in (MarkedCache(300), SteppedCache(300)):
        for _ in range(2):
            prompt = PromptMaker(1.0).make("m", [shape("a")], 500, "")
            assert cache.request(prompt, 0).read == 0


def test_openai_reads_in_whole_steps() -> None:
    cache = SteppedCache(300)
    ask(cache, "aBc", 0)
    assert ask(cache, "aBcDe", 1) == 3456 == (HEAD + 1500) // 128 * 128


def test_breakpoints_find_an_earlier_prompt_whole_and_not_too_far_behind() -> None:
    cache = BreakpointCache(1800)
    ask(cache, "aBc", 0)
    assert ask(cache, "aBcDe", 1000) == HEAD + 1500
    assert ask(cache, "aBcDx", 2000) == HEAD + 1500, "read at 1000"
    assert ask(cache, "aBx", 2001) == 0, "no prompt ended behind B"
    assert ask(cache, "aBc" + "d" * 79, 2002) == HEAD + 1500
    assert ask(cache, "aBcDe" + "f" * 80, 2003) == 0


@pytest.mark.parametrize("name", CACHES)
def test_what_is_read_and_written_is_never_more_than_the_prompt(name: str) -> None:
    cache = CACHES[name](300)
    for number, names in enumerate(("a", "aB", "aBc", "aBxDe", "aBcDe")):
        shapes = [shape(letter, asks=letter.islower()) for letter in names]
        prompt = PromptMaker(1.0).make("m", shapes, HEAD, "c")
        hit = cache.request(prompt, number)
        assert 0 <= hit.read <= prompt.tokens
        assert hit.read + hit.written <= prompt.tokens


def test_messages_are_counted_in_blocks_of_the_request() -> None:
    result = {"role": "toolResult", "toolCallId": "t1", "content": [{"type": "text"}] * 3}
    said = [{"type": "thinking", "thinking": ""}, {"type": "text", "text": "x"}]
    assert wire_blocks(result) == 1
    assert wire_blocks({"role": "assistant", "content": [*said, {"type": "toolCall"}]}) == 2
    assert wire_blocks({"role": "user", "content": "words"}) == 1
    shapes = Shapes().of([result, {"role": "assistant", "content": said}])
    assert [(s.asks, s.answers) for s in shapes] == [(True, "t1"), (False, "")]


def test_prices_come_by_model_or_from_a_file(tmp_path: Path) -> None:
    assert load_cost("openai/gpt-5.1")["cacheRead"] == 0.125
    file = tmp_path / "prices.json"
    given = {"input": 2, "cacheRead": 1, "cacheWrite": 3}
    file.write_text(json.dumps({"cost": given}))
    assert load_cost(str(file)) == given
    file.write_text("{}")
    with pytest.raises(ConfigError, match="has no prices"):
        load_cost(str(file))


def test_an_unknown_model_is_told_before_anything_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text('{"type": "session", "id": "s1", "cwd": "/repo"}\n')
    assert main(["replay", str(file), "--prices", "cheap"]) == 2
    assert "neither a file nor a model with a known price" in capsys.readouterr().err
