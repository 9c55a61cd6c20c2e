"""Words, queries and passages, apart from any database."""

from __future__ import annotations

import pytest

from foredeck.search.passages import passage
from foredeck.search.query import Period, parse_query, periods_in


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        (
            'fix maxRetries in net/io.py "two words" pre*',
            "fix|maxretries|max|retries|net io py|net|two words|pre*",
        ),
        ("What didn't Ann's dog see?", "ann|dog|see"),
        ("What is it?", "what|is|it"),
        ('"to be"', "to be"),
        ("k8s S3 i18n x86_64", "k8s|s3|i18n|x86 64|x86"),
        ("getDb e-mail readIOS17 9", "getdb|get|e mail|mail|readios17|read|ios|9"),
        ("S3桶 重启gen-go", "s3 桶|s3|重启 gen go|重启|gen go|gen"),
    ],
)
def test_terms_of_a_query(query: str, terms: str) -> None:
    assert [term.text for term in parse_query(query)] == terms.split("|")


def test_periods_of_a_query() -> None:
    assert list(periods_in("May I see what May 2023 or july brought?")) == [
        Period(month=5),
        Period(month=7),
        Period(year=2023),
    ]
    assert list(periods_in("may it be in version 20231")) == []


def test_a_passage_is_where_the_words_stand_together() -> None:
    text = "apple " + "x " * 500 + "an apple and pears fell" + " y" * 500
    found = passage(text, ["apples", "pear"], 100)
    assert "an «apple» and «pears» fell" in found.marked()
    assert found.text.startswith("…")
    assert found.text.endswith("…")
    assert text[found.start :].startswith(found.text.strip("…"))
    assert passage("  short\n text ", ["none"], 100).text == "  short\n text"


def test_a_passage_keeps_lines_and_begins_with_one() -> None:
    lines = [f"line {n}" for n in range(50)]
    lines[30] = "def retry(times):\r\n\n\n    return \x1b[1mtimes\x1b[0m  "
    found = passage("\n".join(lines), ["retry", "times"], 60)
    assert found.marked().startswith("…line 2")
    assert "\ndef «retry»(«times»):\n    return «times»\n" in found.marked()


@pytest.mark.parametrize(
    ("text", "words", "marked"),
    [
        ("catalog log logs", ["log"], "catalog «log» «logs»"),
        ("the LoginSchema, a schema", ["schema"], "the Login«Schema», a «schema»"),
        ("set max_retries = max", ["max", "retries"], "set «max_retries» = «max»"),
        ("readHTTPBody", ["body"], "readHTTP«Body»"),
    ],
)
def test_words_are_marked_where_they_begin(text: str, words: list[str], marked: str) -> None:
    assert passage(text, words, 100).marked() == marked
