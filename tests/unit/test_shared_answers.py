"""Adaptive answers by moments: they pay only for what the history lacks, and are as close as fresh answers of the same price."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.layout import Layout
from dpexplain.core.release_moments import CentreMoments, normalised_dimension
from dpexplain.errors import InputError, ParameterError
from dpexplain.estimation.public_points import PublicModel
from dpexplain.estimation.reference import POINTS
from dpexplain.ledger import MemoryLedger
from dpexplain.mechanisms import shared_answer
from dpexplain.mechanisms.history import History
from dpexplain.mechanisms.shared_answer import WORTHWHILE, label_name
from dpexplain.mechanisms.shared_sums import NoisyNumbers, PaidSums, best_pool
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy import gdp
from people_support import DOMAIN, RECORD, model, people

OTHERS = [RECORD | {"age": age} for age in (25, 60, 90)]
BUDGET, PRICE = dpx.Budget(9.0, 1e-6), (0.5, 1e-6)
MU = gdp.mu(*PRICE)


@pytest.fixture
def data():
    return dpx.PrivateData(people(), DOMAIN, model=model, output="probability")


@pytest.fixture
def ledger(data):
    return MemoryLedger(data.account(BUDGET))


def explainer(data, ledger=None, mechanism=None, seed=1, budget=BUDGET):
    return dpx.Explainer(data, budget, mechanism or dpx.Adaptive(*PRICE), ledger=ledger, noise=SeededNoise(seed))


def same(values):
    """Equal but for rounding, which may depend on where arrays lie in memory."""
    return pytest.approx(values, rel=1e-6, abs=1e-9)


def paid_sums(seed, sigma=3.0, around=None, labels="y"):
    rng, layout = np.random.default_rng(seed), Layout.of(DOMAIN.blocks)
    sizes = CentreMoments(layout).dimension, normalised_dimension(layout)
    numbers = (NoisyNumbers.from_release(100 * rng.standard_normal(size), sigma) for size in sizes)
    return PaidSums(labels, 6_000, *numbers, around)


@pytest.mark.parametrize("make", [dpx.Adaptive, dpx.Enhanced])
def test_the_first_answer_pays_and_all_others_are_free(data, make):
    asked = explainer(data, mechanism=make(*PRICE))
    first, *others = (asked.explain(record) for record in [RECORD, *OTHERS])
    assert first.cost.mu == pytest.approx(MU, rel=1e-6)
    assert first.cost.mu <= MU
    assert [one.cost.mu for one in others] == [0.0] * len(OTHERS)
    assert asked.spent.mu == first.cost.mu
    for one in (first, *others):
        assert (one.error > 0).all()
        added = one.contributions()
        assert added.base + added.values.sum() == pytest.approx(added.answer)
        assert (one.details["by"], one.details["pooled"], one.copied) == ("moments", 1, False)
    assert not np.allclose(first.values, others[0].values)


def test_the_same_question_gets_the_same_answer(data, monkeypatch):
    asked = explainer(data)
    asked.explain(OTHERS[0])
    monkeypatch.setattr(data, "_rows", None)  # no row can be read any more
    first, second = asked.explain(RECORD), asked.explain(RECORD)
    assert first.values == same(second.values)
    assert first.error == same(second.error)
    assert first.contributions().values == same(second.contributions().values)


def test_planes_are_built_once_for_each_payment(data, ledger, monkeypatch):
    built, honest = [], shared_answer.build_shared_planes
    monkeypatch.setattr(shared_answer, "build_shared_planes", lambda *given: built.append(given) or honest(*given))
    asked = explainer(data, ledger)
    asked.explain_many([RECORD, *OTHERS])
    dpx.NonInteractive(asked.history).explain_many(OTHERS)
    assert len(built) == 1
    explainer(data, ledger, dpx.Adaptive(1.0, 1e-6)).explain(RECORD)
    asked.explain_many(OTHERS)
    assert len(built) == 3  # the other explainer's, and this one's of what both bought


def test_an_answer_is_that_of_a_fresh_answer_of_the_same_noise(data, monkeypatch):
    """Sums are rounded to a 64th of their noise before they are used, and rehearsals draw other numbers."""
    monkeypatch.setattr(shared_answer, "GUESSED", POINTS)  # planes that serve many questions ask the model about more points
    shared, fresh = explainer(data).explain(RECORD), explainer(data, mechanism=dpx.Basic(*PRICE)).explain(RECORD)
    assert np.abs(shared.values - fresh.values).max() < 0.1 * fresh.error.min()
    assert shared.error == pytest.approx(fresh.error, rel=0.5)


def test_a_dearer_answer_pays_the_difference_only(data, ledger):
    cheap, dear = explainer(data, ledger), explainer(data, ledger, dpx.Adaptive(1.0, 1e-6))
    low, high = cheap.explain(RECORD), dear.explain(RECORD)
    full = gdp.mu(1.0, 1e-6)
    assert high.cost.mu**2 == pytest.approx(full**2 - MU**2, rel=2e-4)
    assert dear.spent.mu == pytest.approx(full, rel=1e-4)
    assert (low.details["pooled"], high.details["pooled"]) == (1, 2)
    again = cheap.explain(RECORD)
    assert again.cost.mu == 0
    assert again.values == same(high.values)  # the cheaper mechanism uses all that was bought
    assert np.median(high.error / low.error) < 1


def test_a_raised_price_stays_within_a_budget_of_that_price(data):
    """What is lacking is bought in a way that leaves the total below the higher price, to the last bit; counts of distances are not bought again."""
    budget = dpx.Budget(1.0, 1e-6)
    ledger = MemoryLedger(data.account(budget))
    for epsilon in (0.3, 0.7, 1.0, 1.0):
        explainer(data, ledger, dpx.Adaptive(epsilon, 1e-6), budget=budget).explain(RECORD)
    assert budget.mu * 0.98 < explainer(data, ledger, budget=budget).spent.mu <= budget.mu


def test_what_is_held_serves_every_weight_and_plane(data, ledger):
    explainer(data, ledger).explain(RECORD)
    for options in ({"weight": dpx.weights.Gaussian(0.8)}, {"plane": "anchored"}, {"radius": 0.5}):
        answer = explainer(data, ledger, dpx.Adaptive(*PRICE, **options)).explain(RECORD)
        assert answer.cost.mu == 0
        assert answer.plane == options.get("plane", "fitted")
        assert (answer.error > 0).all()
    assert np.linalg.norm(answer.values) <= 0.5 + 1e-9


def test_too_little_history_is_started_over(data, ledger):
    """A centre that noise has placed is not worth buying further sums around."""
    tiny = gdp.epsilon(MU * np.sqrt(WORTHWHILE / 2), 1e-6)
    explainer(data, ledger, dpx.Adaptive(tiny, 1e-6)).explain(RECORD)
    answer = explainer(data, ledger).explain(RECORD)
    assert answer.cost.mu == pytest.approx(MU, rel=1e-6)
    assert answer.details["pooled"] == 1
    assert explainer(data, ledger).explain(OTHERS[0]).cost.mu == 0


def test_sums_of_other_labels_are_not_used(ledger):
    """Another model, or labels on another scale, on the same ledger: what was bought is about something else."""
    rows = people()
    explainer(dpx.PrivateData(rows, DOMAIN, model=model, output="probability"), ledger).explain(RECORD)
    opposite = dpx.PrivateData(rows, DOMAIN, model=lambda table: 1 - model(table), output="probability")
    labels = dpx.PrivateData(rows, DOMAIN, labels=np.sign(model(rows) - 0.5))
    for other in (opposite, labels):
        asked = explainer(other, ledger)
        assert asked.explain(RECORD).cost.mu == pytest.approx(MU, rel=1e-6)
        assert asked.explain(OTHERS[0]).cost.mu == 0
    same = explainer(dpx.PrivateData(rows, DOMAIN, model=model, output="probability"), ledger)
    assert same.explain(RECORD).cost.mu == 0


def test_models_are_told_apart_at_levels_that_exist():
    """A model may raise for a level between two declared ones: it is asked about declared ones only."""
    layout, scale = Layout.of(DOMAIN.blocks), AnswerScale()
    asked = []

    def see(points):
        asked.append(points)
        return points[:, 0]

    names = {
        label_name(scale, PublicModel(one), layout, DOMAIN.levels)
        for one in (see, lambda p: p[:, 1], lambda p: -see(p), refuse_all)
    }
    assert len(names) == 4
    assert set(np.unique(np.round(3 * asked[0][:, 1], 9))) == {0.0, 1.0, 2.0, 3.0}
    jitter = PublicModel(lambda points: points[:, 0] + 1e-9)
    assert label_name(scale, jitter, layout, DOMAIN.levels) == label_name(scale, PublicModel(see), layout, DOMAIN.levels)


def refuse_all(points):
    raise ValueError("no answer")


def test_a_model_that_fails_on_public_points_is_answered_about_from_labels():
    def picky(table):
        if len(table["age"]) < 5000:
            raise ValueError("only whole tables")
        return model(table)

    asked = explainer(dpx.PrivateData(people(), DOMAIN, model=picky, output="probability"))
    assert [asked.explain(record).cost.mu > 0 for record in OTHERS] == [True, False, False]


def test_free_answers_go_on_when_the_budget_is_gone(data):
    asked = explainer(data, budget=dpx.Budget(*PRICE))
    answers = asked.explain_many([RECORD, *OTHERS])
    assert answers.complete
    assert [one.cost.mu > 0 for one in answers] == [True, False, False, False]
    dear = explainer(data, asked._ledger, dpx.Adaptive(1.0, 1e-6), budget=dpx.Budget(*PRICE))
    with pytest.raises(dpx.BudgetExhausted):
        dear.explain(RECORD)
    assert asked.explain(RECORD | {"age": 33}).cost.mu == 0


def test_each_shard_pays_for_its_own_sums(data):
    first, second = data.split(2)
    costs = [explainer(part).explain(RECORD).cost.mu for part in (first, second)]
    assert costs == pytest.approx([MU, MU], rel=1e-6)
    assert data.spent.mu == pytest.approx(MU, rel=1e-6)  # rows are in one shard only


def test_basic_neither_stores_nor_uses_sums(data, ledger):
    explainer(data, ledger).explain(RECORD)
    basic = explainer(data, ledger, dpx.Basic(*PRICE))
    assert basic.explain(RECORD).cost.mu == pytest.approx(MU, rel=1e-6)
    assert len(basic.history.sums) == 1


def test_only_paid_answers_store_sums(data):
    asked = explainer(data)
    asked.explain_many([RECORD, *OTHERS])
    assert ["sums" in done.answer for done in asked._ledger.settled()] == [True, False, False, False]
    assert "sums" not in json.dumps(asked.explain(RECORD).to_dict())


def test_answers_are_kept_only_for_who_asks_for_the_history(data, ledger, monkeypatch):
    """A service answers from sums for months: neither memory nor a restart grows with every answer."""
    kept = []
    monkeypatch.setattr(
        History, "append", lambda _, released, honest=History.append: kept.append(released) or honest(_, released)
    )
    asked = explainer(data, ledger)
    asked.explain_many([RECORD, *OTHERS])
    again = explainer(data, ledger)
    again.explain(RECORD)
    assert not kept
    assert len(asked.history) == len(again.history) == 5
    assert len(asked.history.sums) == len(again.history.sums) == 1
    again.explain(OTHERS[0])
    assert len(kept) == 10
    assert len(again.history) == 6


def test_sums_that_come_with_the_history_are_taken_once(data, ledger):
    asked, dear = explainer(data, ledger), explainer(data, ledger, dpx.Adaptive(1.0, 1e-6))
    assert len(asked.history) == 0
    for buyer in (asked, dear):
        buyer.explain(RECORD)
    assert len(asked.history.sums) == 2
    assert asked.explain(RECORD).details["pooled"] == 2
    assert len(asked.history.sums) == 2


def test_a_known_request_id_gets_its_answer(data):
    asked = explainer(data)
    first = asked.explain(RECORD, request_id="a")
    again = asked.explain(RECORD, request_id="a")
    assert first.values == same(again.values)
    assert asked.spent.mu == first.cost.mu == again.cost.mu


def test_questions_of_several_callers_are_answered_together(data):
    asked = explainer(data)
    found = asked.explain_each([(RECORD, "a"), (RECORD | {"work": "?"}, "b"), *((one, str(one["age"])) for one in OTHERS)])
    assert isinstance(found[1], dpx.DpexplainError)
    answers = [found[0], *found[2:]]
    assert [one.cost.mu > 0 for one in answers] == [True, False, False, False]
    commits = count_commits(asked)
    asked.explain_each([(one, f"{one['age']} again") for one in OTHERS])
    assert commits == [("record_many", 3)]  # nothing has to be paid for, so all are one commit


def count_commits(asked):
    """How many requests come with each commit, by its kind."""
    found = []
    for name in ("reserve_many", "settle_many", "record_many"):
        inner = getattr(asked._ledger, name)
        setattr(asked._ledger, name, lambda items, name=name, inner=inner: found.append((name, len(items))) or inner(items))
    return found


def test_free_answers_of_one_call_share_their_commits(data):
    batch, alone = explainer(data), explainer(data)
    commits = count_commits(batch)
    answers = batch.explain_many([RECORD, *OTHERS])
    one, rest = 1, len(OTHERS)
    assert commits == [("reserve_many", one), ("settle_many", one), ("record_many", rest)]
    for many, record in zip(answers, [RECORD, *OTHERS], strict=True):
        single = alone.explain(record)
        assert many.values == same(single.values)
        assert (many.cost.mu, many.guarantee.mu) == (single.cost.mu, batch.spent.mu)
    assert len(batch.history) == len(alone.history) == 1 + rest


def test_a_free_answer_cannot_read_rows(data):
    asked = explainer(data)
    asked.explain(RECORD)
    (planned,) = asked._requests([asked._question(OTHERS[0], "a")])
    reading = replace(planned, plan=SimpleNamespace(events=(), run=lambda door: door._rows.local(None)))
    with pytest.raises(RuntimeError, match="asked for rows"):
        asked._spending.buy_in_order([reading])
    assert len(list(asked._ledger.settled())) == 1


def test_under_a_cap_free_answers_are_free():
    capped = dpx.PrivateData(people(), DOMAIN, model=model, output="probability", cap=BUDGET)
    asked = explainer(capped)
    answers = asked.explain_many([RECORD, *OTHERS])
    assert [one.cost.mu > 0 for one in answers] == [True, False, False, False]
    assert capped.remaining.mu < BUDGET.mu


def test_an_id_in_use_among_free_questions_stops_the_call_and_pays_for_nothing_after_it(data, ledger):
    cheap = explainer(data, ledger)
    cheap.explain(RECORD, request_id="used")
    spent = cheap.spent.mu
    with pytest.raises(dpx.DpexplainError, match="used for another question"):
        cheap.explain_many(OTHERS, request_ids=["a", "used", "b"])
    assert cheap.spent.mu == spent
    assert cheap.explain(OTHERS[0], request_id="a").cost.mu == 0


def test_threads_do_not_buy_the_same_sums_twice(data):
    asked = explainer(data)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(asked.explain, [RECORD, *OTHERS] * 2))
    assert sorted(one.cost.mu > 0 for one in answers) == [False] * 7 + [True]


def test_processes_that_start_at_once_pay_for_a_centre_each_and_then_agree(data, ledger):
    """Neither sees the other's answer while it plans. The total counts both; later answers use one of them."""
    one, two = explainer(data, ledger), explainer(data, ledger, seed=2)
    planned = two._requests([two._question(RECORD, "late")])
    one.explain(RECORD)
    two._spending.buy_in_order(planned)
    assert one.spent.mu == pytest.approx(np.sqrt(2) * MU, rel=1e-6)
    answers = [each.explain(OTHERS[0]) for each in (one, two)]
    assert [answer.cost.mu for answer in answers] == [0.0, 0.0]
    assert answers[0].values == same(answers[1].values)
    assert answers[0].details["pooled"] == 1


