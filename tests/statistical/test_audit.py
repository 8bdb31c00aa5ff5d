"""The audit finds mechanisms that are wrong on purpose, and does not find fault with the right ones at the same settings.

One audit accuses a sound mechanism with probability at most 1 - confidence = 1 %; seeds make each test here give the same verdict every time.
"""

from dataclasses import replace

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.errors import ReservationExceeded
from dpexplain.evaluation.audit.mutants import find_mutants
from dpexplain.evaluation.audit.targets import subject_of
from dpexplain.evaluation.audit.transcript import numbers
from dpexplain.mechanisms import shared_answer
from dpexplain.mechanisms.basic import NoisyDescent
from dpexplain.mechanisms.influence import NoisyInfluence
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy.events import mu_of
from noise_support import Scaled

BASIC = dpx.Basic(1.0, 1e-6, steps=5, plane="paper")
INFLUENCE = dpx.Influence(1.0, 1e-6)
SHAPLEY = dpx.Shapley(1.0, 1e-6)
RELEASE = evaluation.Releasing(1.0, 1e-6)
REFINEMENT = evaluation.Refining(1.0, 1e-6)
MEASURED = dpx.Adaptive(1.0, 1e-6, steps=4, rule="paper", plane="paper")


def audit(mechanism, runs, *, seed=1, **options):
    return evaluation.audit(mechanism, runs=runs, seed=seed, **options)


def quiet(seed):
    return Scaled(SeededNoise(seed), 0.8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "seed"),
    [(BASIC, 1), (RELEASE, 1), (REFINEMENT, 2)],  # with seed 1 the refinement is accused, as one in a hundred may be
    ids=["basic", "release", "refinement"],
)
def test_noise_a_fifth_too_small_is_found_and_the_right_noise_is_not_accused(mechanism, seed):
    sound, mutant = audit(mechanism, 900, seed=seed), audit(mechanism, 900, seed=seed, noise=quiet)
    assert sound.passed
    assert not mutant.passed
    assert sound.mu > 0.7 * sound.claimed_mu  # tight: an audit that shows nothing would also pass
    assert sound.notices < 1.35
    assert sound.claimed_epsilon == pytest.approx(1.0, rel=1e-5)


def is_caught(name, runs):
    """Whether an audit is silent without the fault and rings with it."""
    (found,) = find_mutants(runs, (name,))
    return found.sound and bool(found.caught)


class RisingPrices:
    """Adaptive answers by moments, each at a higher price than the one before, as several explainers on one ledger ask for them."""

    delta, private, epsilon, plane = 1e-6, True, 1.0, "fitted"
    audit_setup = dpx.Adaptive(1.0, 1e-6).audit_setup

    def to_dict(self):
        return {"mechanism": "rising prices", "plane": self.plane}

    def plan(self, point, setting, history, hint=None):
        return dpx.Adaptive((0.5, 0.7, 1.0)[len(history)], 1e-6).plan(point, setting, history, hint)


def pay_for_little(monkeypatch):
    """Further sums with the noise of a whole answer, whatever the history lacks."""
    honest = shared_answer.SharedAnswer.buy

    def buy(self, lacking, door):
        dear = replace(lacking.moments, mu=3 * lacking.moments.mu) if self.held else lacking.moments
        return honest(self, replace(lacking, moments=dear), door)

    monkeypatch.setattr(shared_answer.SharedAnswer, "buy", buy)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [dpx.Adaptive(1.0, 1e-6), RisingPrices()], ids=["first pays", "each pays a part"])
def test_histories_of_answers_by_moments_cost_what_they_claim(mechanism, monkeypatch):
    """Three questions: all is paid with the first, or each pays what those before it lack. Both cost one answer at ε = 1.

    Planes are built once, because the audit is about what passes the door, and building them takes most of a run's time.
    """
    honest, built = shared_answer.build_shared_planes, []
    monkeypatch.setattr(
        shared_answer, "build_shared_planes", lambda *given: built[0] if built else built.append(honest(*given)) or built[0]
    )
    sound, mutant = audit(mechanism, 300), audit(mechanism, 300, noise=lambda seed: Scaled(SeededNoise(seed), 0.6))
    assert sound.passed
    assert not mutant.passed
    assert sound.mu > 0.5 * sound.claimed_mu
    assert sound.claimed_epsilon == pytest.approx(1.0, rel=1e-3)


