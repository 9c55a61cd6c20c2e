"""Languages that put no spaces between words: any two letters that follow each other are found."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from foredeck.model.names import RUN, UNSPACED_MARKS, is_unspaced, joined, words_in
from foredeck.pruning import words_of
from foredeck.search.passages import passage
from search.sessions import Searched, Talk, searched

TEXTS = {
    "chinese": "昨天的部署失败了，因为缓存服务器没有重新启动",
    "mixed": "第3步 重启cache-node后12个任务恢复，日志在src/缓存/app.log",
    "japanese": "サーバーの設定ファイルが見つからないので、再起動しました",
    "korean": "캐시서버연결이 끊어졌습니다",
    "thai": "ไม่สามารถเชื่อมต่อเซิร์ฟเวอร์ได้",
    "lao": "ບໍ່ສາມາດເຊື່ອມຕໍ່",
    "khmer": "មិនអាចភ្ជាប់បាន",
    "burmese": "ချိတ်ဆက်၍မရပါ",
    "english": "The deployment failed because the cache server was not restarted",
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Searched]:
    with searched(tmp_path_factory.mktemp("home")) as made:
        for name, text in TEXTS.items():
            Talk(made.store, name).say(user=text)
        yield made


def pieces() -> list[tuple[str, str]]:
    """Every two and three letters that follow each other in a run, with the text's name."""
    return [
        (name, run[at : at + length])
        for name, text in TEXTS.items()
        for run in RUN.findall(text)
        if is_unspaced(run)
        for length in (2, 3)
        for at in range(len(run) - length + 1)
    ]


def test_any_letters_that_follow_each_other_are_found_first(stored: Searched) -> None:
    missed = [
        (name, piece)
        for name, piece in pieces()
        if piece not in TEXTS[next(map(session_of, stored.found(piece)), "english")]
    ]
    assert len(pieces()) > 250
    assert missed == []


def session_of(document: str) -> str:
    return document.split(":")[1]


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("启", "chinese"),
        ("动", "chinese"),  # the last letter of a run
        ("服务器 部署", "chinese"),
        ("重启cache-node后12个", "mixed"),
        ("cache-node", "mixed"),
        ("启cache", "mixed"),
        ("个任务", "mixed"),
        ("缓存/app.log", "mixed"),
        ("設定ファイル", "japanese"),
        ("ﾌｧｲﾙ", "japanese"),  # in half width
        (unicodedata.normalize("NFD", "サーバーの設定"), "japanese"),
        ("서버", "korean"),
        (unicodedata.normalize("NFD", "연결"), "korean"),
        ("เซิร์ฟเวอร์", "thai"),
        ('"重新启动"', "chinese"),
        ("重新启*", "chinese"),
    ],
)
def test_words_of_a_text_find_it(stored: Searched, query: str, name: str) -> None:
    assert session_of(stored.found(query)[0]) == name


def test_words_that_stand_apart_in_the_text_are_found_together(stored: Searched) -> None:
    found = stored.find("部署缓存服务器")
    assert session_of(found.hits[0].entry.document) == "chinese"
    # `署缓` is the end of a word and the beginning of the next, and nowhere.
    assert [term.text for term in found.searched] == ["部署", "缓存", "存服", "服务", "务器"]
    assert stored.found("鲸鱼") == []


def test_letters_rank_with_words(tmp_path: Path) -> None:
    with searched(tmp_path) as stored:
        talk = Talk(stored.store, "one")
        both = talk.say(user="codex 已经开始执行探索任务了")
        word = talk.say(user="codex has begun")
        letters = talk.say(user="他们开始执行别的计划")
        assert stored.found("codex 探索任务")[0] == both
        assert {*stored.found("codex 执行")} == {both, word, letters}
        assert stored.found("codex 执行")[0] == both


def test_what_was_found_is_marked(stored: Searched) -> None:
    def marked(query: str) -> str:
        return stored.find(query).hits[0].passage.marked()

    assert "没有«重新启动»" in marked("重新启动")
    assert "«缓存服务器»没有" in marked("部署缓存服务器")
    assert marked("重启cache").startswith("第3步 «重启cache»-node后12个")
    assert "の«設定ファイル»が" in marked("設定 ファイル")
    assert passage("说ＡＰＩ返回", ["api"], 100).marked() == "说«ＡＰＩ»返回"
    assert passage(unicodedata.normalize("NFD", "연결이"), ["연결"], 100).marked() == "«연결»이"


def test_words_of_a_text() -> None:
    assert words_in("重跑gen-itgc后 ＡＰＩ 断") == ["重跑", "gen", "itgc", "后", "api", "断"]
    assert words_in("断裂问题") == ["断裂", "裂问", "问题"]
    assert joined(["重", "跑", "gen", "itgc", "后", "清"]) == "重跑 gen itgc 后清"
    assert len(UNSPACED_MARKS) > 100


def test_of_a_pruned_text_only_pairs_of_letters_are_left() -> None:
    assert words_of("断裂问题 max_retries 断裂") == "max_retries 断裂 裂问 问题"
    assert words_of("เชื่อ") == "ชื ื่ เช ่อ"