def test_answers_from_history_are_those_of_the_explainer(data):
    asked = explainer(data)
    asked.explain(RECORD)
    paid, free = asked.explain(OTHERS[0]), dpx.NonInteractive(asked.history).explain(OTHERS[0])
    assert free.values == same(paid.values)
    assert free.error == same(paid.error)
    assert free.contributions().values == same(paid.contributions().values)
    assert (free.cost.mu, free.details["method"]) == (0.0, "moments")
    assert free.guarantee.mu == asked.spent.mu
    many = dpx.NonInteractive(asked.history).explain_many(OTHERS)
    assert many[0].values == same(paid.values)
    against = dpx.NonInteractive(asked.history, baseline=RECORD).explain(OTHERS[0]).contributions()
    assert against.values[1:].tolist() == [0.0] * 3
    capped = dpx.NonInteractive(asked.history, radius=0.1).explain(OTHERS[0])
    assert np.linalg.norm(capped.values) <= 0.1 + 1e-9


def test_a_stored_history_answers_without_the_model(data):
    asked = explainer(data, mechanism=dpx.Adaptive(*PRICE, weight=dpx.weights.Gaussian(1.2)))
    asked.explain(RECORD)
    again = History.from_json(asked.history.to_json())
    assert [one.digest for one in again.sums] == [one.digest for one in asked.history.sums]
    free, known = dpx.NonInteractive(again).explain(OTHERS[0]), dpx.NonInteractive(asked.history).explain(OTHERS[0])
    assert free.details["weight"] == {"kind": "gaussian", "width": 1.2}
    assert (np.abs(free.values - known.values) <= 4 * free.error).all()
    assert free.error.mean() > known.error.mean()  # labels say less than the model


