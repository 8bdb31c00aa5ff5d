"""Files that are cut short, foreign, endless or absurd, and settings that make no sense: typed errors that name a remedy."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.errors import DataError, DomainError, DpexplainError, QueryError, ReleaseCorrupt
from dpexplain.ledger import open_existing
from dpexplain.ledger.anchor import read_heads
from dpexplain.registration.model_sources import ModelSource
from dpexplain.registration.tables import read_query_file
from dpexplain.release import file as container
from dpexplain.service.config import load_config
from dpexplain.service.limits import network_of
from service_support import write_config, write_owner_files

ONE = dpx.Domain.encoded(1)


@pytest.fixture(scope="module")
def owner(tmp_path_factory):
    return write_owner_files(tmp_path_factory.mktemp("owner"), 60)


@pytest.mark.parametrize(
    ("sections", "says"),
    [
        ({"service": {"requests_per_minute": -5}}, "at least 0"),
        ({"service": {"workers": 1_000_000}}, "at most 256"),
        ({"service": {"port": 70_000}}, "at most 65535"),
        ({"service": {"max_body": 1 << 40}}, "at most"),
        ({"service": {"max_instances": 10**9}}, "at most"),
        ({"service": {"tls_certificate": "cert.pem"}}, "both"),
        ({"service": {"title": "a\x00b"}}, "NUL"),
        ({"data": {"domain": 1}}, "must be str"),
        ({"data": {"file": "rows\x00.parquet"}}, "NUL"),
        ({"data": {"name": ["a"]}}, "must be str"),
        ({"data": {"max_rows_per_unit": "x"}}, "must be int"),
        ({"data": {"target": [1]}}, "must be str, int or float"),
        ({"mechanism": {"kind": ["basic"]}}, "must be str"),
        ({"mechanism": {"epsilon": 10**30}}, "at most"),
        ({"mechanism": {"weight": 1}}, "weight cannot be read"),
        ({"ledger": {"heads": 3}}, "must be str"),
        ({"data": {"label": None}, "model": {"path": "m:f", "cache": 7}}, "must be str"),
    ],
)
def test_settings_that_make_no_sense_are_refused(owner, sections, says):
    with pytest.raises(DpexplainError, match=says):
        load_config(write_config(owner, **sections))


def test_callers_are_counted_by_network():
    assert network_of("203.0.113.7") == "203.0.113.7"
    assert network_of("2001:db8:1:2:aaaa::1") == network_of("2001:db8:1:2:bbbb::2") == "2001:db8:1:2::/64"
    assert network_of("2001:db8:1:3::1") != network_of("2001:db8:1:2::1")
    assert network_of("::ffff:203.0.113.7") == "203.0.113.7"
    assert network_of("fe80::1%eth0") == "fe80::/64"
    assert network_of("unknown") == "unknown"


@pytest.fixture(scope="module")
def release_file(tmp_path_factory):
    rows = {"x0": np.linspace(0, 1, 300), "x1": np.linspace(1, 0, 300)}
    data = dpx.PrivateData(rows, dpx.Domain.encoded(2), model=lambda asked: asked["x0"], output="probability")
    path = tmp_path_factory.mktemp("released") / "a.dpx"
    dpx.release(data, dpx.Budget(1, 1e-6), reference=1024).save(path)
    return path


def test_pipes_devices_and_impossible_names_are_no_releases(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero", tmp_path, "a\x00b"):
        with pytest.raises(dpx.DpexplainError, match=r"Name a file|not a valid file name"):
            dpx.load(path)


@pytest.mark.parametrize(
    "read",
    [load_config, read_heads, lambda path: open_existing(f"sqlite:///{path}"), lambda path: ModelSource(f"{path}").open(ONE)],
    ids=["service.toml", "heads", "ledger", "model"],
)
def test_pipes_devices_and_impossible_names_are_nothing_else_either(tmp_path, read):
    os.mkfifo(tmp_path / "pipe.onnx")
    for path in (tmp_path / "pipe.onnx", Path("/dev/zero"), tmp_path, Path("a\x00b"), Path("x" * 5000)):
        with pytest.raises(DpexplainError):
            read(path)


@pytest.mark.parametrize(
    ("ending", "read"),
    [
        (".toml", dpx.Domain.load),
        (".json", dpx.Domain.load),
        (".json", dpx.ModelCard.read),
        (".json", dpx.Domain.from_schema),
        (".parquet", dpx.Domain.from_schema),
        (".arrow", dpx.Domain.from_schema),
        (".onnx", dpx.Domain.from_model),
    ],
)
def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path, ending, read):
    for path in (tmp_path / f"pipe{ending}", tmp_path / f"folder{ending}"):
        os.mkfifo(path) if path.stem == "pipe" else path.mkdir()
        with pytest.raises(DpexplainError, match="cannot"):
            read(path)


@pytest.mark.parametrize(
    "absurd",
    [
        {"mu": 1e300},
        {"mu": "0.2"},
        {"mu": True},
        {"delta": 1e-400},
        {"delta": "x"},
        {"note": 7},
        {"private": "yes"},
        {"unit": ["a"]},
        {"rows_per_unit": 10**400},
        {"relation": None},
    ],
)
def test_a_guarantee_that_cannot_be_stated_is_damage(release_file, tmp_path, absurd):
    header, arrays = container.read(release_file.read_bytes())
    header["guarantee"] |= absurd
    (tmp_path / "b.dpx").write_bytes(container.write(header, arrays))
    with pytest.raises(ReleaseCorrupt):
        dpx.load(tmp_path / "b.dpx")


@pytest.mark.parametrize(
    ("part", "absurd"),
    [(None, {"size": 10**400}), (None, {"size": -3}), ("planes", {"t0_error": 1e300}), ("planes", {"average_error": 1e300})],
)
def test_numbers_that_no_release_has_are_damage(release_file, tmp_path, part, absurd):
    header, arrays = container.read(release_file.read_bytes())
    (header if part is None else header[part]).update(absurd)
    (tmp_path / "b.dpx").write_bytes(container.write(header, arrays))
    with pytest.raises(ReleaseCorrupt):
        dpx.load(tmp_path / "b.dpx")


def test_arrays_that_no_release_has_are_damage(release_file, tmp_path):
    """Their checksum is right; squares of such numbers are not finite, and a division by these raised ZeroDivisionError."""
    header, arrays = container.read(release_file.read_bytes())
    for name in ("mean", "eigenvalues", "t1", "labels", "reference_weights"):
        (tmp_path / "b.dpx").write_bytes(container.write(header, arrays | {name: np.full_like(arrays[name], 1e308)}))
        with pytest.raises(ReleaseCorrupt):
            dpx.load(tmp_path / "b.dpx")


@pytest.mark.parametrize(
    "described",
    [{"kind": "encoded", "width": 10**12}, {"kind": "image", "shape": [10**6, 10**6]}, {"kind": "image", "shape": [10**200, 2]}],
)
def test_a_domain_of_absurd_size_is_refused(described):
    with pytest.raises(DomainError, match="at most 1,000,000"):
        dpx.Domain.from_dict(described)


@pytest.fixture(scope="module")
def estimator():
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression().fit(np.random.default_rng(0).random((50, 40)), np.arange(50) % 2)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_models_that_are_cut_short_are_data_errors(estimator, tmp_path, share):
    import joblib

    path = tmp_path / "m.joblib"
    joblib.dump(estimator, path)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    with pytest.raises(DataError, match="Save it again"):
        ModelSource(str(path), trusted=True).open(dpx.Domain.encoded(40))


@pytest.mark.slow
def test_a_skops_file_with_a_broken_array_is_a_data_error(estimator, tmp_path):
    skops = pytest.importorskip("skops.io", reason="skops is missing, its damaged files are NOT tested")
    import zipfile

    whole, broken = tmp_path / "whole.skops", tmp_path / "broken.skops"
    skops.dump(estimator, whole)
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(broken, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            target.writestr(name, content[: len(content) // 2] if name.endswith(".npy") else content)
    with pytest.raises(DataError, match="skops"):
        ModelSource(str(broken)).open(dpx.Domain.encoded(40))


@pytest.mark.parametrize(("code", "named"), [("1 / 0", "ZeroDivisionError"), ("import sys; sys.exit(3)", "SystemExit: 3")])
def test_a_module_that_fails_is_a_data_error(code, named, tmp_path, monkeypatch):
    (tmp_path / "failing_model.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(DataError, match=named):
        ModelSource("failing_model:score").open(dpx.Domain.encoded(1))


def test_a_model_file_with_an_impossible_name_is_a_data_error():
    with pytest.raises(DataError, match="no model file"):
        ModelSource("a\x00b.onnx").open(dpx.Domain.encoded(1))


def test_an_error_about_rows_does_not_carry_them():
    """`from None` hides the cause from tracebacks and still keeps it, arguments and all."""
    secret = "Alice earns 43000"

    def model(rows):
        if len(rows) == 2:  # the private ones, not the made-up ones it is tried on
            raise ValueError(secret)
        return np.zeros(len(rows))

    with pytest.raises(DataError) as raised:
        dpx.PrivateData({"x0": [0.5, 0.1]}, dpx.Domain.encoded(1), model=model)
    assert secret not in str(raised.value)
    assert raised.value.__context__ is None
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
@pytest.mark.parametrize(
    "text", ["[" * 100_000, "9" * 5_000, '[{"a": 1}'], ids=["nested too deeply", "too many digits", "cut short"]
)
def test_files_of_records_that_are_no_json(tmp_path, suffix, text):
    path = tmp_path / f"records{suffix}"
    path.write_text(text)
    with pytest.raises(QueryError, match="Check the file's format"):
        read_query_file(path, ONE)
