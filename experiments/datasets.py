"""The real data sets: public domains written down from their code books, and a black box trained on some of the rows.

Nothing here is part of the library. Files are looked for in `--data` or DPEXPLAIN_DATA.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

import dpexplain as dpx

# Census occupation codes in major groups, by the first code of each (2018 code list).
OCCUPATION_STARTS = (0, 440, 740, 960, 1300, 1600, 2000, 2060, 2200, 2600, 3000, 3600, 3700, 4000, 4200, 4330, 4700, 5000, 6000, 6200, 6800, 7000, 7700,
                     9000, 9800, 10000)  # fmt: skip
BIRTH_AREAS = ("US", "islands", "Europe", "Asia", "N. America", "Latin America", "Africa", "Oceania")

ACS_DOMAIN = dpx.Domain(
    [
        dpx.Numeric("AGEP", 17, 97),
        dpx.Ordinal("SCHL", levels=list(range(1, 25))),
        dpx.Numeric("WKHP", 1, 99),
        dpx.Binary("MAR", values=(1, 2)),
        dpx.Binary("SEX", values=(1, 2)),
        dpx.Categorical("COW", values=list(range(1, 9))),
        dpx.Categorical("RELP", values=list(range(18))),
        dpx.Categorical("RAC1P", values=list(range(1, 6))),
        dpx.Categorical("OCC", values=list(range(1, len(OCCUPATION_STARTS) + 1))),
        dpx.Categorical("BORN", values=list(BIRTH_AREAS)),
    ]
)

ADULT_CATEGORIES = {
    "workclass": ["?", "Federal-gov", "Local-gov", "Never-worked", "Private", "Self-emp-inc", "Self-emp-not-inc", "State-gov", "Without-pay"],
    "marital-status": ["Divorced", "Married-AF-spouse", "Married-civ-spouse", "Married-spouse-absent", "Never-married", "Separated", "Widowed"],
    "occupation": ["?", "Adm-clerical", "Armed-Forces", "Craft-repair", "Exec-managerial", "Farming-fishing", "Handlers-cleaners",
                   "Machine-op-inspct", "Other-service", "Priv-house-serv", "Prof-specialty", "Protective-serv", "Sales", "Tech-support",
                   "Transport-moving"],
    "relationship": ["Husband", "Not-in-family", "Other-relative", "Own-child", "Unmarried", "Wife"],
    "race": ["Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White"],
}  # fmt: skip
ADULT_DOMAIN = dpx.Domain(
    [
        dpx.Numeric("age", 17, 90),
        dpx.Ordinal("education-num", levels=list(range(1, 17))),
        dpx.Numeric("capital-gain", 0, 20_000),
        dpx.Numeric("capital-loss", 0, 3_000),
        dpx.Numeric("hours-per-week", 1, 99),
        dpx.Binary("sex", values=("Female", "Male")),
        dpx.Binary("native-country", values=("elsewhere", "United-States")),
        *(dpx.Categorical(name, values=values) for name, values in ADULT_CATEGORIES.items()),
    ]
)


@dataclass(frozen=True)
class BlackBox:
    """A forest on encoded columns, asked about tables of the domain's features: ±1."""

    forest: Any
    domain: dpx.Domain

    def __call__(self, table):
        return self.vectors(self.domain.encode(table))

    def vectors(self, encoded):
        parts = [self.forest.predict(encoded[start : start + 100_000]) for start in range(0, len(encoded), 100_000)]
        return np.where(np.concatenate(parts), 1.0, -1.0)

    def probability(self, encoded):
        """(m, 2), as tools expect it."""
        return self.forest.predict_proba(encoded)


@dataclass(frozen=True)
class Labelled:
    """Rows as a frame, their encoding, the black box, and its ±1 answers."""

    name: str
    domain: dpx.Domain
    frame: Any
    encoded: np.ndarray
    labels: np.ndarray
    model: BlackBox

    def with_model(self, **options):
        """The rows behind the wall with the black box itself, so that it can label reference records."""
        names = [feature.name for feature in self.domain.features]
        return dpx.PrivateData(self.frame[names], self.domain, model=self.model, **options)

    def private(self, **options):
        """The rows behind the wall, under their public domain."""
        return dpx.PrivateData(self.frame, self.domain, labels=self.labels, **options)


