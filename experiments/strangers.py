"""Thirty generated tables of different make, split into a half on which constants may be chosen and a held-out half.

Every table is a declaration: its columns by kind, how they depend on each other, the model and its answers. The split was drawn before
any constant was chosen by these tables.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dpexplain as dpx

TRAINED = 6_000  # rows that a model is trained on
MODELS = {
    "boosted": lambda: HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=15, random_state=0),
    "forest": lambda: RandomForestClassifier(25, max_depth=9, min_samples_leaf=5, random_state=0),
    "linear": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
    "neural": lambda: make_pipeline(StandardScaler(), MLPClassifier((24,), max_iter=60, random_state=0)),
}


@dataclass(frozen=True)
class Make:
    """What a table is made of.

    `numbers` names kinds of numbers with how many of each; `codes` are the sizes of categoricals, negative ones with frequencies that fall like
    1/rank²; `dependence` says how much the hidden factors tell about a column. A model is "boosted", "forest", "linear" or "neural", its
    answers are soft or hard, and `positives` is the share of rows that it is trained to find. Without `registered`, only labels are. `missing` is the
    share of rows without the last number that does not follow from others, a third of that without the first code; `unseen` models know which.
    """

    rows: int
    numbers: dict[str, int] = field(default_factory=dict)
    codes: tuple[int, ...] = ()
    binaries: int = 0
    levels: tuple[int, ...] = ()
    dependence: float = 1.0
    factors: int = 2
    model: str = "boosted"
    soft: bool = True
    positives: float = 0.3
    registered: bool = True
    missing: float = 0.0
    unseen: bool = False


DERIVED = ("copy", "product", "ratio", "difference", "larger")  # numbers that follow from the first ones
MAKES = {
    "claims": Make(30_000, {"amount": 1, "copy": 1, "spike": 1, "count": 1, "gamma": 1}, (-10, 4), 1, positives=0.03),
    "bills": Make(30_000, {"amount": 1, "copy": 5, "spike": 6, "uniform": 1}, (4, 3), 1, model="forest", positives=0.2),
    "late payments": Make(120_000, {"amount": 2, "spike": 3, "count": 4, "gamma": 1}, model="boosted", positives=0.07),
    "small clinic": Make(5_000, {"normal": 5, "gamma": 2}, (4,), 6, model="forest", soft=False, positives=0.2),
    "hospital": Make(
        100_000, {"count": 6, "normal": 2}, (-20, -12, 9, 6), 90, dependence=0.5, factors=5, model="linear", positives=0.1
    ),
    "sensors": Make(40_000, {"normal": 20, "copy": 4}, factors=3, model="neural"),
    "lags": Make(60_000, {"lag": 12, "uniform": 2}, (7,), model="neural", positives=0.4),
    "shares": Make(25_000, {"share": 5, "gamma": 2}, (3,), 2, model="boosted", positives=0.25),
    "shop": Make(80_000, {"spike": 6, "count": 3, "amount": 2}, (-12, 5), 4, model="boosted", positives=0.05),
    "survey": Make(15_000, {}, (5, 4, 3), 5, (5, 7, 4, 10), model="forest", soft=False, positives=0.4),
    "rare codes": Make(50_000, {"normal": 2}, (-40, -25, -15), 2, model="linear", positives=0.3),
    "clicks": Make(200_000, {"count": 2, "gamma": 2}, (-20, 8, 5), 4, model="boosted", positives=0.01),
    "clusters": Make(20_000, {"bimodal": 6}, (4, 4), dependence=2.0, factors=2, model="forest", positives=0.5),
    "six columns": Make(8_000, {"normal": 3, "amount": 1}, (), 2, model="neural", positives=0.3),
    "census": Make(48_000, {"heap": 3, "spike": 2}, (8, 7, 14, 6, 5), 2, factors=3, model="boosted", positives=0.24),
    "wide numbers": Make(60_000, {"normal": 50, "spike": 20}, dependence=0.7, factors=6, model="linear", positives=0.3),
    "wide flags": Make(80_000, {}, (), 120, dependence=0.6, factors=6, model="forest", soft=False, positives=0.3),
    "two hundred": Make(
        150_000, {"normal": 20, "count": 6}, (30, 25, 20, 15, 12), 72, dependence=0.5, factors=8, model="linear", positives=0.2
    ),
    "labels only": Make(40_000, {"normal": 4, "spike": 2}, (6, 5), 6, model="forest", soft=False, registered=False),
    "soft labels only": Make(70_000, {"amount": 2, "gamma": 2}, (8, 4), 4, model="boosted", positives=0.1, registered=False),
    "independent": Make(30_000, {"uniform": 5}, (6, 4), 5, dependence=0.0, model="boosted", soft=False, positives=0.4),
    "strongly dependent": Make(50_000, {"normal": 6, "heap": 2}, (6, 6), 6, dependence=3.0, model="forest", positives=0.3),
    "premiums": Make(35_000, {"amount": 3, "copy": 2, "count": 2}, (-8, 6), 3, model="linear", positives=0.15),
    "fraud": Make(150_000, {"amount": 2, "normal": 8, "spike": 2}, (5,), 1, model="boosted", soft=False, positives=0.03),
    "students": Make(6_000, {"heap": 3, "count": 2}, (4, 5), 5, (5, 5, 4), model="linear", positives=0.35),
    "network traffic": Make(90_000, {"spike": 10, "amount": 5}, (-6, 3), 4, factors=3, model="forest", positives=0.2),
    "lags and spikes": Make(12_000, {"lag": 6, "spike": 4}, (5,), 1, model="boosted", positives=0.15),
    "energy": Make(45_000, {"lag": 4, "bimodal": 3, "gamma": 3}, (7, 4), 2, factors=3, model="neural", positives=0.5),
    "questionnaire": Make(10_000, {}, (), 10, (5,) * 15, factors=3, model="linear", soft=False, positives=0.3),
    "loans": Make(180_000, {"amount": 3, "copy": 1, "count": 4, "heap": 2}, (-14, 7, 5), 2, model="boosted", positives=0.12),
}
HELD_OUT = frozenset(np.array(list(MAKES))[np.random.default_rng(18).permutation(len(MAKES))[: len(MAKES) // 2]].tolist())


@dataclass(frozen=True, eq=False)
class StrangeTable:
    """Rows as columns, their domain and encoding, and the model's answers in [-1, 1]."""

    make: Make
    domain: dpx.Domain
    columns: dict[str, np.ndarray]
    encoded: np.ndarray
    answers: object

    def data(self):
        if self.make.registered:
            model = lambda rows: self.answers(self._rows_for_model(rows))  # noqa: E731
            return dpx.PrivateData(self.columns, self.domain, model=model, output="value", bounds=(-1, 1))
        return dpx.PrivateData(self.columns, self.domain, labels=self.answers(self.encoded))

    def _rows_for_model(self, rows):
        """Rows as the model sees them: encoded, and with what is missing where it knows that."""
        return restore_missing(self.domain, self.domain.encode(rows), rows) if self.make.unseen else self.domain.encode(rows)

    def records(self, count):
        """The first rows that have everything."""
        known = np.all([[value is not None and value == value for value in column] for column in self.columns.values()], axis=0)
        rows = np.flatnonzero(known)[:count]
        return [{name: _plain(column[i]) for name, column in self.columns.items()} for i in rows]

    @property
    def groups(self):
        """What each feature is: its kind, or "rare" for columns that less than 1 % of the rows have."""
        found = []
        for block, feature in zip(self.domain.blocks, self.domain.features, strict=True):
            kind = feature.name.split(" ")[0]
            for column in range(block.start, block.stop):
                rare = kind in ("code", "flag") and self.encoded[:, column].mean() < 0.01
                found.append("rare" if rare else {"copy": "collinear", "lag": "collinear", "share": "collinear"}.get(kind, kind))
        return np.array(found)


