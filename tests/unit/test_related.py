"""Features that go together are named in the answer, on every surface; others are not."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.noise.seeded import SeededNoise

DOMAIN = dpx.Domain(
    [
        dpx.Numeric("age", 0, 1),
        dpx.Numeric("years", 0, 1, title="Years at work"),
        dpx.Categorical("work", values=list("abc")),
        dpx.Binary("married"),
    ]
)
RECORD = {"age": 0.4, "years": 0.4, "work": "a", "married": True}


def people(related, count=8_000):
    rng = np.random.default_rng(0)
    age, other = rng.random(count), rng.random(count)
    years = np.clip(age + 0.05 * rng.standard_normal(count), 0, 1) if related else other
    return {"age": age, "years": years, "work": rng.choice(list("abc"), count), "married": rng.random(count) < 0.5}


def data(related):
    return dpx.PrivateData(people(related), DOMAIN, model=lambda rows: np.asarray(rows["age"], dtype=float), output="probability")


@pytest.fixture(scope="module")
def release():
    return dpx.release(data(related=True), dpx.Budget(1.0, 1e-6), noise=SeededNoise(1))


def test_the_answer_names_features_that_share_effects(release):
    answer = release.explain(RECORD)
    ((first, second, strength),) = answer.details["shared"]["pairs"]
    assert (first, second) == ("age", "years")
    assert strength == pytest.approx(np.corrcoef(*(people(True)[name] for name in ("age", "years")))[0, 1], abs=0.1)
    assert "age and Years at work" in answer.details["shared"]["text"]
    assert answer.details["shared"]["text"] in answer._repr_html_()
    assert answer.to_dict()["details"]["shared"] == release.explain_many([RECORD])[0].details["shared"]


def test_it_survives_a_file_and_is_on_the_page(release, tmp_path):
    release.save(tmp_path / "a.dpx")
    assert dpx.load(tmp_path / "a.dpx").explain(RECORD).details["shared"] == release.explain(RECORD).details["shared"]
    assert "Years at work (1.0)" in release.publish(tmp_path / "a.html").read_text(encoding="utf-8")


def test_paid_answers_by_moments_say_it_too_and_from_the_ledger(tmp_path):
    explainer = dpx.Explainer(data(related=True), dpx.Budget(2.0, 1e-6), dpx.Basic(1.0, 1e-6), noise=SeededNoise(1))
    answer = explainer.explain(RECORD, request_id="a")
    assert answer.details["shared"]["pairs"][0][:2] == ["age", "years"]
    assert explainer.explain(RECORD, request_id="a").details == answer.details


def test_nothing_is_said_where_features_are_unrelated_or_drawn_one_by_one(release):
    alone = dpx.release(data(related=False), dpx.Budget(1.0, 1e-6), noise=SeededNoise(1))
    assert "shared" not in alone.explain(RECORD).details
    assert "shared" not in release.lime(RECORD, model=lambda rows: np.asarray(rows["age"], dtype=float)).details


@pytest.mark.parametrize("seed", range(12))
def test_noise_alone_relates_no_features(seed):
    few = dpx.PrivateData(people(False, 500), DOMAIN, labels=np.zeros(500))
    explainer = dpx.Explainer(few, dpx.Budget(1.0, 1e-6), dpx.Basic(0.05, 1e-6), noise=SeededNoise(seed))
    assert "shared" not in explainer.explain(RECORD).details
