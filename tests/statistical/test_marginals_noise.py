"""The noise on histograms and tables has the stated scale in every count, and 0.8 of it is noticed."""

import numpy as np

from dpexplain.backends.oracle import OracleRows
from dpexplain.core.cells import CodeCells, NumberCells
from dpexplain.core.marginals import Histograms, LabelTables, PairTables
from dpexplain.mechanisms.marginals_plan import HISTOGRAM_SHARE, LABEL_SHARE, plan_marginals
from dpexplain.mechanisms.setting import Setting
from dpexplain.noise.seeded import SeededNoise
from dpexplain.privacy.events import mu_of, price
from dpexplain.privacy.relation import Neighbours
from noise_support import Scaled, every_relation, has_unit_scale, run

CELLS = (NumberCells(0), CodeCells(1, 4), CodeCells(4, 5))
MU = 0.3
MANY = 10_000_000


def store(m=80):
    rng = np.random.default_rng(0)
    return OracleRows(np.column_stack([rng.random(m), np.eye(4)[rng.integers(0, 4, m), :3], rng.integers(0, 2, m)]), np.ones(m))


def standardised_draws(factor, neighbours, runs=60):
    """Both releases' noise divided by what their bounds demand."""
    rows, noise, draws = store(), Scaled(SeededNoise(3), factor), []
    plan = plan_marginals(CELLS, MU, Setting(5, 80, neighbours, rows.summation_error))
    for _ in range(runs):
        got, _ = run(plan, rows, noise)
        first = np.concatenate(got.histograms) - rows.histograms(Histograms(CELLS))
        pairs = PairTables(got.bins)
        second = pairs.vector(got.tables) - pairs.vector(rows.pair_tables(pairs))
        for error, share in ((first, HISTOGRAM_SHARE), (second, 1 - HISTOGRAM_SHARE)):
            draws.append(error / (np.sqrt(3) * neighbours.multiplier / (MU * np.sqrt(share))))
    return np.concatenate(draws)


@every_relation
def test_noise_has_the_stated_scale_and_less_is_noticed(neighbours):
    assert has_unit_scale(lambda factor: standardised_draws(factor, neighbours))


def standardised_label_draws(factor, neighbours, runs=60):
    """The noise of labels in tables, divided by what their bound demands; so many rows are declared that labels are bought."""
    rows, noise, draws = store(), Scaled(SeededNoise(5), factor), []
    plan = plan_marginals(CELLS, MU, Setting(5, MANY, neighbours, rows.summation_error), labelled=True)
    for _ in range(runs):
        got, _ = run(plan, rows, noise)
        pairs = PairTables(got.bins)
        counted = pairs.vector(got.tables) - pairs.vector(rows.pair_tables(pairs))
        labels = pairs.vector(got.labels) - pairs.vector(rows.label_tables(LabelTables(pairs)))
        for error, share in ((counted, 1 - LABEL_SHARE), (labels, LABEL_SHARE)):
            draws.append(error / (np.sqrt(3) * neighbours.multiplier / (MU * np.sqrt((1 - HISTOGRAM_SHARE) * share))))
    return np.concatenate(draws)


@every_relation
def test_noise_on_labels_has_the_stated_scale_and_less_is_noticed(neighbours):
    assert has_unit_scale(lambda factor: standardised_label_draws(factor, neighbours))


def test_labels_are_bought_for_records_with_labels_and_many_rows_only():
    few, many = (Setting(5, size, Neighbours(), 0.0) for size in (80, MANY))
    assert plan_marginals(CELLS, MU, few, labelled=True).third is None
    assert plan_marginals(CELLS, MU, many).third is None
    plan = plan_marginals(CELLS, MU, many, labelled=True)
    assert len(plan.events) == 3
    assert MU * (1 - 1e-6) <= mu_of(price(plan.events)) <= MU


def test_both_releases_cost_the_whole_share_and_not_more():
    plan = plan_marginals(CELLS, MU, Setting(5, 80, Neighbours(), 0.0))
    assert MU * (1 - 1e-6) <= mu_of(price(plan.events)) <= MU