def restore_missing(domain, encoded, rows):
    """Encoded rows with NaN for each missing number."""
    found = encoded.copy()
    for block, feature in zip(domain.blocks, domain.features, strict=True):
        if isinstance(feature, dpx.Numeric):
            found[np.isnan(np.asarray(rows[feature.name], dtype=float)), block.start] = np.nan
    return found


def _plain(value):
    return value.item() if isinstance(value, np.generic) else value


def make_table(name, seed=0):
    """The table of this name; other seeds draw other rows, columns and models of the same make."""
    return build_table(MAKES[name], np.random.default_rng([list(MAKES).index(name), seed]))


def build_table(make, rng):
    """A table of this make."""
    hidden = rng.standard_normal((make.rows, make.factors))
    features, columns = [], {}

    def score():
        loading = rng.standard_normal(make.factors) * make.dependence / np.sqrt(make.factors)
        return hidden @ loading + rng.standard_normal(make.rows)

    for kind, count in make.numbers.items():
        for j, (low, high, values) in enumerate(_numbers(kind, count, score, rng, features, columns)):
            features.append(dpx.Numeric(f"{kind} {j}", low, high))
            columns[f"{kind} {j}"] = np.clip(values, low, high)
    for j, size in enumerate(make.codes):
        rank = np.arange(1, abs(size) + 1)
        bias = -2 * np.log(rank) if size < 0 else 0.7 * rng.standard_normal(len(rank))
        scores = np.column_stack([0.7 * score() + rng.gumbel(size=make.rows) + one for one in bias])
        features.append(dpx.Categorical(f"code {j}", values=[f"v{k}" for k in range(len(rank))]))
        columns[f"code {j}"] = np.array([f"v{k}" for k in range(len(rank))])[scores.argmax(axis=1)]
    for j, size in enumerate(make.levels):
        features.append(dpx.Ordinal(f"level {j}", levels=list(range(size))))
        columns[f"level {j}"] = np.clip(np.rint((score() / 4 + 0.5) * (size - 1)), 0, size - 1).astype(int)
    for j in range(make.binaries):
        features.append(dpx.Binary(f"flag {j}"))
        columns[f"flag {j}"] = score() > rng.uniform(0, 2.2) * np.sqrt(1 + make.dependence**2)
    if make.missing:
        _lose_values(make, columns, rng)
    domain = dpx.Domain(features)
    encoded = domain.encode(columns)
    seen = restore_missing(domain, encoded, columns) if make.unseen else encoded
    return StrangeTable(make, domain, columns, encoded, _model(make, encoded, seen, rng))


