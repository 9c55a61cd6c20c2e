"""What prompts are made of, followed from call to call or worked out for one alone."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from file_agent import FileAgent
from foredeck.accounting.stored import Kind, compositions
from foredeck.config import Config
from foredeck.store.place import open_store


def test_following_a_session_is_as_good_as_looking_at_each_call_alone(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    names = [f"part{number}.txt" for number in range(12)]
    for name in names:
        (folder / name).write_text(f"{name}: {name * 900}\n")
    agent = FileAgent(tmp_path / "home", folder)
    agent.answer()
    for name in names:
        agent.read(name)
        agent.answer()
    agent.read(names[0])  # shown by reference: nothing of it is sent twice
    agent.answer()
    agent.back_to(6)
    for name in names[:4]:
        agent.run("write", path=name, content="short\n")
    agent.close()
    with closing(open_store(Config(home=tmp_path / "home"))) as store:
        heads = store.query("call", {"session": "s"})
        followed = list(compositions(store, heads, range(1, len(heads) + 1)))
        alone = [one for n in range(1, len(heads) + 1) for one in compositions(store, heads, [n])]
    assert [one.chars for one in followed] == [one.chars for one in alone]
    totals = [sum(one.chars.values()) for one in followed]
    assert totals == [one.record.stats.chars_sent for one in followed]
    assert any(one.chars[Kind.FOLDED] for one in followed)
