"""Texts through the whole public interface: register, release, explain, pay query by query, store, load, and the command line."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from typer.testing import CliRunner

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.cli import app
from dpexplain.errors import DataError, ParameterError, QueryError
from dpexplain.ledger import open_ledger
from dpexplain.noise.seeded import SeededNoise
from dpexplain.service.app import Service, create_app
from dpexplain.service.backend import LedgerBackend
from dpexplain.service.config import Settings
from service_support import InProcess

VOCABULARY = ["the", "film", "good", "great", "bad", "boring", "plot", "actors", "don't", "watch", "again", "music"]
RECORD = "A great film, good music. Don't miss it!"


def reviews(m=4000, seed=0):
    """Sentences of random words; the mood of a few of them decides."""
    rng = np.random.default_rng(seed)
    present = rng.random((m, len(VOCABULARY))) < rng.uniform(0.15, 0.6, len(VOCABULARY))
    mood = present @ np.array([0, 0, 2, 3, -3, -2, 0, 0, -1, 0, 1, 0]) + rng.normal(0, 0.5, m)
    texts = [" ".join(["So:", *np.array(VOCABULARY)[row]]) + "!" for row in present]
    return texts, np.where(mood > np.median(mood), 1.0, -1.0)


@pytest.fixture(scope="module")
def domain():
    return dpx.TextDomain(VOCABULARY)


@pytest.fixture(scope="module")
def data(domain):
    texts, labels = reviews()
    return dpx.PrivateData(texts, domain, labels=labels)


@pytest.fixture(scope="module")
def release(data):
    return dpx.release(data, dpx.Budget(epsilon=4.0, delta=1e-6), noise=SeededNoise(1))


def test_one_release_explains_any_text(release, data, domain, tmp_path):
    explanation = release.explain(RECORD)
    assert explanation.names == domain.names
    assert explanation.cost.epsilon == 0
    assert {name for name, _, _ in explanation.top(4)} >= {"great", "bad"}
    assert evaluation.score(explanation.values, data, RECORD).cosine > 0.98
    release.save(tmp_path / "reviews.dpx")
    loaded = dpx.load(tmp_path / "reviews.dpx")
    assert loaded.domain == domain
    assert (loaded.explain(RECORD).values == explanation.values).all()
    many = loaded.explain_many(pd.Series([RECORD, "boring plot"]))
    assert many[0].values == pytest.approx(explanation.values)
    with pytest.raises(QueryError, match="no words"):
        loaded.explain("")


def test_sparse_and_dense_rows_give_the_same_release(domain, release):
    texts, labels = reviews()
    binary = dpx.Domain([dpx.Binary(word) for word in VOCABULARY])
    columns = dict(zip(VOCABULARY, domain.encode(texts).toarray().T == 1, strict=True))
    dense = dpx.release(dpx.PrivateData(columns, binary, labels=labels), dpx.Budget(4.0, 1e-6), noise=SeededNoise(1))
    record = {word: word in ("great", "film", "good", "music", "don't") for word in VOCABULARY}
    assert dense.explain(record).values == pytest.approx(release.explain(RECORD).values, abs=1e-6)


def test_a_model_of_texts_labels_the_texts_as_given(domain):
    texts, labels = reviews(1000)
    model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(texts, labels)
    data = dpx.PrivateData(pd.Series(texts), domain, model=model)
    assert data._rows._labels == pytest.approx((2 * model.predict_proba(texts)[:, 1] - 1) * 2.0**36, abs=1)
    with pytest.raises(ParameterError, match="records of a table"):
        dpx.release(data, dpx.Budget(1.0, 1e-6), reference=True)


def test_owners_of_several_texts(domain):
    texts, labels = reviews(60)
    frame = pd.DataFrame({"review": texts, "author": np.arange(60) % 20})
    named = dpx.TextDomain(VOCABULARY, column="review")
    data = dpx.PrivateData(frame, named, labels=labels, unit="author", max_rows_per_unit=2)
    assert data.size == 40
    assert data.setting.neighbours.multiplier == 2
    assert {part.size for part in dpx.PrivateData(frame, named, labels=labels).split(2)} == {30}
    with pytest.raises(DataError, match="unit='author'"):
        dpx.PrivateData(texts, domain, labels=labels, unit="author")


@pytest.mark.parametrize(
    "mechanism", [dpx.Basic(1.0, 1e-6), dpx.Adaptive(1.0, 1e-6, steps=50), dpx.Enhanced(1.0, 1e-6, steps=50)], ids=["basic", "adaptive", "enhanced"]
)  # fmt: skip
def test_every_mechanism_answers_and_is_paid(domain, mechanism, tmp_path):
    texts, labels = reviews()
    data = dpx.PrivateData(texts, domain, labels=labels)
    ledger = f"sqlite:///{tmp_path / 'text.ledger'}"
    explainer = dpx.Explainer(data, dpx.Budget(8.0, 1e-6), mechanism, ledger=ledger, noise=SeededNoise(0))
    first = explainer.explain(RECORD)
    assert 0 < first.cost.epsilon <= 1.0001
    assert evaluation.score(first.values, data, RECORD).cosine > 0.8
    assert len(explainer.explain_many(["a boring film", "great plot", "good actors"])) == 3
    assert len(explainer.history) == 4
    free = dpx.NonInteractive(explainer.history).explain("a bad film")
    assert free.cost.epsilon == 0
    assert free.names == domain.names


def test_private_influence_of_words(data):
    answer = dpx.Explainer(data, dpx.Budget(2.0, 1e-6), dpx.Influence(2.0, 1e-6, others="against"), noise=SeededNoise(0)).explain(
        RECORD
    )
    moments = evaluation.local_moments(data, RECORD, plane="paper")
    assert np.abs(answer.values - moments.b / data.size).max() <= 5 * answer.error.max()


def test_a_release_helps_and_outlives_an_explainer(data, release):
    explainer = dpx.Explainer(data, dpx.Budget(0.01, 1e-6), dpx.Basic(1.0, 1e-6), release=release, noise=SeededNoise(0))
    answers = explainer.explain_many([RECORD, "a bad film"])
    assert [answer.cost.epsilon for answer in answers] == [0, 0]
    assert (answers[0].values == release.explain(RECORD).values).all()


def test_the_command_line_reads_texts(release, domain, tmp_path):
    release.save(tmp_path / "reviews.dpx")
    run = CliRunner().invoke
    one = run(app, ["explain", str(tmp_path / "reviews.dpx"), "--record", json.dumps(RECORD), "--json"])
    assert one.exit_code == 0, one.output
    assert json.loads(one.stdout)["values"] == pytest.approx(release.explain(RECORD).values.tolist())
    assert run(app, ["explain", str(tmp_path / "reviews.dpx"), "--record", '{"age": 3}']).exit_code == 2
    (tmp_path / "new.json").write_text(json.dumps([RECORD, "a bad film"]), encoding="utf-8")
    many = run(app, ["explain", str(tmp_path / "reviews.dpx"), "--rows", str(tmp_path / "new.json"), "--json"])
    assert len(json.loads(many.stdout)) == 2


def test_the_command_line_releases_a_column_of_texts(tmp_path):
    texts, labels = reviews(2000)
    pd.DataFrame({"review": texts, "y": labels}).to_parquet(tmp_path / "reviews.parquet")
    dpx.TextDomain(VOCABULARY, column="review").save(tmp_path / "domain.toml")
    options = ["--label", "y", "--epsilon", "4", "--delta", "1e-6", "--domain", str(tmp_path / "domain.toml")]
    made = CliRunner().invoke(app, ["release", str(tmp_path / "reviews.parquet"), *options, "-o", str(tmp_path / "reviews.dpx")])
    assert made.exit_code == 0, made.output
    pd.DataFrame({"review": ["a bad film"]}).to_csv(tmp_path / "new.csv", index=False)
    shown = CliRunner().invoke(app, ["explain", str(tmp_path / "reviews.dpx"), "--rows", str(tmp_path / "new.csv"), "--json"])
    assert shown.exit_code == 0, shown.output
    assert len(json.loads(shown.stdout)[0]["values"]) == len(VOCABULARY)


@pytest.mark.slow
def test_a_published_page_reads_texts(browser, release, tmp_path):
    page = browser.new_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(release.publish(tmp_path / "page.html", outcome="a good review").as_uri())
    area = page.get_by_label("text", exact=True)
    area.fill("...")
    page.get_by_text("Enter a text with at least one word.").wait_for()
    area.fill(RECORD)
    name, value, _ = release.explain(RECORD).top(1)[0]
    said = f"Strongest effects on a good review: {name} taken out −{value:.4f}"
    page.locator("#summary", has_text=said).wait_for()
    assert page.locator(".problem:visible").count() == 0
    assert problems == []
    page.close()


def test_the_service_takes_a_text_as_the_record(domain):
    texts, labels = reviews(500)
    data = dpx.PrivateData(texts, domain, labels=labels)
    backend = LedgerBackend(data, dpx.Basic(0.5, 1e-6), open_ledger(None, data.account(dpx.Budget(2.0, 1e-6))))
    service = InProcess(create_app(Service(backend, Settings(name="reviews", open=True, requests_per_minute=0), None)))
    answer = service.post("/v1/explain", json={"record": RECORD})
    assert answer.status_code == 200, answer.text
    assert answer.json()["names"] == VOCABULARY
    assert service.post("/v1/explain", json={"record": "..."}).status_code == 422
    assert service.post("/v1/explain", json={"record": {"age": 3}}).status_code == 422
    assert dpx.Domain.from_dict(service.get("/v1/domain").json()["domain"]) == domain
    instances = service.post("/v1/models/reviews:explain", json={"instances": [RECORD, "a bad film"]})
    assert set(instances.json()["explanations"][1]["attributions"]) == set(VOCABULARY)
