"""Short names: which ids they mean, and which ids have them."""

from __future__ import annotations

from uuid import UUID

import pytest

from foredeck.model.identity import ENTRY, TASK, ShortNames, key_of


def id_of(key: str) -> str:
    """An id whose key begins with these letters, and goes on with zeros."""
    letters = "0123456789abcdefghjkmnpqrstvwxyz"
    return str(UUID(int=sum(letters.index(letter) << 5 * n for n, letter in enumerate(key))))


ONE, TWO, THREE = map(id_of, ("k3f9a", "k3f9b", "k310"))


def test_a_name_has_as_many_letters_as_tell_its_id_from_others() -> None:
    names = ShortNames(TASK, [ONE, TWO, THREE, ONE])
    assert [names.name(id) for id in (ONE, TWO, THREE)] == ["t-k3f9a", "t-k3f9b", "t-k310"]
    assert ShortNames(TASK, [ONE, THREE]).name(ONE) == "t-k3f9"


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        *(("t-k3f9a", [ONE]), (" T-K3F9A ", [ONE]), ("k3f9a", [ONE]), (ONE, [ONE])),
        *((ONE.upper(), [ONE]), ("t-k3f9", [ONE, TWO]), ("t-k3", [ONE, TWO, THREE])),
        *(("t-k3lo", [THREE]), ("t-k3f9a00000000", []), ("t-zzzz", []), ("t-", []), ("", [])),
    ],
)
def test_an_id_is_found_by_its_name_the_start_of_one_or_itself(
    asked: str, meant: list[str]
) -> None:
    assert ShortNames(TASK, [ONE, TWO, THREE]).find(asked) == meant


def test_an_id_of_another_form_is_its_own_key() -> None:
    entry, other = f"memory:{ONE}", "memory:mine"
    names = ShortNames(ENTRY, [entry, other])
    assert names.find("m-k3f9") == [entry]
    assert names.find(other) == [other]
    assert (names.name(entry), names.name(other)) == ("m-k3f9", "m-memo")


def test_a_new_id_has_four_letters_of_its_own() -> None:
    names = ShortNames(TASK)
    for number in range(200):
        id = names.mint(number)
        assert names.find(key_of(id)[:4]) == []
        names.add(id)
