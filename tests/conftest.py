"""Fixtures that several kinds of tests share."""

from __future__ import annotations

import shutil
import tempfile
import uuid
import warnings

import pytest
from hypothesis import settings

from hypothesis_support import FAST, PROFILE
from ledger_support import Place, in_schema

settings.register_profile("full", deadline=None)
settings.register_profile("fast", deadline=None, max_examples=FAST, database=None)
settings.load_profile(PROFILE)


@pytest.fixture(scope="session")
def postgres_server():
    """The URL of a real PostgreSQL server, started for these tests; skipped, with the reason, where it cannot run."""
    data = tempfile.mkdtemp(prefix="dpxpg")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # platformdirs, about XDG_RUNTIME_DIR
            pgserver = pytest.importorskip("pgserver")
            pytest.importorskip("psycopg")
            server = pgserver.get_server(data, cleanup_mode="delete")
    except Exception as error:
        pytest.skip(f"PostgreSQL cannot run here, its ledger is NOT tested: {type(error).__name__}: {error}")
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(data, ignore_errors=True)


@pytest.fixture
def sqlite_place(tmp_path):
    return Place("sqlite", str(tmp_path / "test.ledger"))


@pytest.fixture
def postgres_place(postgres_server):
    return Place("postgres", in_schema(postgres_server, f"t{uuid.uuid4().hex}"))


@pytest.fixture(params=["sqlite", "postgres"])
def place(request):
    """Each durable backend in turn."""
    return request.getfixturevalue(f"{request.param}_place")