def test_anchored_answers_from_history_need_the_model(data):
    asked = explainer(data, mechanism=dpx.Adaptive(*PRICE, plane="anchored"))
    for record in OTHERS:
        asked.explain(record)
    free = dpx.NonInteractive(asked.history).explain(RECORD)
    assert (free.plane, free.details["method"]) == ("anchored", "moments")
    stored = History.from_json(asked.history.to_json())
    assert dpx.NonInteractive(stored).explain(RECORD).details["method"] == "regression"
    with pytest.raises(ParameterError, match="anchored planes need the model"):
        dpx.NonInteractive(stored, "moments").explain(RECORD)


def test_a_history_without_sums_has_none_to_answer_from(data):
    asked = explainer(data, mechanism=dpx.Basic(*PRICE))
    asked.explain(RECORD)
    assert dpx.NonInteractive(asked.history).explain(RECORD).details["method"] == "regression"
    with pytest.raises(ParameterError, match="holds no sums"):
        dpx.NonInteractive(asked.history, "moments").explain(RECORD)


@pytest.mark.parametrize(
    "options",
    [
        {"steps": 20},
        {"rule": "paper"},
        {"calibration": "paper"},
        {"plane": "paper"},
        {"norm": 1},
        {"plane": "anchored", "radius": 1.0},
    ],
    ids=str,
)
def test_what_moments_cannot_do_is_a_descent_or_refused(options):
    with pytest.raises(ParameterError, match="by='moments' has no steps"):
        dpx.Adaptive(*PRICE, by="moments", **options)
    assert dpx.Enhanced(*PRICE, **options).by is None


