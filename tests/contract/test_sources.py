"""An owner's models: every kind gives the labels of the same model, and none runs code that the owner did not allow."""

from __future__ import annotations

import json
import os
import pickle
import stat
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer

import joblib
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import dpexplain as dpx
from dpexplain.backends.streaming import StreamedRows
from dpexplain.core.moments import LocalMoments
from dpexplain.data import PrivateData
from dpexplain.errors import DataError, InputError, NotPrivateError
from dpexplain.registration import memory_limit as memory
from dpexplain.registration.cached_labels import BATCH, from_model
from dpexplain.registration.declared_answers import AnswerDeclaration
from dpexplain.registration.model_sources import ModelSource
from dpexplain.registration.options import RegistrationOptions
from dpexplain.registration.sources import DataSource, decide_streaming, register
from dpexplain.registration.tables import read_private

DOMAIN = dpx.Domain([dpx.Numeric("age", 0, 100), dpx.Categorical("work", values=["a", "b", "c"])])


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    return pa.table({"age": rng.uniform(0, 100, 500), "work": rng.choice(["a", "b", "c"], 500)})


@pytest.fixture(scope="module")
def y(table):
    age, work = table["age"].to_numpy(), table["work"].to_numpy(zero_copy_only=False)
    return ((age > 50) ^ (work == "b")).astype(int)


@pytest.fixture(scope="module")
def encoded_model(table, y):
    return LogisticRegression().fit(DOMAIN.encode(table), y)


@pytest.fixture(scope="module")
def raw(table, y):
    return make_pipeline(
        make_column_transformer((OneHotEncoder(), ["work"]), remainder="passthrough"), LogisticRegression(max_iter=500)
    ).fit(table.to_pandas(), y)


def labels(source, table, **options):
    progress = options.pop("progress", iter)
    return from_model(source.open(DOMAIN), table, DOMAIN, AnswerDeclaration(1, **options), progress)


LABELS = {"output": "value", "bounds": (-1, 1)}


def expected_labels(model, rows):
    return 2 * model.predict_proba(rows)[:, 1] - 1


