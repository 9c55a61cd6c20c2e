"""Memory of an opened session: whose it is, and what of it goes before the chat."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from foredeck.config import Config, foreign_owner, user_rules_file
from foredeck.context.state.chat import Chat
from foredeck.context.state.objects import Objects, SessionInfo
from foredeck.context.state.opening import SessionFolder
from foredeck.errors import ForedeckError
from foredeck.hosts.protocol import SessionOpenParams
from foredeck.memory.entry import caps_of
from foredeck.memory.ground import GroundReader
from foredeck.memory.keeping import Memory
from foredeck.memory.sections import RulesSection
from foredeck.memory.session import Inheritance, SessionMemory
from foredeck.memory.trust import KEY_FILE, load_user, session_statement, user_of
from foredeck.memory.words import all_words
from foredeck.store.protocol import Store

MOST_NAMES, MOST_FOLDERS = 200, 50
"""How many names of one folder are read, and how many folders within the project's."""


def state_warnings(config: Config, store: Store) -> Iterator[str]:
    """What the user should know of their state folder before anything is kept in it."""
    home = config.home
    if home.is_dir() and (owner := foreign_owner(home)) is not None:
        yield (
            f"The state folder {home} belongs to user {owner}, who can read and change what is in "
            "it: set FOREDECK_HOME to a folder of your own."
        )
    if (home / KEY_FILE).exists():
        try:
            load_user(home)
        except (OSError, ForedeckError) as error:
            yield f"Nothing counts as said by you, and nothing is remembered: {error}"
    elif store.query("memory", limit=1):
        yield (
            f"{home / KEY_FILE} is missing: a new one is made, and nothing that is remembered "
            "counts as said by you. Bring the old one back from a backup."
        )


def begun_by(config: Config, params: SessionOpenParams) -> str | None:
    """What a new session carries that began at the user's side; None for a subagent's, and where
    the host does not vouch for its user."""
    user = user_of(config) if params.by_user and params.started_by is None else None
    return None if user is None else user.vouch(session_statement(params.session))


def memory_of(
    config: Config, objects: Objects, chat: Chat, session_folder: SessionFolder
) -> SessionMemory | None:
    """Memory as this session sees it; None in a replay, which belongs to no user, and where the
    user's key cannot be read."""
    info, user = objects.info, user_of(config) if objects.info.is_live else None
    if user is None:
        return None
    memory = Memory(objects.store, user, caps_of(config), by=info.id)
    return SessionMemory(
        info.id,
        session_folder.project.id,
        memory,
        GroundReader(objects.store, session_folder.filesystems),
        _inheritance(objects, chat, memory),
        partial(words_of_files, info.cwd),
        config.tools.search,
    )


def words_of_files(folder: str) -> frozenset[str]:
    """The words in the names that lie in a folder, and in the folders in it: what its files are
    about, as far as that is seen at a glance."""
    names = _names_in(folder)
    inner = (name for one in names[:MOST_FOLDERS] for name in _names_in(str(Path(folder) / one)))
    return all_words(" ".join([*names, *inner]))


def _names_in(folder: str) -> list[str]:
    """Names that lie in a folder, sorted; none of what is hidden, or where there is no folder."""
    try:
        names = sorted(path.name for path in Path(folder).iterdir())
    except OSError:
        return []
    return [name for name in names if not name.startswith(".")][:MOST_NAMES]


def _inheritance(objects: Objects, chat: Chat, memory: Memory) -> Inheritance | None:
    """For a fork that has made no call yet."""
    document = None if chat.log.newest else objects.document()
    if document is None or document.parent_session is None:
        return None
    # Not at the top: most sessions are no forks.
    from foredeck.engine.inheriting import MemoryOfParent

    return MemoryOfParent(objects, chat, memory, document.parent_session)


def rules_section(config: Config, info: SessionInfo) -> RulesSection | None:
    """The user's standing rules in the head."""
    return RulesSection(user_rules_file()) if config.memory.rules and info.is_live else None
