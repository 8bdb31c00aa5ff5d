"""Rows that stay in Parquet files answer as the same rows in memory, and say what is wrong before anything is spent."""

import os
from math import fsum

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import dpexplain as dpx
from dpexplain.backends import encoded, parquet
from dpexplain.backends.encoded import UsedRows
from dpexplain.backends.summed import ADDING, total
from dpexplain.core.label_moments import LabelMoments, LabelSums
from dpexplain.core.layout import Layout
from dpexplain.core.moments import LocalMoments
from dpexplain.errors import DataError, ParameterError, RowsUnavailable
from dpexplain.noise.seeded import SeededNoise
from dpexplain.registration import scanning
from dpexplain.registration.owners import arrow_owner_names, keep_first, owner_names
from hypothesis_support import examples

LABELS = {"output": "value", "bounds": (-1, 1)}
DOMAIN = dpx.Domain([dpx.Numeric("age", 0, 100), dpx.Categorical("work", values=["a", "b"]), dpx.Binary("married")])
RECORD = {"age": 40, "work": "a", "married": True}
ROWS = 700


def table(seed=0, rows=ROWS):
    """Rows with everything that can be wrong with a value."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(-10, 110, rows)
    age[::50], age[1::50] = np.nan, np.inf
    y = rng.uniform(-1.5, 1.5, rows)
    return pa.table(
        {
            "age": pa.array(age, mask=rng.random(rows) < 0.05),
            "work": pa.array(rng.choice(["a", "b", "?"], rows), mask=rng.random(rows) < 0.1),
            "married": pa.array(rng.random(rows) < 0.5, mask=rng.random(rows) < 0.1),
            "y": y,
            "yes": y > 0,
            "code": (y > 0).astype(np.int32),
            "class": pa.array(np.where(y > 0, "high", "low")).dictionary_encode(),
            "person": pa.array(rng.integers(0, rows // 3, rows), mask=rng.random(rows) < 0.02),
        }
    )


@pytest.fixture
def folder(tmp_path):
    """Three files whose row groups end here and there."""
    whole = table()
    for name, first, last in (("1", 0, 300), ("2", 300, 301), ("3", 301, ROWS)):
        pq.write_table(whole.slice(first, last - first), tmp_path / f"{name}.parquet", row_group_size=90)
    return tmp_path


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    monkeypatch.setattr(encoded, "PART_BYTES", 0)
    monkeypatch.setattr(encoded, "FEWEST_ROWS", 256)
    monkeypatch.setattr(scanning, "BATCH", 64)


def local(data):
    return data._rows.local(LocalMoments(np.full(4, 0.4), dpx.weights.Stable()))


def same(one, other):
    assert one.size == other.size
    for ours, theirs in ((local(one).A, local(other).A), (local(one).b, local(other).b)):
        assert ours == pytest.approx(theirs, rel=1e-12, abs=1e-12)


def test_a_scan_answers_as_the_rows_in_memory(folder):
    memory = dpx.PrivateData(table(), DOMAIN, labels=table()["y"].to_numpy())
    for where in (folder, f"{folder}/*.parquet", folder.as_uri(), f"{folder.as_uri()}/[123].parquet", sorted(folder.iterdir())):
        same(dpx.PrivateData.scan(where, DOMAIN, label="y"), memory)


@pytest.mark.parametrize(("label", "target"), [("yes", None), ("code", None), ("code", 1), ("class", "high")])
def test_label_columns_are_read_by_their_declared_type(folder, label, target):
    memory = dpx.PrivateData(table(), DOMAIN, labels=table()["yes"].to_numpy())
    same(dpx.PrivateData.scan(folder, DOMAIN, label=label, target=target), memory)


def test_a_model_is_asked_once_about_every_row_as_it_stands_in_the_files(folder):
    asked = []

    def model(rows):
        asked.append(rows.num_rows)
        return np.clip(rows["y"].to_numpy(), -1, 1)

    data = dpx.PrivateData.scan(folder, DOMAIN, model=model, output="value", bounds=(-1, 1))
    same(data, dpx.PrivateData(table(), DOMAIN, labels=table()["y"].to_numpy()))
    assert data.answer_scale.kind == "value"
    assert sum(asked[1:]) == ROWS  # after 64 made-up records
    assert max(asked) <= 64


def test_an_estimator_fitted_on_a_frame_gets_a_frame_of_its_own_columns(folder):
    frame = table().to_pandas()
    forest = LogisticRegression().fit(frame[["code", "y"]], frame["yes"])
    data = dpx.PrivateData.scan(folder, DOMAIN, model=forest, target=True)
    same(data, dpx.PrivateData(table(), DOMAIN, labels=2 * forest.predict_proba(frame[["code", "y"]])[:, 1] - 1))
    other = LogisticRegression().fit(pd.DataFrame({"gone": [0.0, 1.0]}), [0, 1])
    with pytest.raises(DataError, match="fitted with a column 'gone'"):
        dpx.PrivateData.scan(folder, DOMAIN, model=other)


@pytest.mark.slow
def test_reference_data_are_labelled_by_the_model_of_a_scan(folder):
    def model(rows):
        return np.tanh(np.nan_to_num(rows["age"].to_numpy(zero_copy_only=False).astype(float), posinf=0) / 50 - 1)

    data = dpx.PrivateData.scan(folder, DOMAIN, model=model)
    release = dpx.release(data, dpx.Budget(8, 1e-4), noise=SeededNoise(1), reference=1024)
    assert release.reference.labels is not None


@pytest.mark.parametrize("most", [1, 2])
def test_the_first_rows_of_each_owner_are_kept_as_in_memory(folder, most):
    options = {"unit": "person", "max_rows_per_unit": most}
    memory = dpx.PrivateData(table(), DOMAIN, labels=table()["y"].to_numpy(), **options)
    same(dpx.PrivateData.scan(folder, DOMAIN, label="y", **options), memory)
    same(dpx.PrivateData.scan(folder, DOMAIN, model=lambda rows: rows["y"].to_numpy(), **LABELS, **options), memory)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.sampled_from([1, 2, 3, 1.5, None, float("nan")]), min_size=1, max_size=60), st.integers(1, 4), st.integers(1, 20)
)
def test_owners_are_counted_across_batches(owners, most, batch):
    column = pa.array([None if owner is None else float(owner) for owner in owners])
    seen, kept = {}, UsedRows(len(owners))
    for start in range(0, len(owners), batch):
        kept.write_flags(start, keep_first(arrow_owner_names(column.slice(start, batch)), most, seen))
    wanted = np.flatnonzero(keep_first(owner_names(column.to_pylist()), most, {}))
    assert np.flatnonzero(kept.read_flags(0, len(owners))).tolist() == wanted.tolist()
    assert kept.count == len(wanted)
    assert kept.read_flags(len(owners) // 2, 1)[0] == (len(owners) // 2 in wanted)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=200))
def test_partial_sums_are_added_without_losing_digits(values):
    computed = total(np.array([value, 1.0]) for value in values)
    assert abs(computed[0] - fsum(values)) <= ADDING * fsum(map(abs, values))
    assert computed[1] == len(values)


def test_a_release_of_a_scan_is_that_of_the_rows_in_memory(folder):
    budget = dpx.Budget(2, 1e-6)
    memory = dpx.PrivateData(table(), DOMAIN, labels=table()["y"].to_numpy())
    one, other = (
        dpx.release(data, budget, noise=SeededNoise(3), reference=1024)
        for data in (memory, dpx.PrivateData.scan(folder, DOMAIN, label="y"))
    )
    assert other.explain(RECORD).values == pytest.approx(one.explain(RECORD).values, rel=1e-5, abs=1e-8)
    assert other.guarantee == one.guarantee
    assert (other.reference.encoded == one.reference.encoded).all()


def test_the_number_of_rows_shows_in_nothing_public_when_a_size_is_declared(folder, tmp_path):
    pq.write_table(table(rows=400), tmp_path / "fewer.parquet")
    few = dpx.PrivateData.scan(tmp_path / "fewer.parquet", DOMAIN, label="y", size=600)
    many = dpx.PrivateData.scan(f"{folder}/[123].parquet", DOMAIN, label="y", size=600)
    assert few.setting == many.setting


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda folder: None, {"label": "why"}, r"no column 'why'"),
        (lambda folder: None, {"label": "y", "unit": "persons"}, "did you mean 'person'"),
        (lambda folder: None, {"label": "class"}, "Say which class to explain"),
        (lambda folder: None, {}, "exactly one of model="),
        (lambda folder: None, {"label": "y", "size": 100}, "less than half"),
        (lambda folder: (folder / "4.parquet").write_bytes(b"PAR1 no"), {"label": "y"}, "as Parquet"),
        (lambda folder: pq.write_table(table().drop(["age"]), folder / "4.parquet"), {"label": "y"}, "no column 'age'"),
        (
            lambda folder: pq.write_table(table().set_column(3, "y", pa.array(["1"] * ROWS)), folder / "4.parquet"),
            {"label": "y"},
            "Write all files with one schema",
        ),
        (lambda folder: [file.unlink() for file in folder.iterdir()], {"label": "y"}, "no Parquet files"),
        (
            lambda folder: [pq.write_table(table(rows=0), file) for file in folder.iterdir()],
            {"label": "y"},
            "no rows",
        ),
    ],
)
def test_what_is_wrong_with_files_is_told_at_registration(folder, change, options, message):
    change(folder)
    with pytest.raises(DataError, match=message):
        dpx.PrivateData.scan(folder, DOMAIN, **options)


def rewritten(folder):
    pq.write_table(table(seed=1).slice(0, 300), folder / "1.parquet", row_group_size=90)


def same_size_and_time_but_other_statistics(folder):
    file = folder / "1.parquet"
    before = file.stat()
    whole = bytearray(file.read_bytes())
    whole[-20] ^= 1  # in the footer
    file.write_bytes(whole)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("change", [rewritten, lambda folder: (folder / "2.parquet").unlink()])
def test_files_that_change_are_refused_before_anything_is_spent(folder, change):
    data = dpx.PrivateData.scan(folder, DOMAIN, label="y")
    explainer = dpx.Explainer(data, dpx.Budget(1, 1e-6), dpx.Basic(0.1, 1e-7, steps=5))
    explainer.explain(RECORD)
    spent = data.spent
    change(folder)
    with pytest.raises(RowsUnavailable, match="Register them again"):
        explainer.explain(RECORD)
    with pytest.raises(RowsUnavailable, match="Register them again"):
        dpx.release(data, dpx.Budget(1, 1e-6))
    assert data.spent == spent


def test_a_file_that_was_tampered_with_is_refused_when_it_is_read(folder):
    data = dpx.PrivateData.scan(folder, DOMAIN, label="y")
    same_size_and_time_but_other_statistics(folder)
    with pytest.raises(RowsUnavailable, match="changed since they were registered"):
        local(data)


def test_a_damaged_page_is_told_without_quoting_it(folder):
    data = dpx.PrivateData.scan(folder, DOMAIN, label="y")
    file = folder / "1.parquet"
    before, whole = file.stat(), bytearray(file.read_bytes())
    whole[4:200] = b"\xff" * 196
    file.write_bytes(whole)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(RowsUnavailable, match=r"^the files of private rows cannot be read now") as told:
        local(data)
    assert told.value.__cause__ is None


def test_a_question_that_is_wrong_is_told_as_in_memory(folder):
    data = dpx.PrivateData.scan(folder, DOMAIN, label="y")
    with pytest.raises(ParameterError, match="one number for each distance"):
        data._rows.local(LocalMoments(np.full(4, 0.4), dpx.weights.Custom(lambda d: d[:1])))


def test_many_questions_share_one_pass(folder, monkeypatch):
    opened = []
    real = parquet.ParquetFiles._open_file
    monkeypatch.setattr(parquet.ParquetFiles, "_open_file", lambda self, known: opened.append(known.path) or real(self, known))
    data = dpx.PrivateData.scan(folder, DOMAIN, label="y")
    opened.clear()
    data._rows.local_many([LocalMoments(np.full(4, z), dpx.weights.Stable()) for z in (0.1, 0.5, 0.9)])
    assert len(opened) == 3


def test_labels_of_a_model_are_kept_in_a_file_without_a_name(folder, tmp_path_factory, monkeypatch):
    place = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(place))
    data = dpx.PrivateData.scan(folder, DOMAIN, model=lambda rows: rows["y"].to_numpy(), **LABELS)
    assert list(place.iterdir()) == []
    local(data)


@pytest.mark.slow
def test_texts_stay_in_files_too(tmp_path):
    words = ["good", "bad", "film", "plot"]
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice([*words, "other"], 6)) for _ in range(500)]
    rows = pa.table({"text": texts, "y": rng.integers(-4, 5, 500) / 4})
    pq.write_table(rows, tmp_path / "texts.parquet", row_group_size=70)
    domain = dpx.TextDomain(words, column="text")
    memory = dpx.PrivateData(rows, domain, labels=rows["y"].to_numpy())
    scanned = dpx.PrivateData.scan(tmp_path, domain, label="y")
    query = LocalMoments(np.array([1.0, 0, 1, 0]), dpx.weights.Stable())
    ours, theirs = scanned._rows.local(query), memory._rows.local(query)
    assert pytest.approx(theirs.A, rel=1e-12) == ours.A
    assert ours.b == pytest.approx(theirs.b, rel=1e-12)
    one, other = (dpx.release(data, dpx.Budget(4, 1e-5), noise=SeededNoise(2)) for data in (memory, scanned))
    assert other.explain("good film").values == pytest.approx(one.explain("good film").values, rel=1e-6, abs=1e-9)


def test_a_scan_cannot_be_split_and_says_so(folder):
    with pytest.raises(DataError, match="cannot be split"):
        dpx.PrivateData.scan(folder, DOMAIN, label="y").split(2)


@pytest.mark.parametrize("options", [{}, {"unit": "person", "max_rows_per_unit": 2}], ids=["rows", "units"])
def test_shapley_values_are_to_the_last_bit_those_of_the_rows_in_memory(folder, options):
    def model(rows):
        X = DOMAIN.encode(rows)
        return np.tanh(X @ np.array([2.0, 1.0, -1.0, 0.5]) + X[:, 0] * X[:, 3] - 1)

    memory = dpx.PrivateData(table(), DOMAIN, model=model, **options)
    scanned = dpx.PrivateData.scan(folder, DOMAIN, model=model, **options)
    for rows in (None, 200):
        one, other = (
            dpx.Explainer(data, dpx.Budget(9, 1e-6), dpx.Shapley(1.0, rows=rows), noise=SeededNoise(3)).explain(RECORD)
            for data in (memory, scanned)
        )
        assert (one.values == other.values).all()
        assert one.details == other.details
    labelled = dpx.Explainer(dpx.PrivateData.scan(folder, DOMAIN, label="y"), dpx.Budget(9, 1e-6), dpx.Shapley(1.0))
    with pytest.raises(ParameterError, match="model="):
        labelled.explain(RECORD)
    assert labelled.spent.mu == 0


class Grades:
    """Probabilities of three classes by name."""

    classes_ = np.array(["low", "middle", "high"])

    def predict_proba(self, rows):
        ages = np.array([50.0 if age is None or not np.isfinite(age) else age for age in rows["age"].to_pylist()])
        scores = np.stack([-ages / 20, np.full(len(ages), -1.0), ages / 40 - 2], axis=1)
        return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)


@pytest.mark.slow
def test_all_classes_of_rows_in_files_are_those_of_rows_in_memory(folder):
    both = (
        dpx.PrivateData(table(), DOMAIN, model=Grades(), target="all"),
        dpx.PrivateData.scan(folder, DOMAIN, model=Grades(), target="all"),
    )
    asked = LabelMoments(Layout.of(DOMAIN.blocks), np.full(DOMAIN.width, 0.5), np.full(DOMAIN.width, 0.1))
    question = LabelSums(asked, lambda rows: np.column_stack([rows[:, 0], 1 - rows[:, 0]]))
    for mine, theirs in zip(*(data.private_rows.label_sums(question) for data in both), strict=True):
        np.testing.assert_allclose(asked.vector(theirs), asked.vector(mine), rtol=1e-12)
    one, other = (dpx.release(data, dpx.Budget(2, 1e-6), noise=SeededNoise(3), reference=1024) for data in both)
    assert one.targets == other.targets == ("low", "middle", "high")
    assert other.guarantee == one.guarantee
    for name in one.targets:  # answers are mixed by their errors, and those come from rounded rehearsals
        explained = one.explain(RECORD, target=name), other.explain(RECORD, target=name)
        assert np.linalg.norm(explained[1].values - explained[0].values) < 1e-3 * np.linalg.norm(explained[0].values)


@pytest.mark.slow
def test_a_second_model_is_asked_about_rows_in_files(folder):
    data = dpx.PrivateData.scan(folder, DOMAIN, model=Grades(), target="low")
    release = dpx.release(data, dpx.Budget(2, 1e-6), noise=SeededNoise(3), reference=1024)
    refined = release.refine(data, Grades(), target="high", spend=dpx.Budget(2, 1e-6), noise=SeededNoise(4))
    assert refined.guarantee.mu > release.guarantee.mu
    age = DOMAIN.names.index("age")
    assert release.explain(RECORD).values[age] < 0 < refined.explain(RECORD).values[age]


def test_all_classes_need_a_model_that_lists_them(folder):
    with pytest.raises(DataError, match="classes_"):
        dpx.PrivateData.scan(folder, DOMAIN, label="y", target="all")
