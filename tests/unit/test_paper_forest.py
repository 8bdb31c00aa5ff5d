"""The compiled forest splits as scikit-learn's trees do, answers rows outside its sample too, and goes on where it stopped."""

import numpy as np
import pandas as pd
import pytest
from experiments.paper._forest import ORDERED, Forest, encode_rows, order_values
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

import dpexplain as dpx

pytestmark = pytest.mark.slow  # its kernels are compiled for experiments alone
RNG = np.random.default_rng(3)
SIZE = 3000
DOMAIN = dpx.Domain(
    [dpx.Numeric("age", 17, 97), dpx.Binary("sex", values=(1, 2)), dpx.Categorical("area", values=["c", "a", "b", "d", "e"])]
)
PEOPLE = pd.DataFrame(
    {"age": RNG.integers(17, 98, SIZE), "sex": RNG.integers(1, 3, SIZE), "area": RNG.choice(["c", "a", "b", "d", "e"], SIZE)}
)
CHANCE = 0.2 + 0.3 * (PEOPLE.age > 40) + 0.2 * (PEOPLE.area == "a") * (PEOPLE.sex == 2) + 0.2 * (PEOPLE.area == "d")
TRUTH = RNG.random(SIZE) < CHANCE.to_numpy()


def count_draws(number, depth, seed=0):
    """How often the forest's tree sees each row."""
    rng = np.random.default_rng([seed, depth, number])
    return np.bincount(rng.integers(0, SIZE, SIZE), minlength=SIZE)


@pytest.mark.parametrize("depth", [1, 3, 5])
def test_a_tree_that_sees_all_columns_is_scikit_learns(depth):
    codes, columns = encode_rows(PEOPLE, DOMAIN)
    ours = Forest(codes, columns, TRUTH, depth, 0, tries=len(columns)).tree(0)
    encoded = DOMAIN.encode(PEOPLE)
    there = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(encoded, TRUTH, sample_weight=count_draws(0, depth))
    differ = np.abs(ours - there.predict_proba(encoded)[:, 1]) > 1e-6
    assert differ.mean() < 0.002  # a row outside the sample may lie on a threshold, which there is rounded to single precision


def test_a_forest_is_right_as_often_as_scikit_learns():
    codes, columns = encode_rows(PEOPLE, DOMAIN)
    encoded = DOMAIN.encode(PEOPLE)
    for depth in (4, 40):
        ours = Forest(codes, columns, TRUTH, depth, 0).grow(60)
        there = RandomForestClassifier(60, max_depth=depth, random_state=0).fit(encoded, TRUTH).predict(encoded)
        assert np.mean(ours == TRUTH) == pytest.approx(np.mean(there == TRUTH), abs=0.02)
        assert np.mean(ours == there) > 0.93


def test_an_interrupted_forest_goes_on_where_it_stopped(tmp_path):
    codes, columns = encode_rows(PEOPLE, DOMAIN)
    whole = Forest(codes, columns, TRUTH, 6, 0)
    whole.grow(5, keep=(2,))
    Forest(codes, columns, TRUTH, 6, 0).grow(3, tmp_path / "forest.npz", keep=(2,))
    rest = Forest(codes, columns, TRUTH, 6, 0)
    rest.grow(5, tmp_path / "forest.npz", keep=(2,))
    assert np.array_equal(rest.votes, whole.votes)
    assert np.array_equal(rest.kept[2], whole.kept[2])
    assert 0 < rest.stored_seconds < rest.seconds


def test_columns_are_the_domains_and_values_keep_their_order():
    codes, columns = encode_rows(PEOPLE, DOMAIN)
    assert len(columns) == DOMAIN.width
    assert columns[:2].tolist() == [[0, ORDERED], [1, ORDERED]]
    assert np.array_equal(codes[:, 0], PEOPLE.age - PEOPLE.age.min())
    numbers = RNG.random(1000)
    assert np.all(np.diff(order_values(numbers)[np.argsort(numbers)]) >= 0)
    assert order_values(numbers).max() == 255
