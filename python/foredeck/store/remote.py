"""What a store delivers to and fetches from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from foredeck.store.protocol import Advance, Batch, Origin, Scalar, Token


class Remote:
    """The database behind a store. This one is none: the file has everything."""

    @property
    def is_shared(self) -> bool:
        """Whether other machines write to it."""
        return False

    @property
    def trouble(self) -> str:
        """What a user should see at a glance; empty if all is well."""
        return ""

    def before_commit(self, batch: Batch, origin: Origin | None) -> None:
        """Fetches what the commit is decided on."""

    def after_commit(self) -> None:
        """Delivers what was committed."""

    def commit(self, batch: Batch) -> Token:
        """Commits where all machines meet. Raises `Conflict`, `StoreUnavailable`."""
        raise NotImplementedError

    def fetch(self, ids: Sequence[str], at: Token | None = None) -> None:
        """Fetches what is missing of documents. Raises `StoreUnavailable` for one that is only
        there."""

    def fetch_query(self, type: str, where: Mapping[str, Scalar | None] | None) -> None:
        """Fetches what a query finds there."""

    def fetch_transactions(self, tokens: Sequence[Token]) -> None:
        """Fetches what is missing of transactions."""

    def fetch_blobs(self, digests: Sequence[str]) -> dict[str, bytes]:  # noqa: ARG002
        """Blobs that the file does not have."""
        return {}

    def fetch_documents(self, advance: Advance) -> None:
        """Fetches all documents. Raises `StoreUnavailable`."""

    def fetch_all(self, advance: Advance) -> bool:  # noqa: ARG002
        """Fetches all transactions; returns whether nothing is left there."""
        return True

    def close(self) -> None:
        """Ends the connection."""