def _lose_values(make, columns, rng):
    number = [name for name in columns if name.split(" ")[0] in make.numbers and name.split(" ")[0] not in DERIVED][-1]
    columns[number] = np.where(rng.random(make.rows) < make.missing, np.nan, columns[number])
    if make.codes:
        columns["code 0"] = np.where(rng.random(make.rows) < make.missing / 3, None, columns["code 0"])


def _numbers(kind, count, score, rng, features, columns):
    """(low, high, values) of each number of a kind."""
    rows = len(score())
    if kind == "share":
        parts = np.exp(np.column_stack([score() for _ in range(count)]))
        parts /= parts.sum(axis=1, keepdims=True)
        yield from ((0, 1, part) for part in parts.T)
        return
    if kind == "lag":
        walk = [score()]
        for _ in range(count - 1):
            walk.append(0.95 * walk[-1] + 0.3 * rng.standard_normal(rows))
        yield from ((-4, 4, one) for one in walk)
        return
    for _ in range(count):
        if kind in DERIVED:
            yield _derive_number(kind, features, columns, rng)
            continue
        s = score()
        yield {
            "normal": lambda s: (-5, 5, s),
            "uniform": lambda s: (0, 10, 10 * (np.argsort(np.argsort(s)) + 0.5) / rows),
            "amount": lambda s: (0, 20_000, np.exp(6 + 1.1 * s / np.std(s))),
            "gamma": lambda s: (0, 50, 3 * np.logaddexp(0, 1.5 * s) + rng.gamma(1.0, 2.0, rows)),
            "spike": lambda s: (
                0,
                1_000,
                np.where(s > rng.uniform(0, 1), np.rint(100 * np.exp(0.7 * rng.standard_normal(rows))), 0),
            ),
            "count": lambda s: (0, 15, rng.poisson(0.5 * np.exp(0.6 * s / np.std(s)))),
            "bimodal": lambda s: (-6, 6, np.where(s > 0, 2.5, -2.5) + 0.8 * rng.standard_normal(rows)),
            "heap": lambda s: (0, 100, np.where(rng.random(rows) < 0.45, 40.0, np.rint(40 + 12 * s))),
            "year": lambda s: (1980, 2025, 2025 - np.rint(rng.gamma(2.0, 2.5, rows) * np.exp(-0.3 * s / np.std(s)))),
            "tail": lambda s: (-12, 12, s / np.sqrt(rng.chisquare(3, rows) / 3)),
            "tens": lambda s: (0, 200, 10 * np.rint(6 + 2.5 * s)),
            "until": lambda s: (0, 30, 30 * (1 - np.exp(-2.5 - s) / (1 + np.exp(-2.5 - s)) * 2)),
            "age": lambda s: (18, 95, np.rint(np.where(rng.random(rows) < 0.3, 68 + 6 * s, 33 + 9 * s))),
            "stay": lambda s: (0, 60, rng.geometric(np.clip(0.3 * np.exp(-0.5 * s / np.std(s)), 0.02, 1), rows)),
            "paid": lambda s: (0, 400, np.where(s > 0.4 * np.std(s), rng.gamma(1.5, 20.0, rows), 0.0)),
        }[kind](s)


