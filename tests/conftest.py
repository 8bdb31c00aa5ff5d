"""Fixtures that several kinds of tests share."""

from __future__ import annotations

import gc
import shutil
import tempfile
import uuid
import warnings
from pathlib import Path

import pytest
from hypothesis import settings

from hypothesis_support import FAST, PROFILE
from ledger_support import Place, in_schema

settings.register_profile("full", deadline=None)
settings.register_profile("fast", deadline=None, max_examples=FAST, database=None)
settings.load_profile(PROFILE)

# Files that take longest, longest first: they start first, so that neither core waits for one at the end.
LONGEST = [
    "e2e/test_cluster_nodes.py",  # before any other test starts Ray
    "statistical/test_mutants.py",
    "e2e/test_tutorial.py",
    "unit/test_gallery.py",
    "unit/test_reproduction.py",
    "e2e/test_three_tables.py",
    "e2e/test_service.py",
    "statistical/test_audit.py",
    "e2e/test_page.py",
    "e2e/test_ledger_crash.py",
    "e2e/test_cluster.py",
    "statistical/test_release_coverage.py",
    "property/test_registration.py",
    "e2e/test_cli.py",
    "e2e/test_service_resilience.py",
    "statistical/test_reuse.py",
    "unit/test_reference.py",
    "contract/test_rows.py",
    "property/test_domain_properties.py",
    "unit/test_rehearsal.py",
    "unit/test_release.py",
    "unit/test_fitted_plane.py",
    "unit/test_conventions.py",
    "unit/test_scan.py",
    "property/test_scale.py",
]


def pytest_collection_modifyitems(items):
    place = {Path(__file__).parent / name: k for k, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path, len(place)))


def pytest_collection_finish():
    gc.freeze()  # modules stay: the collector need not look at a million of their objects again and again


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


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])  # a server takes a second to start
def place(request):
    """Each durable backend in turn."""
    return request.getfixturevalue(f"{request.param}_place")
