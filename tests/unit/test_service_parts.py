"""The service's small parts: keys, limits, metrics, configuration, and where errors may not speak."""

import json
import logging
import os
import socket
import stat

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.domain.drafts import draft_of_schema
from dpexplain.errors import (
    IntegrityError,
    LedgerCorrupt,
    LedgerUnavailable,
    NotPrivateError,
    ParameterError,
    QueryError,
    RequestIdInUse,
)
from dpexplain.ledger.anchor import read_heads
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy.relation import Neighbours
from dpexplain.service.backend import ReleaseBackend, SpendingSummary, without_file
from dpexplain.service.config import load_config, mechanism_of
from dpexplain.service.guard import LOG, log_to_stderr
from dpexplain.service.keys import KeyFile
from dpexplain.service.limits import RateLimit
from dpexplain.service.problems import Problem, problem_of
from dpexplain.service.prometheus_metrics import Metrics
from dpexplain.service.run import require_free_address, serve, threads_of_worker
from service_support import release_only, write_config, write_owner_files


@pytest.mark.parametrize(("cores", "workers", "each"), [(2, 2, "1"), (8, 2, "4"), (2, 5, "1"), (None, 1, "1")])
def test_workers_share_the_cores(monkeypatch, cores, workers, each):
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")  # an owner's own choice stays
    others = ("DPEXPLAIN_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    for name in others:
        monkeypatch.delenv(name, raising=False)
    assert threads_of_worker(workers) == dict.fromkeys(others, each) | {"OMP_NUM_THREADS": "3"}


def test_what_libraries_log_is_json_without_its_text(capsys, monkeypatch):
    """A database's driver warns when its server dies, and everything that reads the log expects JSON."""
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", list(root.handlers))
    monkeypatch.setattr(LOG, "handlers", [])
    monkeypatch.setattr(LOG, "propagate", False)
    monkeypatch.setattr(LOG, "level", LOG.level)
    log_to_stderr()
    logging.getLogger("psycopg").warning("error ignored in rollback: %s", "a private row")
    try:
        raise ValueError("a private row")
    except ValueError:
        logging.getLogger("asyncio").exception("never retrieved")
    LOG.info("%s", json.dumps({"path": "/"}))
    warned, failed, own = map(json.loads, capsys.readouterr().err.splitlines())
    assert (warned["library"], warned["level"]) == ("psycopg", "warning")
    assert failed["error"].startswith("ValueError at test_service_parts.py:")
    assert own == {"path": "/"}
    assert "private" not in json.dumps([warned, failed])


@pytest.fixture
def keys(tmp_path):
    return KeyFile(tmp_path / "keys.json")


def test_an_address_that_is_in_use_is_told_before_anything_is_read(owner, monkeypatch):
    """uvicorn ends with code 3, which means a spent budget here."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        KeyFile(owner / "keys.json").add("analyst")
        config = load_config(write_config(owner, service={"port": port}))
        monkeypatch.setattr("dpexplain.service.run.open_backend", lambda *_: pytest.fail("it was read"))
        with pytest.raises(ParameterError, match=f"cannot listen at 127.0.0.1:{port} .*another host or port"):
            serve(config)
    require_free_address("127.0.0.1", port)
    with pytest.raises(ParameterError, match=r"cannot listen at 192\.0\.2\.1"):
        require_free_address("192.0.2.1", port)
    with pytest.raises(ParameterError, match=r"cannot listen at a\.\.b"):
        require_free_address("a..b", port)


def test_a_key_is_shown_once_and_kept_as_a_salted_hash(keys):
    first, second = keys.add("analyst", "A"), keys.add("owner", "B")
    text = keys.path.read_text()
    for key in (first, second):
        secret = key.split("_", 2)[2]
        assert secret not in text
        assert keys.find(key).role in ("analyst", "owner")
    one, other = keys.list_keys()
    assert one.salt != other.salt
    assert stat.S_IMODE(os.stat(keys.path).st_mode) == 0o600


def test_wrong_keys_are_nobody(keys):
    key = keys.add("analyst")
    for wrong in (
        "",
        "x",
        key[:-1],
        key + "a",
        key[:-1] + ("A" if key[-1] != "A" else "B"),
        key.replace("dpx_", "dpx_0"),
        "dpx__",
        "é" * 60,
    ):
        assert keys.find(wrong) is None


def test_revoking_works_at_once_and_a_broken_file_lets_nobody_in(keys):
    key = keys.add("analyst")
    running = KeyFile(keys.path)
    assert running.find(key)
    keys.revoke(keys.list_keys()[0].id)
    assert running.find(key) is None
    again = keys.add("analyst")
    assert running.find(again)
    keys.path.write_text("{}")
    assert running.find(again) is None
    with pytest.raises(IntegrityError):
        keys.list_keys()
    keys.path.unlink()
    assert running.find(again) is None
    os.mkfifo(keys.path)  # it could be waited for without end
    assert running.find(again) is None
    with pytest.raises(IntegrityError):
        keys.list_keys()


def test_a_file_that_everybody_may_write_lets_nobody_in(keys):
    key = keys.add("analyst")
    assert keys.find(key)
    keys.path.chmod(0o666)
    assert keys.find(key) is None
    with pytest.raises(IntegrityError, match=r"everybody may write to .* chmod 600"):
        keys.list_keys()
    keys.path.chmod(0o600)
    assert keys.find(key)


def test_key_mistakes_are_told(keys):
    with pytest.raises(dpx.DpexplainError, match="role must be"):
        keys.add("root")
    with pytest.raises(dpx.DpexplainError, match="no key"):
        keys.revoke("nobody")


def test_a_rate_is_kept_for_each_caller():
    now = [0.0]
    limit = RateLimit(60, clock=lambda: now[0])
    assert [limit.wait("a") for _ in range(10)] == [0.0] * 10  # ten seconds' worth at once
    assert 0 < limit.wait("a") <= 1
    assert limit.wait("b") == 0
    now[0] = 1.0
    assert limit.wait("a") == 0
    assert limit.wait("a") > 0
    assert all(RateLimit(0).wait("a") == 0 for _ in range(1000))


def test_callers_that_are_not_seen_are_forgotten():
    limit = RateLimit(60, clock=lambda: 0.0)
    for number in range(10_050):
        limit.wait(str(number))
    assert len(limit._buckets) == 10_000


def test_metrics_of_several_workers_are_one(tmp_path):
    np.full(len(Metrics(None).totals()), 2.0).tofile(tmp_path / "metrics-1")
    (tmp_path / "metrics-2").write_bytes(b"torn")
    own = Metrics(tmp_path)
    own.count_answer(0.003)
    own.count_refusal("budget")
    own.count_response(403)
    totals = own.totals()
    assert (totals["count"], totals["budget"], totals["4xx"], totals["le 0.0025"], totals["le 0.005"]) == (3, 3, 3, 4, 7)
    guarantee = dpx.Guarantee(0.1, 1e-6, Neighbours())
    text = own.text(SpendingSummary(guarantee, None, None, None))
    assert 'dpexplain_refusals_total{reason="budget"} 3' in text
    assert "dpexplain_remaining_epsilon" not in text


def test_problems_say_nothing_about_files_or_rows():
    for error in (
        LedgerUnavailable("/secret/path row 17"),
        LedgerCorrupt("/secret/path row 17"),
        dpx.DpexplainError("/secret/path row 17"),
    ):
        text = problem_of(error).response().body.decode()
        assert "secret" not in text
        assert "17" not in text
    assert problem_of(QueryError("age: 400 is not …")).status == 422


def test_only_a_request_id_that_is_in_use_is_told_as_that():
    """Shapley values without a model were told as a request id in use, like every other bad input."""
    unanswerable = problem_of(ParameterError("Shapley values need the model when a question is asked"))
    assert (unanswerable.status, unanswerable.kind) == (422, "cannot-be-answered")
    taken = problem_of(RequestIdInUse("request id 'a' was used for another question"))
    assert (taken.status, taken.kind) == (409, "request-id-in-use")


def test_problems_survive_any_text():
    body = Problem(422, "\ud800 \x00 ‮").response().body
    assert json.loads(body)["detail"] == "\ud800 \x00 ‮"


@pytest.fixture
def owner(tmp_path):
    return write_owner_files(tmp_path, 300)


@pytest.mark.parametrize(
    ("sections", "says"),
    [
        ({"service": {"keys": None}}, "who may ask"),
        ({"service": {"keys": "k.json", "open": True}}, "who may ask"),
        ({"service": {"max_bdoy": 1}}, "max_bdoy"),
        ({"service": {"port": "80"}}, "must be int"),
        ({"service": {"workers": 0}}, "at least 1"),
        ({"service": {"name": "a b"}}, "letters, digits"),
        ({"service": {"host": ""}}, "host is empty"),
        ({"mechanism": {"epsilon": 1.5}}, "costs more than the whole \\[budget\\]"),
        ({"data": None}, "either \\[release\\]"),
        ({"release": {"file": "x.dpx"}}, "either \\[release\\]"),
        ({"budget": {"epsilon": None}}, "lacks epsilon"),
        ({"budget": {"epsilon": "1"}}, "must be float"),
        ({"budget": {"epsilon": True}}, "must be float"),
        ({"ledger": None}, "lacks url"),
        ({"mechanism": {"kind": "magic"}}, "kind must be one of"),
        ({"mechanism": {"kind": "basic", "stpes": 3}}, "stpes"),
        ({"data": {"label": None}}, "labels from one place"),
        ({"data": {"lable": "y"}}, "lable"),
        ({"data": {"domain": "none.toml"}}, "cannot read the domain"),
        ({"extra": {"x": 1}}, "extra"),
    ],
)
def test_mistakes_in_a_configuration_are_told(owner, sections, says):
    with pytest.raises(dpx.DpexplainError, match=says):
        load_config(write_config(owner, **sections))


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (1.2, 1e-9)])
def test_one_answer_may_cost_the_whole_budget(owner, epsilon, delta):
    load_config(write_config(owner, mechanism={"epsilon": epsilon, "delta": delta}, budget={"epsilon": 1.0, "delta": 1e-6}))


@pytest.mark.parametrize(
    "given", [{"calibration": "paper"}, {"kind": "adaptive", "calibration": "paper"}, {"seed": 1}, {"noise": "seeded"}]
)
def test_what_is_not_private_is_refused_at_start(given):
    with pytest.raises(NotPrivateError):
        mechanism_of(given)


def test_a_seeded_release_is_refused_at_start(owner):
    data = dpx.PrivateData({"x0": np.linspace(0, 1, 200)}, dpx.Domain.encoded(1), labels=np.ones(200))
    with pytest.raises(NotPrivateError):
        ReleaseBackend(dpx.release(data, dpx.Budget(1, 1e-6), noise=SeededNoise(1)))
    ReleaseBackend(dpx.release(data, dpx.Budget(1, 1e-6)))


def test_paths_are_relative_to_the_file_and_weights_are_read(owner, monkeypatch, tmp_path_factory):
    path = write_config(owner, mechanism={"kind": "adaptive", "epsilon": 0.1})
    path.write_text(path.read_text() + '[mechanism.weight]\nkind = "gaussian"\nwidth = 0.8\n')
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    config = load_config(path)
    assert config.rows.source.file == owner / "people.parquet"
    assert config.rows.ledger == f"sqlite:///{owner}/service.ledger"
    assert config.keys == owner / "keys.json"
    assert config.rows.mechanism.weight == dpx.weights.Gaussian(0.8)
    assert load_config(write_config(owner, **release_only())).release == owner / "people.dpx"


def test_no_toml_is_told(tmp_path):
    for text in (None, "[", "\x00", "port = " + "9" * 5000, "x = " + "[" * 5000):
        if text is not None:
            (tmp_path / "service.toml").write_text(text)
        with pytest.raises(dpx.DpexplainError):
            load_config(tmp_path / "service.toml")


@pytest.mark.parametrize("read", [read_heads, lambda path: KeyFile(path).list_keys(), dpx.ModelCard.read, draft_of_schema])
def test_files_nested_too_deeply_are_told(tmp_path, read):
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000)
    with pytest.raises(dpx.DpexplainError):
        read(path)


def test_a_list_of_answers_leaves_out_the_files_of_releases():
    assert without_file({"release": "moments", "sha256": "1f", "file": "AAAA"}) == {"release": "moments", "sha256": "1f"}
    assert without_file({"values": [0.1], "sums": {"moments": "AAAA"}}) == {"values": [0.1]}
