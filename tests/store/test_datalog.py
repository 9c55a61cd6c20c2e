"""Queries of people: read as EDN, refused where they could do more than read, and bounded."""

from __future__ import annotations

import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foredeck_xtdb.database.client import to_edn
from foredeck_xtdb.database.datalog import (
    FUNCTIONS,
    Atom,
    Form,
    Group,
    QueryRefused,
    Tagged,
    argument,
    prepare,
    read_edn,
)
from foredeck_xtdb.runtime import Runtime

ATOMS = st.one_of(
    st.sampled_from(["?x", "foo/bar", "-", "/", "clojure.core/-'", "$", "...", "_", "*"]).map(
        lambda text: Atom("symbol", text)
    ),
    st.sampled_from([":a", ":foredeck/source_path", ":a.b/c-d?"]).map(
        lambda text: Atom("keyword", text)
    ),
    st.sampled_from(["0", "-1", "+5", "1.5e-3", "10N", "0.1M", "1/3"]).map(
        lambda text: Atom("number", text)
    ),
    st.sampled_from(["nil", "true", "false"]).map(lambda text: Atom("constant", text)),
    st.sampled_from(["\\a", "\\newline", "\\u2028", "\\("]).map(
        lambda text: Atom("character", text)
    ),
    st.text(st.characters(exclude_categories=["Cs"])).map(
        lambda text: Atom("string", to_edn(text))
    ),
)


def groups(inner: st.SearchStrategy[Form]) -> st.SearchStrategy[Form]:
    """Lists, vectors, sets, maps and tagged forms."""
    items = st.lists(inner, max_size=4)
    return st.one_of(
        st.builds(lambda opened, found: Group(opened, tuple(found)), st.sampled_from("(["), items),
        items.map(lambda found: Group("#{", tuple(found))),
        st.lists(st.tuples(inner, inner), max_size=3).map(
            lambda pairs: Group("{", tuple(form for pair in pairs for form in pair))
        ),
        inner.map(lambda form: Tagged("inst", form)),
    )


@given(st.recursive(ATOMS, groups, max_leaves=12))
def test_what_is_written_is_read_as_it_was(form: Form) -> None:
    assert read_edn(str(form)) == form


@given(st.text(alphabet="()[]{}#_'\"\\;:, \n?ab1-/@^~`", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        form = read_edn(text)
    except ValueError:
        return
    assert read_edn(str(form)) == form


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "nothing to read"),
        ("{:find", "} is missing"),
        ("[1 2", "] is missing"),
        ("[1 2)", "line 1, column 5"),
        ("{:a 1 :b}", "a key without a value"),
        ("1 2", "more than one form"),
        ("[1\n@x]", "line 2, column 1"),
        ("[1a]", "neither number, keyword nor symbol"),
        ('["open]', "not EDN"),
        ("[#_]", "a form is missing"),
        ("[" * 200, "deeper than"),
        ("[\ud800]", "UTF-8"),
    ],
)
def test_what_is_no_edn_is_explained(text: str, said: str) -> None:
    with pytest.raises(QueryRefused, match=said.replace("(", r"\(").replace("]", r"\]")):
        prepare(text, [], limit=1, timeout_ms=1)


def test_comments_quotes_and_what_is_discarded() -> None:
    text = "'{:find [?e] ; all\n :where [[?e :a #_ #_ 1 2 3,]]}"
    assert prepared(text) == "{:query {:find [?e] :where [[?e :a 3]]} :in-args []}"


def prepared(text: str, *values: str) -> str:
    """The body of a query, without the bounds."""
    return prepare(text, values, limit=7, timeout_ms=9).body.replace(" :limit 7 :timeout 9", "")


def test_a_query_in_a_vector_is_the_same_as_in_a_map() -> None:
    vector = "[:find ?e ?v :in ?x :where [?e :a ?x] [?e :b ?v] :order-by [?e :asc] :offset 2]"
    assert prepared(vector, "1") == (
        "{:query {:find [?e ?v] :in [?x] :where [[?e :a ?x] [?e :b ?v]] :order-by [[?e :asc]]"
        " :offset 2} :in-args [1]}"
    )


def test_bounds_are_the_lower_ones() -> None:
    def bounds(text: str) -> str:
        return prepare(text, [], limit=100, timeout_ms=5_000).body

    assert ":limit 100 :timeout 5000}" in bounds("{:find [?e] :where [[?e :a]]}")
    assert ":limit 3 :timeout 5000}" in bounds("{:find [?e] :where [[?e :a]] :limit 3}")
    assert ":limit 100 :timeout 10}" in bounds(
        "{:find [?e] :where [[?e :a]] :limit 300 :timeout 10}"
    )


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("file", '"file"'),
        ("a b", '"a b"'),
        ("", '""'),
        ("12", "12"),
        ("-1.5", "-1.5"),
        ("1.5e-3M", "1.5e-3M"),
        ("1/3", "1/3"),
        ("0199aaaa-1111-7222-8333-444455556666", '"0199aaaa-1111-7222-8333-444455556666"'),
        ("01a2", '"01a2"'),
        ("1a", '"1a"'),
        ("12345678-1234", '"12345678-1234"'),
        ("true", "true"),
        ("nil", "nil"),
        ("truest", '"truest"'),
        (":a/b", ":a/b"),
        ('"12"', '"12"'),
        ('["a" 1]', '["a" 1]'),
        ('#inst "2026-01-01"', '#inst "2026-01-01"'),
        ("/etc/hosts", '"/etc/hosts"'),
        ("toolu_1", '"toolu_1"'),
        ("\0\u2028\U0001f600", to_edn("\0\u2028\U0001f600")),
    ],
)
def test_values(text: str, form: str) -> None:
    assert str(argument(text)) == form


