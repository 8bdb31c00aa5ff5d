"""The façade: pay first, answer, count, refuse, repeat for free."""

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.errors import InputError, QueryError
from dpexplain.mechanisms.basic import NoisyDescent
from dpexplain.noise.seeded import SeededNoise

DOMAIN = dpx.Domain([dpx.Numeric("age", 0, 100), dpx.Categorical("work", values=["a", "b"]), dpx.Binary("married")])
RECORD = {"age": 40, "work": "a", "married": True}


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    rows = {"age": rng.uniform(0, 100, 3000), "work": rng.choice(["a", "b"], 3000), "married": rng.random(3000) < 0.5}
    return dpx.PrivateData(rows, DOMAIN, labels=np.sign(rows["age"] - 50))


def make(data, epsilon=1.0, per_query=0.3, **keywords):
    return dpx.Explainer(data, dpx.Budget(epsilon, 1e-6), dpx.Basic(per_query, 1e-6, steps=10), **keywords)


def test_an_answer_carries_names_cost_and_guarantee(data):
    explainer = make(data)
    explanation = explainer.explain(RECORD)
    assert explanation.names == ("age", "work=a", "work=b", "married")
    assert explanation.cost.epsilon == pytest.approx(0.3, rel=1e-4)
    assert explanation.cost.epsilon <= 0.3
    assert explanation.guarantee.mu == pytest.approx(explainer.spent.mu)
    assert explainer.spent.mu == data.spent.mu
    assert str(explanation.cost).startswith("This answer satisfies (ε=0.3,")
    assert (explanation.point == DOMAIN.encode_query(RECORD)).all()
    assert explanation.details["gradients"] == 9
    assert explanation.details["gradients"] == 9
    assert "last_step" not in explanation.details  # amplification for training data is proven for the paper's plane only


def test_answers_stop_before_the_budget_is_passed_and_nothing_is_read_after(data, monkeypatch):
    explainer = make(data)
    for _ in range(int(dpx.Budget(1.0, 1e-6).mu ** 2 / dpx.Budget(0.3, 1e-6).mu ** 2)):
        explainer.explain(RECORD)
    with pytest.raises(dpx.BudgetExhausted, match="Nothing was spent") as refusal:
        explainer.explain(RECORD)
    assert explainer.spent.epsilon <= 1.0
    assert refusal.value.remaining.mu == pytest.approx(explainer.remaining.mu)
    monkeypatch.setattr(NoisyDescent, "run", lambda *_: pytest.fail("a row was read after the budget was gone"))
    spent = explainer.spent.mu
    with pytest.raises(dpx.BudgetExhausted):
        explainer.explain(RECORD)
    assert explainer.spent.mu == spent


def test_a_budget_smaller_than_one_query_is_refused_at_once(data):
    explainer = make(data, epsilon=0.1)
    with pytest.raises(dpx.BudgetExhausted):
        explainer.explain(RECORD)
    assert explainer.spent.mu == 0
    assert explainer.spent.epsilon == 0


def test_the_same_request_id_gives_the_same_answer_for_nothing(data):
    explainer = make(data)
    first = explainer.explain(RECORD, request_id="r-1")
    spent = explainer.spent.mu
    again = explainer.explain(RECORD, request_id="r-1")
    assert (again.values == first.values).all()
    assert again.request_id == "r-1"
    assert explainer.spent.mu == spent
    with pytest.raises(InputError, match="was used for another question"):
        explainer.explain({**RECORD, "age": 41}, request_id="r-1")
    assert explainer.spent.mu == spent
    fresh = explainer.explain(RECORD)
    assert (fresh.values != first.values).any()


@pytest.mark.parametrize(
    "record",
    [
        {"age": 40, "work": "a"},
        {**RECORD, "age": float("nan")},
        {**RECORD, "age": float("inf")},
        {**RECORD, "age": 140},
        {**RECORD, "work": "c"},
        {**RECORD, "height": 3},
        [1, 2],
        None,
    ],
)
def test_bad_queries_are_refused_before_anything_is_spent(data, record):
    explainer = make(data)
    with pytest.raises(QueryError):
        explainer.explain(record)
    assert explainer.spent.mu == 0


def test_a_crash_in_the_middle_stays_counted_and_can_be_continued(data, monkeypatch):
    explainer = make(data)
    original = NoisyDescent.run

    def crash(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(NoisyDescent, "run", crash)
    with pytest.raises(KeyboardInterrupt):
        explainer.explain(RECORD, request_id="r")
    counted = explainer.spent.mu
    assert counted > 0
    monkeypatch.setattr(NoisyDescent, "run", original)
    explainer.explain(RECORD, request_id="r")
    assert explainer.spent.mu == counted


def test_everything_spent_on_the_data_is_added_up_over_explainers(data):
    first, second = make(data), make(data)
    first.explain(RECORD)
    second.explain(RECORD)
    assert data.spent.mu == pytest.approx(np.hypot(first.spent.mu, second.spent.mu))
    assert second.explain(RECORD).guarantee.mu == pytest.approx(data.spent.mu)


def test_seeded_noise_repeats_for_experiments_and_secure_noise_does_not(data):
    one, two = (make(data, noise=SeededNoise(5)).explain(RECORD).values for _ in range(2))
    assert (one == two).all()
    three, four = (make(data).explain(RECORD).values for _ in range(2))
    assert (three != four).any()


def test_history_holds_what_was_released(data):
    explainer = make(data)
    answer = explainer.explain(RECORD)
    assert len(explainer.history) == 1
    assert (explainer.history[0].values == answer.values).all()
    assert (explainer.history[0].point == answer.point).all()
    assert not explainer.history[0].copied


def test_noise_from_a_seed_is_remembered_by_the_ledger(tmp_path):
    rows, ledger = np.random.default_rng(0).random((50, 2)), f"sqlite:///{tmp_path / 'a.ledger'}"

    def ask(**options):
        data = dpx.PrivateData(rows, dpx.Domain.encoded(2), labels=np.ones(50))  # as another process would register it
        explainer = dpx.Explainer(data, dpx.Budget(1, 1e-6), dpx.Basic(0.1, 1e-7), ledger=ledger, **options)
        return explainer.explain(rows[0]), data

    assert "seed" not in ask()[0].guarantee.note
    assert "seed" in ask(noise=SeededNoise(1))[0].guarantee.note
    answer, data = ask()
    assert "seed" in data.spent.note
    assert "seed" in data.guarantees.explained.note
    assert answer.guarantee.mu > 0