def test_further_sums_with_less_noise_than_was_paid_for_are_refused(monkeypatch):
    pay_for_little(monkeypatch)
    with pytest.raises(ReservationExceeded):
        audit(RisingPrices(), 60)


def test_labels_that_are_not_clipped_are_found():
    assert is_caught("labels that are compared and not clipped", 60)


@pytest.mark.slow
def test_labels_in_tables_with_too_little_noise_are_found():
    assert is_caught("labels in all tables with the bound of one", 200)


@pytest.mark.slow
def test_a_weights_wrong_constant_is_found():
    """The paper's exp(-d²) with c = 1 instead of 1.527 (SPEC §9.2)."""
    assert is_caught("exp(-d²) with the constant 1 instead of 1.527", 250)


def test_a_plan_that_reserves_half_of_its_steps_releases_nothing(monkeypatch):
    """Its door refuses before the first number is drawn: no audit is needed to find it."""
    honest = NoisyDescent.__post_init__

    def half(self):
        honest(self)
        (event,) = self.events
        reserved = type(event)(event.what, event.sensitivity, event.sigma, event.count // 2)
        object.__setattr__(self, "events", (reserved,))

    monkeypatch.setattr(NoisyDescent, "__post_init__", half)
    with pytest.raises(ReservationExceeded):
        audit(BASIC, 400)


@pytest.mark.slow
def test_noise_for_added_records_under_a_claim_for_replaced_ones_is_found():
    assert is_caught("noise for an added record under a claim for a replaced one", 150)


@pytest.mark.slow
def test_an_exact_norm_that_nobody_paid_for_is_found():
    """β decides the number of steps and their noise; without its own noise both show who is in the data (SPEC §9.1)."""
    assert is_caught("an exact gradient norm that nobody paid for", 100)


def test_the_papers_own_adaptive_algorithm_is_found_out():
    literal = dpx.Adaptive(1.0, 1e-6, steps=4, calibration="paper")
    found = audit(literal, 100, view="answer")
    assert found.mu > 3 * found.claimed_mu


def test_an_exact_sum_in_an_answers_details_is_found(monkeypatch):
    honest = NoisyInfluence.run

    def talkative(self, door):
        outcome = honest(self, door)
        outcome.details["trace"] = float(np.trace(door._rows.local(self.query).A))
        return outcome

    monkeypatch.setattr(NoisyInfluence, "run", talkative)
    assert not audit(INFLUENCE, 100, view="answer").passed


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [BASIC, MEASURED], ids=lambda m: m.to_dict()["mechanism"])
def test_transcripts_and_last_iterates_show_something_and_not_too_much(mechanism):
    queries = 1 if mechanism is BASIC else 2
    seen, told = (audit(mechanism, 100, view=view, queries=queries) for view in ("transcript", "answer"))
    assert seen.passed
    assert told.passed
    assert seen.estimate > 0.25 * seen.claimed_mu
    assert 0 < told.mu <= told.claimed_mu


@pytest.mark.slow
def test_shapley_values_anchored_answers_and_reference_counts_pass():
    tables = dpx.Domain([dpx.Categorical(name, values=[0, 1, 2]) for name in "ab"])
    anchored = audit(dpx.Basic(1.0, 1e-6, steps=6, plane="anchored"), 100)
    counts = audit(evaluation.Releasing(1.0, 1e-6, reference=True), 100, domain=tables)
    for one in (audit(SHAPLEY, 100), anchored, counts):
        assert one.passed
        assert one.estimate > 0.6 * one.claimed_mu


CATEGORIES = dpx.Domain([*(dpx.Categorical(name, values=[0, 1, 2]) for name in "abc"), dpx.Binary("d"), dpx.Numeric("e", 0, 1)])