@pytest.mark.parametrize("text", [":", '"open', "[1", "\udce4"])
def test_values_that_are_neither(text: str) -> None:
    with pytest.raises(QueryRefused):
        argument(text)


ALLOWED = [
    '{:find [?e] :where [[?e :a ?x] [(> ?x 1)] [(str ?x "y") ?s] [(clojure.core/count ?s) ?n]]}',
    "{:find [(count ?e) (max 3 ?x) (+ 1 (sum ?x)) (if ?x 1 2)] :where [[?e :a ?x]]}",
    "{:find [(pull ?e [* {(:a {:as :b}) [:c]}])] :where [[?e :a]]}",
    "{:find [?e] :where [(slurps ?e)] :rules [[(slurps ?e) [?e :a] (not [?e :b])]]}",
    "{:find [?e] :where [[?e :a #{1 2}] (or-join [[?e] ?x] [?e :b] (and [?e :c] [(odd? ?x)]))]}",
    "{:find [?e] :where [[?e :a] (not-join [?e] [?e :b ?x] [(= ?x 1)])]}",
    "{:find [?y] :where [[(q {:find [?e] :where [[?e :a]]}) ?x] [(get-attr ?e :a nil) [?y ...]]]}",
]
"""Everything that XTDB knows and that reads nothing but the database."""


@pytest.mark.parametrize("text", ALLOWED)
def test_what_only_reads_is_allowed(text: str) -> None:
    assert prepared(text) == f"{{:query {text} :in-args []}}"


@pytest.mark.parametrize(
    "text",
    [
        '{:find [?x] :where [[(slurp "f") ?x]]}',
        '{:find [?x] :where [[(clojure.core/slurp "f") ?x]]}',
        '{:find [?x] :where [[(clojure.java.shell/sh "id") ?x]]}',
        "{:find [(slurp ?x)] :where [[?e :a ?x]]}",
        "{:find [(count (eval ?x))] :where [[?e :a ?x]]}",
        "{:find [[?x {:a (eval ?x)}]] :where [[?e :a ?x]]}",
        '{:find [?e] :where [(not [(spit "f" 1)])]}',
        '{:find [?e] :where [(or [?e :a] (and [?e :b] [(spit "f" 1)]))]}',
        '{:find [?e] :where [(not-join [?e] [(spit "f" 1)])]}',
        "{:find [?e] :where [(slurp ?e)] :rules [[(slurp ?e) [(slurp ?e)]]]}",
        '{:find [?x] :where [[(q {:find [?y] :where [[(slurp "f") ?y]]}) ?x]]}',
        "{:find [?e] :where [[?e :a]] :order-by [[(eval ?e) :asc]]}",
        '{:find [?e] :where [[(str (slurp "f")) ?e]]}',
        '{:find [?e] :where [[(str [{:a #x (slurp "f")}]) ?e]]}',
        '{:find [?e] :where [[?e (slurp "f")]]}',
        '{:find [?e] :where [[(?f "f") ?e]]}',
        '{:find [?e] :where [[("slurp" "f") ?e]]}',
        "{:find [?e] :where [[() ?e]]}",
        '[:find ?x :where [(slurp "f") ?x]]',
    ],
)
def test_what_could_do_more_is_refused(text: str) -> None:
    with pytest.raises(QueryRefused):
        prepared(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("7", "a query is a map"),
        ("{:where [[?e :a]]}", "no :find"),
        ("{:find [] :where [[?e :a]]}", "no :find"),
        ("{:find ?e}", "takes a vector"),
        ("{:find [?e] :limit []}", "takes a number"),
        ("{:find [?e] :args [{}]}", "no part :args"),
        ("{:find [?e] :find [?e]}", "two parts"),
        ("[?e :find]", "begins with :find"),
        ("{:find [?e] :in [?x ?y] :where [[?e :a ?x]]}", "names 2 values, and 0"),
    ],
)
def test_what_is_no_query_is_explained(text: str, said: str) -> None:
    with pytest.raises(QueryRefused, match=said):
        prepared(text)


def test_the_allow_list_is_that_of_xtdb(runtime: Runtime) -> None:
    (jar,) = (runtime.folder / "lib").glob("xtdb-core-*.jar")
    words = zipfile.ZipFile(jar).read("query-allowlist.edn").decode().strip("#{}\n ").split()
    prefix = "clojure.core/"
    assert {word.removeprefix(prefix) for word in words if word.startswith(prefix)} == FUNCTIONS