def test_by_is_checked_and_described():
    with pytest.raises(ParameterError, match="by must be 'moments' or 'descent'"):
        dpx.Adaptive(by="magic")
    assert dpx.Adaptive(by="descent").to_dict()["by"] == "descent"
    assert dpx.Adaptive(steps=300).most_steps == dpx.Adaptive().most_steps == 300


def test_a_descent_is_still_there(data):
    answer = explainer(data, mechanism=dpx.Adaptive(*PRICE, by="descent")).explain(RECORD)
    assert answer.error is None
    assert answer.details["gradients"] > 1


def test_sums_are_stored_in_a_few_bytes_a_number():
    """Of 256 columns: about 33,000 numbers, most of them noise."""
    rng = np.random.default_rng(0)
    released = np.concatenate([1e5 * rng.random(512), 300 * rng.standard_normal(33_000)])
    numbers = NoisyNumbers.from_release(released, 300.0)
    stored = json.dumps(numbers.to_dict())
    assert len(stored) < 100_000
    again = NoisyNumbers.from_dict(json.loads(stored))
    assert again.values.tobytes() == numbers.values.tobytes()
    assert np.abs(again.values - released).max() <= 300 / 64 / 2


def test_pools_have_the_precision_of_their_parts():
    layout = Layout.of(DOMAIN.blocks)
    first, apart = paid_sums(1), paid_sums(2, sigma=2.0)
    further = paid_sums(3, sigma=1.5, around=first.digest)
    lost = paid_sums(4, sigma=0.1, around="nothing known")
    found = best_pool([first, apart, further, lost], layout)
    assert found.parts == (first, further)
    assert found.precision == pytest.approx(1 / 9 + 1 / 2.25)
    assert found.sketch(()).sigma == pytest.approx((1 / 9 + 1 / 2.25) ** -0.5)
    assert best_pool([first, apart], layout).parts == (apart,)
    assert best_pool([lost], layout) is None
    assert best_pool([first], Layout.of(DOMAIN.blocks[:2])) is None


def test_sums_that_cannot_be_read_are_named():
    damaged = paid_sums(1).to_dict() | {"centre": {"sigma": 1.0, "numbers": "???"}}
    with pytest.raises(InputError, match="sums of a paid answer cannot be read"):
        History().append_sums(damaged)