@pytest.mark.slow
def test_fitted_planes_are_audited_where_their_bound_is_attained():
    found = audit(dpx.Basic(1.0, 1e-6, steps=6), 150, domain=CATEGORIES)
    assert found.passed
    assert found.estimate > 0.75 * found.claimed_mu


@pytest.mark.slow
def test_answers_by_moments_are_audited_and_less_noise_is_found():
    moments = dpx.Basic(1.0, 1e-6, by="moments")
    sound, mutant = audit(moments, 150), audit(moments, 150, noise=lambda seed: Scaled(SeededNoise(seed), 0.4))
    assert sound.passed
    assert sound.estimate > 0.6 * sound.claimed_mu
    assert not mutant.passed


@pytest.mark.slow
def test_a_whole_release_can_be_looked_at_too():
    data, query = people(), {"age": 40, "work": "b"}
    seen = subject_of(RELEASE, [query], "answer").run(data, SeededNoise(0))
    made = dpx.release(people(), RELEASE.budget, noise=SeededNoise(0))
    assert mu_of(seen.quanta) == pytest.approx(RELEASE.budget.mu)
    assert set(made.explain(query).values) <= set(seen.answer)
    assert set(made.solver.t1) <= set(seen.answer)


def people(**options):
    rng = np.random.default_rng(0)
    rows = {"age": rng.uniform(17, 97, 400), "work": rng.choice(["a", "b", "c"], 400), "id": np.arange(400) // 2}
    domain = dpx.Domain([dpx.Numeric("age", 17, 97), dpx.Categorical("work", values=["a", "b", "c"])])
    return dpx.PrivateData(rows, domain, model=lambda table: np.where(np.asarray(table["age"]) > 50, 1.0, -1.0), **options)


@pytest.mark.slow
def test_the_owners_own_data_are_audited_and_nothing_is_charged():
    data, query = people(), {"age": 40, "work": "b"}
    found = audit(INFLUENCE, 120, data=data, query=query)
    assert found.passed
    assert found.estimate > 0.6 * found.claimed_mu
    assert data.spent.mu == 0
    chosen = audit(INFLUENCE, 60, data=data, query=query, canary=({"age": 60, "work": "a"}, -1.0), copies=5)
    assert chosen.passed
    assert chosen.copies == 5


@pytest.mark.slow
def test_all_records_of_a_person_count_as_one():
    data = people(unit="id", max_rows_per_unit=2)
    found = audit(INFLUENCE, 120, data=data, query={"age": 40, "work": "b"})
    assert found.passed
    assert found.estimate > 0.6 * found.claimed_mu


def test_secure_noise_is_the_default_and_verdicts_are_told_plainly():
    found = evaluation.audit(INFLUENCE, runs=60, confidence=0.9999)
    assert found.passed
    assert str(found).startswith("influence (transcript): the claim of ε = 1 at δ = 1e-06 (μ = 0.237) stands. 30 runs")
    told = found.to_dict()
    assert told["relation"] == "add-remove"
    assert told["claimed_epsilon"] == pytest.approx(1.0, rel=1e-5)
    assert told["statement"] == str(found)


@pytest.mark.parametrize(
    "wrong",
    [
        {"runs": 10},
        {"confidence": 1.0},
        {"view": "loss"},
        {"data": people(), "domain": dpx.Domain.encoded(2)},
        {"data": people()},
        {"domain": dpx.Domain([dpx.Binary("yes")]), "queries": 2},
    ],
    ids=lambda wrong: " ".join(wrong),
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(dpx.DpexplainError):
        evaluation.audit(INFLUENCE, **wrong)


def test_every_number_that_an_answer_tells_is_looked_at():
    assert numbers({"b": [1, {"c": 2.5}], "a": True, "n": None}) == [1.0, 1.0, 2.5]
    assert numbers({"cap": "binds", "radius": 3})[0] == 3  # whether a text is there does not move a number
    assert numbers("cold") != numbers("prediction")