def _derive_number(kind, features, columns, rng):
    """(low, high, values) of a number that follows from the first two."""
    first, second = features[0], features[min(1, len(features) - 1)]
    x, y = columns[first.name], columns[second.name]
    if kind == "copy":
        return first.low, first.high, x * rng.uniform(0.85, 1.1, len(x))
    if kind == "product":
        return 0, 0.6 * first.high * second.high, x * y
    if kind == "ratio":
        return 0, 5, x / (1 + np.abs(y))
    if kind == "difference":
        return first.low - second.high, first.high - second.low, x - y
    return min(first.low, second.low), max(first.high, second.high), np.maximum(x, y)


def _model(make, encoded, seen, rng):
    """Answers in [-1, 1] of a model that is trained on outcomes with steps and interactions, by rows as it sees them."""
    n = encoded.shape[1]
    chosen = rng.choice(n, min(n, 8 + n // 10), replace=False)
    x = (encoded[:, chosen] - encoded[:, chosen].mean(axis=0)) / (encoded[:, chosen].std(axis=0) + 1e-3)
    x = np.clip(x, -4, 4)
    line = x @ rng.standard_normal(len(chosen)) + 0.8 * (x[:, 0] > 0.5) * x[:, 1] + 0.8 * x[:, 2] * x[:, 3]
    chance = line / line.std() + 0.5 * rng.logistic(size=len(line)) / 1.8
    outcome = chance > np.quantile(chance, 1 - make.positives)
    trained = MODELS[make.model]().fit(seen[:TRAINED], outcome[:TRAINED])
    cut = np.quantile(trained.predict_proba(seen[:TRAINED])[:, 1], 1 - make.positives)

    def answers(rows):
        probability = trained.predict_proba(rows)[:, 1]
        return 2 * probability - 1 if make.soft else np.where(probability > cut, 1.0, -1.0)

    return answers
