"""A small table of made-up people, with a model that is bent in one number: for tests of paid answers."""

import numpy as np

import dpexplain as dpx

DOMAIN = dpx.Domain(
    [
        dpx.Numeric("age", 17, 97),
        dpx.Ordinal("school", levels=[1, 2, 3, 4]),
        dpx.Categorical("work", values=list("abcd")),
        dpx.Binary("married"),
    ]
)
RECORD = {"age": 40, "school": 3, "work": "b", "married": True}


def model(table):
    age, work = np.asarray(table["age"], dtype=float), np.asarray(table["work"])
    return 1 / (1 + np.exp(-(age - 50) / 12 - 1.5 * (work == "a") - 0.5 * np.asarray(table["school"], dtype=float) + 1))


def people(count=6_000):
    rng = np.random.default_rng(0)
    return {
        "age": rng.uniform(17, 97, count),
        "school": rng.integers(1, 5, count),
        "work": rng.choice(list("abcd"), count, p=[0.1, 0.5, 0.3, 0.1]),
        "married": rng.random(count) < 0.5,
    }
