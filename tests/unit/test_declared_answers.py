"""What answers mean is declared: each is read by itself, and a declaration that does not fit is told before a private row is read."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC

import dpexplain as dpx
from dpexplain.errors import DataError, ParameterError
from dpexplain.noise.seeded import SeededNoise
from dpexplain.registration.cached_labels import from_model
from dpexplain.registration.declared_answers import AnswerDeclaration
from dpexplain.registration.label_column import from_column
from dpexplain.registration.labels import ask_model
from dpexplain.registration.made_up import made_up_like
from dpexplain.registration.model_sources import ModelSource

DOMAIN = dpx.Domain.encoded(2)
X = np.random.default_rng(0).random((40, 2))
SECRET = 0.123456789  # among the private rows only
X[7, 0] = SECRET


def labels_of(model=None, **declared):
    data = dpx.PrivateData(X, DOMAIN, **({} if model is None else {"model": model}), **declared)
    return data._rows._labels[: data.size]


def first(rows):
    return rows[:, 0]


def same(labels):
    return pytest.approx(labels, abs=0, nan_ok=True)


def read(answers, **declared):
    return AnswerDeclaration(**declared).resolve().labels(answers, len(answers)).tolist()


@pytest.mark.parametrize(
    "container", [list, tuple, np.array, lambda a: np.array(a, dtype=object), pd.Series, pl.Series, pa.array]
)
def test_a_probability_is_read_alike_in_every_container(container):
    assert read(container([0.0, 0.25, 1.0]), output="probability") == [-1, -0.5, 1]


def test_one_odd_answer_changes_no_other():
    soft = [0.8, 0.2, 0.5]
    plain = read(soft, output="probability")
    for odd in (None, float("nan"), "abc", True, b"x", [0.1, 0.9], {}, 10**400, object()):
        assert read([*soft, odd], output="probability")[:3] == plain
        array = np.fromiter([*soft, odd], dtype=object, count=4)
        assert read(array, output="probability")[:3] == plain
        assert read(["yes", "no", odd], output="class", target="yes")[:2] == [1, -1]
        assert read([1, 0, odd], output="class")[:2] == [1, -1]
        assert read([10.0, 0.0, odd], output="value", bounds=(0, 20))[:2] == [0, -1]


def test_one_row_without_an_answer_leaves_the_others_alone():
    """One None among soft answers used to make every one of them -1."""

    def with_none(rows):
        return [None if p == SECRET else float(p) for p in rows[:, 0]]

    found = labels_of(with_none, output="probability")
    others = np.arange(len(X)) != 7
    assert found[7] == 0
    assert found[others] == pytest.approx(2 * X[others, 0] - 1)


def test_a_row_that_the_model_cannot_answer_leaves_the_others_alone():
    def fragile(rows):
        if (rows[:, 0] == SECRET).any():
            raise ValueError(f"cannot score {SECRET}")
        return rows[:, 0]

    found = labels_of(fragile, output="probability")
    others = np.arange(len(X)) != 7
    assert found[7] == 0
    assert found[others] == pytest.approx(2 * X[others, 0] - 1)


@pytest.mark.parametrize(
    ("model", "declared", "message"),
    [
        (first, {}, r"go from 0\.\d+ to 0\.\d+\. Declare what the model's answers are: output='probability'"),
        (lambda rows: (rows[:, 0] > 0.5).astype(int), {}, r"go from 0 to 1\. Declare what"),
        (lambda rows: 100_000 * rows[:, 0], {}, r"output='value' with bounds="),
        (LinearRegression().fit(X, 100_000 * X[:, 0]), {}, r"output='value' with bounds="),
        (lambda rows: np.where(rows[:, 0] > 0.5, "yes", "no"), {}, "Declare output='class' and target="),
        (lambda rows: np.where(rows[:, 0] > 0.5, "yes", "no"), {"output": "class"}, "Pass target= one of them"),
        (lambda rows: np.where(rows[:, 0] > 0.5, "yes", "no"), {"output": "probability"}, "is not a number"),
        (lambda rows: 100_000 * rows[:, 0], {"output": "probability"}, "output='probability', but"),
        (lambda rows: 2 * rows[:, 0] - 1, {"output": "probability"}, "output='probability', but"),
        (first, {"output": "class"}, "output='class', but"),
        (lambda rows: 100_000 * (1 + rows[:, 0]), {"output": "value", "bounds": (0, 1)}, r"all outside bounds=\(0, 1\)"),
        (lambda rows: np.column_stack([first(rows)] * 2), {"output": "value", "bounds": (0, 1)}, "one number for each row"),
        (LogisticRegression().fit(X, X[:, 0] > 0.5), {"target": "rich"}, "target='rich' is not one of the model's classes"),
        (LogisticRegression().fit(X, np.where(X[:, 0] > 0.5, "rich", "poor")), {}, "target=1 is not one of"),
    ],
)
def test_a_declaration_that_does_not_fit_is_told_from_made_up_records(model, declared, message):
    seen = []

    class Watching:
        """The same model; no private row may be among what it is asked before the error."""

        def __init__(self):
            for name in ("predict_proba", "predict", "classes_"):
                if hasattr(model, name):
                    given = getattr(model, name)
                    setattr(self, name, self.watch(given) if callable(given) else given)

        def watch(self, question):
            return lambda rows: seen.append(rows) or question(rows)

        def __call__(self, rows):
            return self.watch(model)(rows)

    with pytest.raises(DataError, match=message):
        labels_of(Watching(), **declared)
    assert not any((rows == SECRET).any() for rows in seen)


def test_what_cannot_be_told_apart_is_only_warned_about():
    with pytest.warns(UserWarning, match="those outside bounds"):
        labels_of(lambda rows: 4 * rows[:, 0], output="value", bounds=(0, 2))
    with pytest.warns(UserWarning, match="none of 64 made-up records with target=7"):
        labels_of(lambda rows: (rows[:, 0] > 0.5).astype(int), output="class", target=7)


def test_what_a_model_offers_needs_no_declaration():
    hard = LinearSVC().fit(X, (X[:, 0] > 0.5).astype(int))
    assert set(labels_of(hard)) <= {-1.0, 1.0}
    assert dpx.PrivateData(X, DOMAIN, model=hard).answer_scale.kind == "class"
    both = dpx.PrivateData(X, DOMAIN, model=lambda rows: np.column_stack([1 - first(rows), first(rows)]))
    assert both.answer_scale.kind == "probability"
    assert labels_of(lambda rows: np.zeros(len(rows))).tolist() == [0.0] * 40  # a constant may be anything
    assert dpx.PrivateData(X, DOMAIN, labels=np.zeros(40)).answer_scale.kind == "label"


def test_values_are_clipped_row_by_row_and_told_in_their_own_units():
    data = dpx.PrivateData(X, DOMAIN, model=lambda rows: 1000 * rows[:, 0], output="value", bounds=(0, 1000))
    assert data._rows._labels[:40] == pytest.approx(2 * X[:, 0] - 1)
    assert data.answer_scale.answers(data._rows._labels[:40]) == pytest.approx(1000 * X[:, 0])
    assert dpx.PrivateData(X, DOMAIN, labels=1000 * X[:, 0], output="value", bounds=(0, 1000))._rows._labels[7] == pytest.approx(
        2 * SECRET - 1
    )
    (shard, _) = data.split(2)
    assert shard.answer_scale == data.answer_scale


@pytest.mark.parametrize(
    "declared",
    [{"output": "odds"}, {"bounds": (0, 1)}, {"output": "value"}, {"output": "value", "bounds": 3}, {"output": "value", "bounds": (1, 0)},
     {"output": "probability", "bounds": (0, 1)}, {"output": "value", "bounds": (0, float("nan"))}],
)  # fmt: skip
def test_a_declaration_without_meaning_is_refused(declared):
    with pytest.raises(ParameterError):
        labels_of(first, **declared)


@pytest.mark.parametrize(
    ("column", "declared", "expected"),
    [
        (pa.array([0.5, None, float("nan"), 7.0]), {}, [0.5, 0, 0, 1]),
        (pa.array([1, 0, None, 2**62]), {}, [1, -1, 0, -1]),
        (pa.array([True, False, None]), {}, [1, -1, 0]),
        (pa.array(["yes", "no", None]), {"target": "yes"}, [1, -1, 0]),
        (pa.array(["yes", "no", None]).dictionary_encode(), {"target": "yes"}, [1, -1, 0]),
        (pa.array([3, None, 5]), {"target": "5"}, [-1, 0, 1]),
        (pa.array([0.25, None, 1.0]), {"output": "probability"}, [-0.5, 0, 1]),
        (pa.array([50, None, 200]), {"output": "value", "bounds": (0, 100)}, [0, 0, 1]),
        (pa.array([0.0, 1.0, None]), {"output": "class", "target": 1}, [-1, 1, 0]),
    ],
)
def test_label_columns_are_read_by_declaration_or_type_each_entry_by_itself(column, declared, expected):
    table = pa.table({"y": column})
    assert from_column(table, "y", AnswerDeclaration(**declared)).tolist() == expected
    for i in range(len(column)):
        assert from_column(table.slice(i, 1), "y", AnswerDeclaration(**declared)).tolist() == [expected[i]]


def test_an_endpoint_that_has_no_answer_about_one_row_says_nothing_about_the_others():
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["instances"]
            odd = any(row["x0"] is None for row in rows)
            self.send_response(500 if odd and len(rows) > 1 else 200)
            self.end_headers()
            answers = [None if row["x0"] is None else row["x0"] for row in rows]
            self.wfile.write(b"" if odd and len(rows) > 1 else json.dumps({"predictions": answers}).encode())

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    table = pa.table({"x0": [0.8, None, 0.25, None], "x1": [0.0, 0.5, 1.0, None]})
    model = ModelSource(f"http://127.0.0.1:{server.server_port}/v1/models/m:predict").open(DOMAIN)
    found = from_model(model, table, DOMAIN, AnswerDeclaration(output="probability"))
    server.shutdown()
    server.server_close()
    thread.join(10)
    assert found == pytest.approx([0.6, 0, -0.5, 0])


def test_made_up_records_are_records_of_the_domain_in_the_kind_that_was_given():
    domain = dpx.Domain(
        [dpx.Numeric("n", 5, 9), dpx.Ordinal("o", levels=["a", "b", "c"]), dpx.Categorical("c", values=[1, 2]), dpx.Binary("b")]
    )
    for rows in ({"n": [5]}, [{"n": 5}], pd.DataFrame({"n": [5]}), pl.DataFrame({"n": [5]}), pa.table({"n": [5]})):
        made = made_up_like(rows, domain)
        assert isinstance(made, type(rows))
        assert len(domain.encode_queries(made)) == 64
    texts = dpx.TextDomain(["good", "bad"], column="text")
    for rows in (
        ["x"],
        [{"text": "x"}],
        pd.Series(["x"]),
        pl.Series(["x"]),
        np.array(["x"]),
        {"text": ["x"]},
        pd.DataFrame({"text": ["x"]}),
    ):
        made = made_up_like(rows, texts)
        assert isinstance(made, type(rows))
        assert (texts.encode(made).sum(axis=1) > 0).all()
    for bounds in (None, (0, 1)):
        images = dpx.ImageDomain((3, 2), bounds=bounds)
        made = made_up_like(np.zeros((1, 3, 2)), images)
        assert images.encode_queries(made).shape == (64, 6)


def test_seeded_noise_is_named_in_every_guarantee(tmp_path):
    data = dpx.PrivateData(X, DOMAIN, labels=np.sign(X[:, 0] - 0.5))
    ledger = f"sqlite:///{tmp_path / 'seeded.ledger'}"
    seeded = dpx.Explainer(data, dpx.Budget(1, 1e-3), dpx.Basic(0.1, 1e-3, steps=3), ledger=ledger, noise=SeededNoise(1))
    answer = seeded.explain([0.5, 0.5])
    for guarantee in (answer.guarantee, answer.cost, seeded.spent, data.spent):
        assert "noise came from a seed" in str(guarantee)
    secure = dpx.PrivateData(X, DOMAIN, labels=np.sign(X[:, 0] - 0.5))
    paid = dpx.Explainer(secure, dpx.Budget(1, 1e-3), dpx.Basic(0.1, 1e-3, steps=3)).explain([0.5, 0.5])
    assert "seed" not in str(paid.guarantee)


NUMBERS = [
    np.array([0.7, 1.0]),
    np.array([True, False]),
    np.array([1, 0]),
    np.array([1j, 0j]),
    [0.7, 1],
    [np.True_, np.float32(1)],
    np.array([0.7, 1.0], dtype=object),
]


@pytest.mark.parametrize("answers", NUMBERS, ids=lambda one: f"{type(one).__name__} of {type(one[0]).__name__}")
def test_a_number_is_not_the_name_of_a_class(answers):
    """It cannot be read, instead of counting as another class than the one that is explained."""
    assert np.isnan(AnswerDeclaration(target="approved").resolve().labels(answers, 2)).all()


def test_numbers_are_compared_with_a_class_that_is_a_number_in_words():
    assert AnswerDeclaration(target="1").resolve().labels([1, 0, "1", "approved"], 4).tolist() == [1, -1, 1, -1]
    assert AnswerDeclaration(target="approved").resolve().labels(["approved", 1.0, "refused", None], 4).tolist()[::2] == [1, -1]


def test_a_model_of_numbers_does_not_explain_a_class_by_its_name():
    rng = np.random.default_rng(0)
    rows = {"age": rng.random(400), "hours": rng.random(400)}
    domain, record = dpx.Domain([dpx.Numeric("age", 0, 1), dpx.Numeric("hours", 0, 1)]), {"age": 0.9, "hours": 0.5}
    names = lambda table: np.where(np.asarray(table["age"], dtype=float) > 0.5, "approved", "refused")  # noqa: E731
    scores = lambda table: np.asarray(table["age"], dtype=float)  # noqa: E731
    data = dpx.PrivateData(rows, domain, model=names, target="approved")
    release = dpx.release(data, dpx.Budget(1.0, 1e-6), reference=1024, noise=SeededNoise(0))
    assert release.shapley(record).answer == 1
    for ask in (lambda: release.shapley(record, model=scores), lambda: release.relabel(scores)):
        with pytest.raises(DataError, match="not names of classes, as target='approved' is"):
            ask()
    with pytest.raises(DataError, match=r"Declare|can be read"):
        dpx.PrivateData(rows, domain, model=scores, target="approved")


def test_a_target_in_another_spelling_is_suggested():
    with pytest.warns(UserWarning, match=r"target='Good' \(did you mean 'good'\?\), but with 'bad', 'good'\. Unless"):
        labels_of(lambda rows: np.where(rows[:, 0] > 0.5, "good", "bad"), output="class", target="Good")


def test_a_table_that_cannot_be_read_is_not_blamed_on_the_model():
    twice = pd.DataFrame(np.zeros((3, 4)), columns=["a", "b", "b", "c"])
    domain = dpx.Domain([dpx.Numeric("a", 0, 1), dpx.Numeric("b", 0, 1)])
    with pytest.raises(dpx.DpexplainError) as error:
        dpx.PrivateData(twice, domain, model=lambda rows: np.zeros(len(rows)), output="probability")
    assert str(error.value) == "the frame repeats a column name. Give every column its own name"


def test_a_model_that_takes_the_domains_columns_alone_is_said_to_do_so():
    def strict(rows):
        if list(rows.columns) != ["x0", "x1"]:
            raise ValueError(f"secret {rows.shape}")
        return rows["x0"].to_numpy()

    table = pd.DataFrame(X, columns=["x0", "x1"]).assign(who=1)
    with pytest.raises(
        DataError, match=r"raised ValueError on the private rows\..*: leave other columns out of the table"
    ) as error:
        dpx.PrivateData(table, DOMAIN, model=strict, output="probability")
    assert "secret" not in str(error.value)
    assert dpx.PrivateData(table[["x0", "x1"]], DOMAIN, model=strict, output="probability").size == len(table)


@pytest.mark.parametrize(
    ("answer", "declared", "label"),
    [
        (0.75, {"output": "probability"}, 0.5),
        (np.float32(0.75), {"output": "probability"}, 0.5),
        (np.array(0.75), {"output": "probability"}, 0.5),
        (np.array([0.25, 0.75]), {}, 0.5),
        ([0.25, 0.75], {}, 0.5),
        (pd.Series([0.25, 0.75]), {}, 0.5),
        ([0.1, 0.2, 0.7], {"output": "class", "target": 2}, 1.0),
        (15.0, {"output": "value", "bounds": (0, 20)}, 0.5),
        ("yes", {"output": "class", "target": "yes"}, 1.0),
        ({1: 0.75}, {}, 0.5),
    ],
)
def test_what_is_answered_about_one_row_may_lack_the_axis_of_rows(answer, declared, label):
    """`answers.squeeze()` drops it where a row is alone in a call, and other rows decide whether it is."""
    asked = []

    def model(rows):
        asked.append(len(rows))
        several = np.stack([answer] * len(rows)) if isinstance(answer, (np.ndarray, pd.Series)) else [answer] * len(rows)
        return answer if len(rows) == 1 else several

    reading = AnswerDeclaration(**declared).resolve()
    assert ask_model(model, np.zeros((1, 3)), 1, reading, "public").tolist() == [label]
    assert asked == [1, 2]


@pytest.mark.parametrize(
    ("answers", "declared"),
    [
        ([], {}),
        (np.empty(0), {}),
        (0.5, {"output": "probability"}),
        ([0.1, 0.2, 0.7], {"output": "class", "target": 2}),
        ([1.0, 2.0, 3.0], {"output": "value", "bounds": (0, 20)}),
        (np.zeros((1, 2, 2)), {}),
    ],
)
def test_a_model_that_answers_the_same_whatever_it_is_asked_is_refused(answers, declared):
    with pytest.raises(DataError, match="one answer for each"):
        ask_model(lambda rows: answers, np.zeros((1, 3)), 1, AnswerDeclaration(**declared).resolve(), "public")


@pytest.mark.parametrize(
    ("answers", "odd", "declared"),
    [
        ([0.25, 0.75], b"x", {"output": "probability"}),
        ([0.25, 0.75], b"x", {"output": "value", "bounds": (0, 1)}),
        ([1, 0], b"x", {"output": "class"}),
        (["yes", "no"], b"x", {"output": "class", "target": "yes"}),
        (["yes", "no", float("nan")], None, {"output": "class", "target": "yes"}),
    ],
)
@pytest.mark.parametrize("container", [list, tuple, np.array, pd.Series])
def test_what_a_container_makes_of_all_answers_beside_an_odd_one_changes_none(answers, odd, declared, container):
    assert read(container([*answers, odd]), **declared)[: len(answers)] == same(read(container(answers), **declared))
    names = pa.array(["yes", "no", b"x"])  # all of them are bytes
    assert read(names, output="class", target="yes") == [1, -1, -1]


def test_the_name_of_a_class_may_be_nan():
    assert read(["nan", "x"], output="class", target="nan") == [1, -1]
    assert read(["nan", "x", "7"], output="class", target="x") == same([float("nan"), 1, -1])


@pytest.mark.parametrize("answers", [0.75, [0.25, 0.75]])
def test_labels_that_were_computed_elsewhere_are_one_for_each_row(answers):
    with pytest.raises(DataError, match="one number for each of the 1 rows"):
        dpx.PrivateData(X[:1], DOMAIN, labels=answers)


@pytest.mark.parametrize("odd", [[[1], [2, 3]], [], [[0.1, 0.9]], np.array(0.5, dtype=object)])
def test_an_answer_of_nested_lists_is_no_answer_and_stops_nothing(odd):
    labels = [0.5, odd, -0.25]
    assert dpx.PrivateData(X[:3], DOMAIN, labels=labels)._rows._labels[:3].tolist() == [0.5, 0, -0.25]
    nested = pa.table({"y": pa.array([[0.5], [0.25, 0.75], None])})
    assert from_column(nested, "y", AnswerDeclaration(output="probability")).tolist() == [0, 0.5, 0]
