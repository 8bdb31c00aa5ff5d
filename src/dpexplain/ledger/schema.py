"""The tables, and how they change. Each migration is recorded by the transaction that applies it.

SQLite and PostgreSQL begin with the same tables; SQLite's second version needs fewer pages for each commit (`numbered.py`). Tables are made
without IF NOT EXISTS on purpose: a half-present schema is damage, and must not be taken for a new ledger.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpexplain.errors import LedgerUnavailable
from dpexplain.ledger.chain import utc_now

Run = Callable[[str, tuple[Any, ...]], list[tuple[Any, ...]]]
Migrations = tuple[tuple[str, ...], ...]

MIGRATIONS: Migrations = (
    (
        "CREATE TABLE dpexplain_accounts (dataset TEXT NOT NULL PRIMARY KEY, sequence BIGINT NOT NULL, hash TEXT NOT NULL)",
        "CREATE TABLE dpexplain_entries (dataset TEXT NOT NULL, sequence BIGINT NOT NULL, kind TEXT NOT NULL, "
        "request TEXT NOT NULL, position BIGINT, document TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (dataset, sequence))",
        "CREATE UNIQUE INDEX dpexplain_requests ON dpexplain_entries (dataset, request, sequence)",
        "CREATE UNIQUE INDEX dpexplain_answers ON dpexplain_entries (dataset, position) WHERE position IS NOT NULL",
    ),
)
SQLITE_MIGRATIONS: Migrations = (
    *MIGRATIONS,
    (
        "ALTER TABLE dpexplain_accounts RENAME TO dpexplain_old_accounts",
        "ALTER TABLE dpexplain_entries RENAME TO dpexplain_old_entries",
        "CREATE TABLE dpexplain_accounts (number INTEGER PRIMARY KEY, dataset TEXT NOT NULL UNIQUE, sequence BIGINT NOT NULL, hash TEXT NOT NULL)",
        "CREATE TABLE dpexplain_entries (id INTEGER PRIMARY KEY, dataset TEXT NOT NULL, sequence BIGINT NOT NULL, kind TEXT NOT NULL, "
        "request TEXT NOT NULL, position BIGINT, document TEXT NOT NULL, hash TEXT NOT NULL)",
        "INSERT INTO dpexplain_accounts (dataset, sequence, hash) SELECT dataset, sequence, hash FROM dpexplain_old_accounts ORDER BY dataset",
        "INSERT INTO dpexplain_entries SELECT (a.number << 40) + e.sequence, e.dataset, e.sequence, e.kind, e.request, e.position, e.document, "
        "e.hash FROM dpexplain_old_entries e LEFT JOIN dpexplain_accounts a ON a.dataset = e.dataset ORDER BY 1",
        "DROP TABLE dpexplain_old_entries",
        "DROP TABLE dpexplain_old_accounts",
        "CREATE INDEX dpexplain_requests ON dpexplain_entries (request)",
    ),
)
VERSIONS = "CREATE TABLE dpexplain_schema (version BIGINT NOT NULL PRIMARY KEY, applied TEXT NOT NULL)"


def create(run: Run) -> None:
    """Make the version table; `migrate` does the rest, in the same transaction."""
    run(VERSIONS, ())


def migrate(run: Run, migrations: Migrations = MIGRATIONS) -> None:
    """Bring the tables to this version, inside the caller's transaction."""
    for version in range(require_known(run, migrations) + 1, len(migrations) + 1):
        for statement in migrations[version - 1]:
            run(statement, ())
        run("INSERT INTO dpexplain_schema (version, applied) VALUES (?, ?)", (version, utc_now().isoformat()))


def is_old(run: Run, migrations: Migrations = MIGRATIONS) -> bool:
    """Whether `migrate` has something to do: asked before taking a lock for it, and by `migrate` again under the lock."""
    return require_known(run, migrations) < len(migrations)


def require_current(run: Run) -> None:
    """Raise unless the tables have this version: readers do not migrate."""
    if is_old(run, MIGRATIONS):
        raise LedgerUnavailable(
            f"the ledger's schema version is older than {len(MIGRATIONS)}. Open it once for writing to upgrade it"
        )


def require_known(run: Run, migrations: Migrations) -> int:
    """The version of the tables, refused when it is from the future."""
    version = run("SELECT coalesce(max(version), 0) FROM dpexplain_schema", ())[0][0]
    if not (isinstance(version, int) and 0 <= version <= len(migrations)):
        raise LedgerUnavailable(
            f"the ledger has schema {version} and this dpexplain knows {len(migrations)}: "
            "a newer version wrote it. Upgrade dpexplain"
        )
    return version
