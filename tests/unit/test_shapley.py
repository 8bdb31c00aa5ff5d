"""Private SHAP: right values within exact errors, a fixed price, and nothing that a row could decide."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.core.baseline_shapley import ShapleySum, largest_norm
from dpexplain.errors import DataError, ParameterError
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.setting import Setting
from dpexplain.mechanisms.shapley import ShapleyTotal, players_of
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy import gdp
from dpexplain.privacy.events import mu_of, price
from dpexplain.privacy.relation import Neighbours, Relation
from dpexplain.service.config import mechanism_of

DOMAIN = dpx.Domain([dpx.Numeric("age", 0, 100), dpx.Categorical("work", values=["a", "b", "c"]), dpx.Binary("married")])
RECORD = {"age": 80, "work": "b", "married": True}
SLOPES = np.array([0.5, 0.3, 0.1, -0.4, -0.2])


def answer(rows):
    X = DOMAIN.encode(rows)
    return X @ SLOPES - 0.1 + 0.3 * X[:, 0] * X[:, 4]


def table(count):
    rng = np.random.default_rng(2)
    work = rng.choice(["a", "b", "c"], count).astype(object)
    return {"age": rng.uniform(0, 100, count), "work": work, "married": rng.random(count) < 0.5}


@pytest.fixture(scope="module")
def data():
    return dpx.PrivateData(table(4000), DOMAIN, model=answer)


def explain(data, mechanism, **options):
    return dpx.Explainer(data, dpx.Budget(50, 1e-6), mechanism, noise=SeededNoise(1), **options).explain(RECORD)


def plan(mechanism, setting):
    point = DOMAIN.encode_query(RECORD)
    return mechanism.with_model(lambda rows: np.zeros(len(rows))).plan(point, setting, History())


def setting(size=4000, relation=Relation.ADD_REMOVE):
    return Setting(5, size, Neighbours(relation), 1e-13, ((1, 4),), single_rows=True)


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("clip", [None, 0.4])
def test_a_query_costs_its_epsilon_and_has_the_noise_of_its_cut(relation, clip):
    planned = plan(dpx.Shapley(0.1, 1e-6, clip=clip), setting(relation=relation))
    assert mu_of(price(planned.events)) == pytest.approx(gdp.mu(0.1, 1e-6), rel=1e-6)
    assert mu_of(price(planned.events)) <= gdp.mu(0.1, 1e-6) * (1 + 1e-12)
    length = (clip or largest_norm(3)) * Neighbours(relation).multiplier
    assert planned.gaussian.sigma == pytest.approx(length / gdp.mu(0.1, 1e-6), rel=1e-4)


def test_answers_are_shap_values_within_their_errors(data):
    found = explain(data, dpx.Shapley(2.0, 1e-6))
    truth = evaluation.shap_values(data, RECORD, background=4000, permutations=1)
    assert (np.abs(found.values - truth) <= 5 * found.error).all()
    assert (found.error > 0).tolist() == [True, False, True, False, True]  # the category's number is in the query's own column
    assert np.abs(truth).max() > 20 * found.error.max()  # so the test above says something
    said = {"quantity": "Shapley values", "rows": 4000, "features": 3}
    assert found.details == said | {"model_answer": pytest.approx(float(answer([RECORD])[0]))}
    assert found.cost.epsilon == pytest.approx(2.0, rel=1e-3)


def test_they_add_up_from_the_average_to_the_models_own_answer(data):
    told = explain(data, dpx.Shapley(5.0, 1e-6))
    added = told.contributions()
    assert added.base + added.values.sum() == pytest.approx(added.answer)
    assert added.answer == pytest.approx(float(data.answer_scale.answers(told.details["model_answer"])))
    assert (added.details["quantity"], added.answer_error, len(added.names)) == ("shapley", 0.0, len(data.domain.columns))
    assert "about" not in added.sentence
    assert (added.error > 0).all()


def test_fewer_rows_are_asked_for_more_noise(data):
    all_rows, some = plan(dpx.Shapley(0.1), setting()), plan(dpx.Shapley(0.1, rows=1000), setting())
    assert all_rows.rows == 4000
    assert some.rows == 1000
    asked = []

    def counted_answer(rows):
        asked.append(len(next(iter(rows.values()))))
        return answer(rows)

    watched = dpx.PrivateData(table(4000), DOMAIN, model=counted_answer)
    asked.clear()
    found = explain(watched, dpx.Shapley(0.1, rows=1000))
    assert found.details["rows"] == some.rows
    calls = (sum(asked) - 2) / (2 * 2 + 1)  # d - 1 mixtures in each direction, the rows, and the query twice
    assert calls == pytest.approx(some.rows, abs=5 * np.sqrt(4000 * 0.25 * 0.75))  # each row decides by its own hash
    assert found.error.max() == pytest.approx(some.gaussian.sigma / some.rows)


def test_a_model_that_fails_on_some_mixtures_shows_nothing(data):
    def fragile(rows):
        X = DOMAIN.encode(rows)
        if ((np.abs(X[:, 0] - 0.8) < 1e-9) & (X[:, 1] == 1)).any():  # the query's age with another one's work
            raise RuntimeError("secret row")
        return answer(rows)

    found = explain(dpx.PrivateData(table(300), DOMAIN, model=fragile), dpx.Shapley(1.0))
    assert np.isfinite(found.values).all()


def test_what_is_missing_is_said_before_anything_is_spent(data):
    labelled = dpx.PrivateData(table(100), DOMAIN, labels=np.ones(100))
    explainer = dpx.Explainer(labelled, dpx.Budget(1, 1e-6), dpx.Shapley(0.1))
    with pytest.raises(ParameterError, match="model="):
        explainer.explain(RECORD)
    assert explainer.spent.epsilon == 0
    with pytest.raises(ParameterError, match="one by one"):
        plan(dpx.Shapley(0.1), Setting(5, 100, Neighbours(), 1e-13, ((1, 4),)))
    seen = []

    def dies(rows):
        seen.append(1)
        if len(seen) > 2:  # made-up records, and the rows
            raise RuntimeError("gone")
        return answer(rows)

    explainer = dpx.Explainer(dpx.PrivateData(table(100), DOMAIN, model=dies), dpx.Budget(1, 1e-6), dpx.Shapley(0.1))
    with pytest.raises(DataError, match="RuntimeError"):
        explainer.explain(RECORD)
    assert explainer.spent.epsilon == 0


def test_features_are_players():
    assert players_of(Setting(8, 10, Neighbours(), 0.0, ((1, 4), (4, 6)))).tolist() == [0, 1, 1, 1, 2, 2, 3, 4]


def test_a_service_knows_it_by_name():
    served = mechanism_of({"kind": "shapley", "epsilon": 0.2, "delta": 1e-7, "rows": 500, "clip": 1.0})
    assert served == dpx.Shapley(0.2, 1e-7, 500, 1.0)


@pytest.mark.parametrize(
    "keywords", [{"epsilon": 0}, {"delta": 1}, {"rows": 0}, {"rows": 2.5}, {"clip": 0}, {"clip": float("inf")}]
)
def test_meaningless_parameters_are_refused_when_the_mechanism_is_made(keywords):
    with pytest.raises(ParameterError):
        dpx.Shapley(**{"epsilon": 0.1, "delta": 1e-6, **keywords})


def test_a_warning_of_the_model_about_private_rows_is_not_shown():
    """Its text may quote a row. Python has one list of filters for all threads, so those who hide must end together."""

    def model(rows):
        warnings.warn(f"odd value {np.max(rows['a'])}", stacklevel=1)
        return rows["a"]

    rows = {"a": np.linspace(0, 1, 60), "b": np.linspace(1, 0, 60)}
    domain = dpx.Domain([dpx.Numeric("a", 0, 1), dpx.Numeric("b", 0, 1)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = dpx.PrivateData(rows, domain, model=model, output="probability")
    query = ShapleySum(np.array([0.5, 0.5]), data.column_model, np.arange(2), 2.0)
    total = ShapleyTotal(query, data.setting)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: total.evaluate(data._rows), range(16)))
        assert not shown
        warnings.warn("of somebody else", stacklevel=1)
    assert [str(one.message) for one in shown] == ["of somebody else"]