def test_onnx(tmp_path, table, encoded_model):
    pytest.importorskip("onnxruntime", reason="onnxruntime is missing, ONNX models are NOT tested")
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is missing, ONNX models are NOT tested")
    from skl2onnx.common.data_types import FloatTensorType

    for zipmap in (False, True):
        kind = [("x", FloatTensorType([None, DOMAIN.width]))]
        made = skl2onnx.convert_sklearn(encoded_model, initial_types=kind, options={id(encoded_model): {"zipmap": zipmap}})
        (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
        found = labels(ModelSource(str(tmp_path / "m.onnx")), table)
        assert found == pytest.approx(expected_labels(encoded_model, DOMAIN.encode(table)), abs=1e-5)
    classes = labels(ModelSource(str(tmp_path / "m.onnx")), table, output="class")
    assert set(classes) == {-1.0, 1.0}


def test_onnx_with_one_input_for_each_column(tmp_path, table, raw):
    pytest.importorskip("onnxruntime")
    skl2onnx = pytest.importorskip("skl2onnx")
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    kinds = [("age", FloatTensorType([None, 1])), ("work", StringTensorType([None, 1]))]
    (tmp_path / "m.onnx").write_bytes(
        skl2onnx.convert_sklearn(raw, initial_types=kinds, options={"zipmap": False}).SerializeToString()
    )
    found = labels(ModelSource(str(tmp_path / "m.onnx")), table)
    assert found == pytest.approx(expected_labels(raw, table.to_pandas()), abs=1e-4)


def test_skops(tmp_path, table, encoded_model, raw):
    io = pytest.importorskip("skops.io", reason="skops is missing, its files are NOT tested")
    for model, rows in ((encoded_model, DOMAIN.encode(table)), (raw, table.to_pandas())):
        io.dump(model, tmp_path / "m.skops")
        assert labels(ModelSource(str(tmp_path / "m.skops")), table) == pytest.approx(expected_labels(model, rows))


class Foreign(LogisticRegression):
    """A type that skops does not know."""


def test_skops_refuses_types_it_does_not_know(tmp_path, table, y):
    io = pytest.importorskip("skops.io")
    io.dump(Foreign().fit(DOMAIN.encode(table), y), tmp_path / "m.skops")
    with pytest.raises(NotPrivateError, match="Foreign"):
        labels(ModelSource(str(tmp_path / "m.skops")), table)
    assert len(labels(ModelSource(str(tmp_path / "m.skops"), trusted=True), table)) == 500


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


@pytest.mark.parametrize("name", ["m.pkl", "m.pickle", "m.joblib"])
def test_a_pickle_runs_nothing_unless_trusted(tmp_path, table, encoded_model, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(NotPrivateError, match="trusted = true"):
        labels(ModelSource(name), table)
    assert not (tmp_path / "exploded").exists()
    joblib.dump(encoded_model, tmp_path / name)
    assert labels(ModelSource(name, trusted=True), table) == pytest.approx(expected_labels(encoded_model, DOMAIN.encode(table)))


@pytest.fixture
def endpoint(encoded_model):
    """A model server on this machine that speaks both protocols."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path.endswith("/moved:predict"):
                self.send_response(302)
                self.send_header("Location", "http://127.0.0.1:1/")
                self.end_headers()
                return
            if "instances" in body:
                answer = {"predictions": encoded_model.predict_proba(DOMAIN.encode(body["instances"])).tolist()}
            else:
                (given,) = body["inputs"]
                found = encoded_model.predict_proba(np.reshape(given["data"], given["shape"]))
                answer = {
                    "outputs": [{"name": "p", "shape": list(found.shape), "datatype": "FP64", "data": found.ravel().tolist()}]
                }
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join(10)


@pytest.mark.parametrize("path", ["/v1/models/m:predict", "/v2/models/m/infer"])
def test_an_endpoint_that_speaks_kserve(endpoint, table, encoded_model, path):
    assert labels(ModelSource(endpoint + path), table) == pytest.approx(expected_labels(encoded_model, DOMAIN.encode(table)))


def test_rows_go_nowhere_else(endpoint, table):
    with pytest.raises(NotPrivateError, match="unencrypted"):
        labels(ModelSource("http://model.example/v1/models/m:predict"), table)
    with pytest.raises(DataError, match="ConnectionError"):
        labels(ModelSource(f"{endpoint}/v1/models/moved:predict"), table)
    with pytest.raises(DataError, match="ConnectionError"):
        labels(ModelSource("http://127.0.0.1:1/v1/models/m:predict"), table)
    with pytest.raises(DataError, match="neither KServe"):
        labels(ModelSource(f"{endpoint}/predict"), table)


def test_an_import_path(tmp_path, table, monkeypatch):
    code = "import numpy as np\ndef score(rows):\n    return np.asarray(rows['age']) / 50 - 1\ndef of(x):\n    return x[:, 0]\n"
    (tmp_path / "my_black_box.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    assert labels(ModelSource("my_black_box:score"), table, **LABELS) == pytest.approx(table["age"].to_numpy() / 50 - 1)
    assert labels(ModelSource("my_black_box:of", input="encoded"), table, **LABELS) == pytest.approx(
        table["age"].to_numpy() / 100
    )
    for wrong in ("my_black_box:nothing", "no_such_module:x"):
        with pytest.raises(DataError, match="cannot import"):
            labels(ModelSource(wrong), table)


@pytest.mark.parametrize("where", ["model", "model.h5", "none.onnx", "none.skops"])
def test_what_cannot_be_a_model_is_told(where, table):
    with pytest.raises(DataError):
        labels(ModelSource(where), table)


@pytest.mark.parametrize("name", ["m.onnx", "m.skops"])
def test_damaged_model_files_are_told(tmp_path, table, name):
    (tmp_path / name).write_bytes(b"not a model")
    with pytest.raises(DataError, match=r"m\.(onnx|skops)"):
        labels(ModelSource(str(tmp_path / name)), table)


def test_batches_report_progress_and_give_the_same(table, tmp_path, monkeypatch):
    big = pa.concat_tables([table] * (2 * BATCH // 500 + 1))
    seen = []
    (tmp_path / "black_box_two.py").write_text("def score(rows):\n    return [a / 100 for a in rows['age'].to_pylist()]\n")
    monkeypatch.chdir(tmp_path)
    found = labels(
        ModelSource("black_box_two:score"), big, **LABELS, progress=lambda starts: (seen.append(s) or s for s in starts)
    )
    assert seen == [0, BATCH, 2 * BATCH]
    assert found == pytest.approx(big["age"].to_numpy() / 100)


def test_a_cache_saves_asking_and_knows_when_it_is_stale(tmp_path, table, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(table, "rows.parquet")
    (tmp_path / "black_box_three.py").write_text(
        "asked = 0\ndef score(rows):\n    global asked\n    asked += 1\n    return [0.5] * rows.num_rows\n"
    )
    source = DataSource(
        tmp_path / "rows.parquet", DOMAIN, model=ModelSource("black_box_three:score"), cache=tmp_path / "labels.npz"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import black_box_three

    for _ in range(2):
        register(source)
    assert black_box_three.asked == 2 + 1  # about made-up records each time, and about the rows once
    assert stat.S_IMODE(os.stat("labels.npz").st_mode) == 0o600
    pq.write_table(table.slice(1), "rows.parquet")
    register(source)
    assert black_box_three.asked == 3 + 2
    (tmp_path / "labels.npz").write_bytes(b"torn")
    with pytest.raises(DataError, match="not a label cache"):
        register(source)


def test_private_files_are_parquet_with_the_named_columns(tmp_path, table):
    pq.write_table(table, tmp_path / "rows.parquet")
    assert read_private(tmp_path / "rows.parquet", ["age"]).column_names == ["age"]
    (tmp_path / "folder").mkdir()
    for part in ("a", "b"):
        pq.write_table(table, tmp_path / "folder" / f"{part}.parquet")
    assert read_private(tmp_path / "folder", ["age", "work"]).num_rows == 1000
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 not really")
    for path, columns in (("rows.parquet", ["nothing"]), ("none.parquet", ["age"]), ("bad.parquet", ["age"])):
        with pytest.raises(DataError):
            read_private(tmp_path / path, columns)


@pytest.mark.parametrize("labelled", ["column", "model"])
def test_streamed_rows_are_labelled_and_answer_as_those_in_memory(tmp_path, table, monkeypatch, labelled):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "black_box_four.py").write_text("def score(rows):\n    return [a / 100 for a in rows['age'].to_pylist()]\n")
    table = table.append_column("yes", pa.array(table["age"].to_numpy() > 50))
    for part in range(3):
        pq.write_table(table.slice(200 * part, 200), f"{part}.parquet", row_group_size=90)
    where = (
        {"label": "yes"}
        if labelled == "column"
        else {"model": ModelSource("black_box_four:score"), "terms": RegistrationOptions(**LABELS)}
    )
    held, streamed = (
        PrivateData.from_registered(register(DataSource("*.parquet", DOMAIN, stream=stream, **where))) for stream in (False, True)
    )
    query = LocalMoments(np.full(DOMAIN.width, 0.3), dpx.weights.Stable())
    ours, theirs = streamed._rows.local(query), held._rows.local(query)
    assert isinstance(streamed._rows, StreamedRows)
    assert streamed.size == held.size == table.num_rows
    assert pytest.approx(theirs.A, rel=1e-12) == ours.A
    assert ours.b == pytest.approx(theirs.b, rel=1e-12)


def test_rows_that_do_not_fit_into_memory_stay_in_their_files(tmp_path, table, monkeypatch):
    pq.write_table(table, tmp_path / "rows.parquet")
    source = DataSource(tmp_path / "rows.parquet", DOMAIN, label="age")
    needed = table.num_rows * (4 * DOMAIN.width + 8) + table.nbytes
    for free, copies, stream in ((None, 9, False), (100 * needed, 1, False), (100 * needed, 200, True), (needed // 2, 1, True)):
        monkeypatch.setattr(memory, "available", lambda free=free: free)
        assert decide_streaming(source, copies).stream is stream
        assert decide_streaming(replace(source, stream=not stream), copies).stream is not stream
    with pytest.raises(InputError, match="true or false"):
        replace(source, stream="yes")


def test_free_memory_is_the_least_of_machine_and_container(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_GROUP", tmp_path)
    assert memory.available() is None
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable: 5 kB\n")
    assert memory.available() == 5120
    (tmp_path / "memory.max").write_text("3000\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert memory.available() == 2000
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.available() == 5120
