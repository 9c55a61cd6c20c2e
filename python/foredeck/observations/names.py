"""Whether the names that an observer writes are in its sources."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from foredeck.model.names import names_in
from foredeck.model.observations import Remark


class KnownNames:
    """What sources say: whether they hold a name, however it is capitalised."""

    def __init__(self, texts: Iterable[str], cwd: str = "") -> None:
        """`cwd`: the folder in which paths without a beginning lie."""
        self._text = "\n".join(texts).casefold()
        self._cwd = cwd.rstrip("/").casefold() + "/" if cwd else ""

    def __contains__(self, name: str) -> bool:
        return any(form in self._text for form in self._forms(name.casefold()))

    def _forms(self, name: str) -> Iterator[str]:
        yield name
        if self._cwd and name.startswith(self._cwd):
            yield name[len(self._cwd) :]
        yield name.removeprefix("./").rstrip("/")
        if "." in name and "/" not in name:
            # `User.validate` may be defined as `validate` in `class User`: both must be there.
            parts = name.split(".")
            if all(part in self._text for part in parts):
                yield parts[-1]


def unfounded(text: str, known: KnownNames, doubted: Collection[str] = ()) -> list[str]:
    """The names of a text that are in none of its sources, or are `doubted` there."""
    return [name for name in names_in(text) if name in doubted or name not in known]


def checked(
    remarks: Sequence[Remark], known: KnownNames, doubted: Collection[str] = ()
) -> list[Remark]:
    """The remarks, each with its names that no source has. `doubted`: names that the sources have,
    but marked as unfounded."""
    return [
        remark.model_copy(update={"unfounded": unfounded(all_of(remark), known, doubted)})
        for remark in remarks
    ]


def all_of(remark: Remark) -> str:
    """All that a remark says."""
    more = (text for texts in remark.mode_specific.values() for text in texts)
    return "\n".join([remark.content, *more])


def dropped(before: Iterable[str], after: str) -> list[str]:
    """The names that texts had and what takes their place does not."""
    known = KnownNames([after])
    return list(dict.fromkeys(n for text in before for n in names_in(text) if n not in known))