def data_folder(argument: str | None) -> Path:
    folder = argument or os.environ.get("DPEXPLAIN_DATA")
    if not folder:
        raise SystemExit("say where the data sets are: --data DIR or DPEXPLAIN_DATA=DIR")
    return Path(folder)


def arguments(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", help="folder with acs_income_2018.parquet and adult_uci.parquet (default: DPEXPLAIN_DATA)")
    parser.add_argument("--queries", type=int, default=50, help="how many random rows are explained")
    parser.add_argument("--seed", type=int, default=0)
    return parser


def acs(folder: Path, trees: int = 100, cache: Path | None = None) -> Labelled:
    """ACS Income 2018: 1.4 M people, ten attributes, 70 encoded columns. With a `cache` the black box is trained and asked once."""
    frame = pd.read_parquet(folder / "acs_income_2018.parquet")
    frame["OCC"] = np.digitize(frame.OCCP, OCCUPATION_STARTS)
    frame["BORN"] = np.array(BIRTH_AREAS)[_birth_area(frame.POBP.to_numpy())]
    return _label_table("ACS", ACS_DOMAIN, frame, frame.PINCP.to_numpy(), trees, cache and cache / f"acs-answers-{trees}.joblib")


def adult(folder: Path, trees: int = 100) -> Labelled:
    """UCI Adult: 48,842 people, 49 encoded columns."""
    frame = pd.read_parquet(folder / "adult_uci.parquet")
    frame["native-country"] = np.where(frame["native-country"] == "United-States", "United-States", "elsewhere")
    return _label_table("Adult", ADULT_DOMAIN, frame, frame.income.str.contains(">50K").to_numpy(), trees)


def _birth_area(code: np.ndarray) -> np.ndarray:
    europe = ((code >= 100) & (code <= 157)) | (code == 160) | ((code >= 162) & (code < 200))
    north = ((code >= 300) & (code <= 302)) | ((code >= 304) & (code <= 309))
    rules = [code < 60, code < 100, europe, code < 300, north, code < 400, code < 500]
    return np.select(rules, range(7), 7)


def _label_table(
    name: str, domain: dpx.Domain, frame: pd.DataFrame, truth: np.ndarray, trees: int, stored: Path | None = None
) -> Labelled:
    """±1 answers of a random forest (depth 10, as in the paper) trained on at most 150,000 of the rows."""
    for feature in domain.features:
        if isinstance(feature, dpx.Numeric):  # queries are drawn from the rows, and a domain refuses queries outside its bounds
            frame[feature.name] = frame[feature.name].clip(feature.low, feature.high)
    encoded = domain.encode(frame)
    if stored is not None and stored.exists():
        forest, labels = joblib.load(stored)
        return Labelled(name, domain, frame, encoded, labels, BlackBox(forest, domain))
    chosen = np.random.default_rng(0).permutation(len(encoded))[:150_000]
    forest = RandomForestClassifier(trees, max_depth=10, n_jobs=2, random_state=0).fit(encoded[chosen], truth[chosen])
    model = BlackBox(forest, domain)
    labels = model.vectors(encoded)
    if stored is not None:
        stored.parent.mkdir(parents=True, exist_ok=True)
        joblib.dump((forest, labels), stored)
    return Labelled(name, domain, frame, encoded, labels, model)


def random_records(data: Labelled, count: int, seed: int) -> list[dict[str, Any]]:
    """Points of interest: random rows as records of the domain."""
    chosen = np.random.default_rng(seed).integers(0, len(data.frame), count)
    names = [feature.name for feature in data.domain.features]
    return data.frame[names].iloc[chosen].to_dict("records")
