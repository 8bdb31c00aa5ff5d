"""Three generated tables with the traits of much-used ones that no package has: amounts with extreme tails, special codes among numbers, rare codes.

"late loans" is made as 150,000 borrowers of a bank are: utilisation and debt over income are shares for most and amounts for some, a fifth of the incomes is
missing (debt is an amount where it is), and a few hundred people have 96 or 98 in three counts at once. "home credit" has 23 numbers of 10,500 people in which
-7, -8 and -9 mean that there is none, -9 in all of them at once. "readmissions" is 100,000 stays in hospital: 23 drugs of which most are hardly given,
long lists of codes with few rows, half of the specialities missing, 11 % positives. They are declared as the real tables are, before they were measured.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from experiments.real_tables import RealTable, table_of

LINES, PEOPLE, STAYS = 150_000, 10_500, 100_000
COUNTS = ("late30", "late60", "late90")
DRUGS = [f"drug{i}" for i in range(23)]
NUMBERS = (
    "risk oldest newest months_of_file satisfactory due60 due90 never_due last_due trades opened_year installment_share last_inquiry inquiries "
    "inquiries_but_week revolving_burden installment_burden revolving_trades installment_trades high_use with_balance"
)


def _late_loans(rng, rows=LINES):
    stress = rng.standard_normal(rows)
    used = rng.beta(0.6, 1.2, rows) ** np.exp(-0.6 * stress)
    used = np.where(rng.random(rows) < 0.072, 0.0, np.where(rng.random(rows) < 0.07, 0.9999999, used))
    used = np.where(rng.random(rows) < 0.022, 1 + rng.gamma(0.7, 0.25, rows), used)
    used = np.where(rng.random(rows) < 0.0016, np.exp(rng.normal(6.8, 1.2, rows)).round(), used)
    age = np.clip(52.3 - 3 * stress + 14.5 * rng.standard_normal(rows), 21, 107).round()
    income = np.exp(8.6 + 0.65 * rng.standard_normal(rows) - 0.12 * stress).round()
    income = np.where(rng.random(rows) < 0.016, rng.integers(0, 2, rows), income)
    income = np.where(rng.random(rows) < 0.0004, income * 60, income)
    debt = np.exp(7.2 + 0.9 * rng.standard_normal(rows) + 0.1 * stress) * (rng.random(rows) > 0.027)
    missing = rng.random(rows) < 0.198
    ratio = np.where(missing | (income <= 1), debt.round(), debt / (income + 1))
    late = {k: rng.poisson(np.exp(mean + 1.1 * stress)).clip(0, 13) for k, mean in zip(COUNTS, (-2.3, -3.9, -3.7), strict=True)}
    special, value = rng.random(rows) < 0.0018, np.where(rng.random(rows) < 0.02, 96, 98)
    late = {k: np.where(special, value, count) for k, count in late.items()}
    lines = rng.negative_binomial(3.2, 3.2 / (3.2 + 8.4), rows)
    homes = rng.negative_binomial(1.3, 1.3 / (1.3 + 1.0), rows)
    children = np.where(rng.random(rows) < 0.026, np.nan, rng.negative_binomial(0.7, 0.7 / (0.7 + 0.76), rows))
    score = 1.3 * np.minimum(used, 1.2) + 0.55 * np.minimum(late["late30"], 4) + 0.9 * np.minimum(late["late90"], 4) - 0.02 * age
    score = score + 0.6 * np.minimum(late["late60"], 3) - 0.02 * lines + 0.08 * np.nan_to_num(children)
    found = {
        "used": used,
        "age": age,
        "ratio": ratio,
        "income": np.where(missing, np.nan, income),
        "lines": lines,
        "homes": homes,
    }
    return found | late | {"children": children, "score": score + rng.logistic(size=rows)}


def _home_credit(rng, rows=PEOPLE):
    names = NUMBERS.split()
    good, thick = rng.standard_normal((2, rows))
    found = {}
    for i, name in enumerate(names):
        line = 0.7 * np.cos(i) * good + 0.7 * np.sin(2 * i) * thick + 0.7 * rng.standard_normal(rows)
        found[name] = np.rint(np.exp(2.2 + 0.7 * line) if i % 3 else 60 + 18 * line).clip(0)
    found["risk"] = np.rint(72 + 8 * good + 5 * rng.standard_normal(rows)).clip(33, 94)
    found["never_due"] = np.where(rng.random(rows) < 0.45, 100.0, np.rint(100 * rng.beta(9, 1, rows)))
    found["due60"] = rng.poisson(np.exp(-0.9 - 0.7 * good)).astype(float)
    found["due90"] = rng.binomial(found["due60"].astype(int), 0.6).astype(float)
    found["inquiries_but_week"] = np.maximum(found["inquiries"] - (rng.random(rows) < 0.1), 0)
    found["last_due"] = np.where(found["never_due"] == 100, -7, found["last_due"])
    for name, share in {
        "last_inquiry": 0.2,
        "installment_burden": 0.32,
        "high_use": 0.06,
        "with_balance": 0.02,
        "oldest": 0.02,
    }.items():
        found[name] = np.where(rng.random(rows) < share, -8, found[name])
    worst = np.clip(np.rint(6 + 1.2 * good + rng.standard_normal(rows)), 0, 9)
    score = -0.9 * good + 0.02 * found["revolving_burden"] - 0.1 * thick + rng.logistic(size=rows)
    nothing = rng.random(rows) < 0.056
    found = {name: np.where(nothing, -9, column) for name, column in found.items()}
    codes = {"worst_year": np.where(nothing, -9, worst), "worst_ever": np.where(nothing, -9, np.maximum(worst - 1, 2))}
    return found | {name: column.astype(int) for name, column in codes.items()} | {"score": score}


def _readmissions(rng, rows=STAYS):
    frail, sugar = rng.standard_normal((2, rows))

    def code(size, fall, tilt=0.0, missing=0.0):
        drawn = (
            rng.gumbel(size=(rows, size)) - fall * np.arange(size) + tilt * frail[:, None] * np.sin(1 + np.arange(size))
        ).argmax(1)
        return np.where(rng.random(rows) < missing, None, np.array([f"v{i}" for i in range(size)], dtype=object)[drawn])

    found = {
        "race": code(5, 1.1, missing=0.022),
        "gender": code(2, 0.15),
        "admission": code(8, 0.6),
        "discharge": code(24, 0.45, 0.5),
    }
    found |= {"source": code(14, 0.7), "speciality": code(30, 0.2, 0.3, 0.49), "payer": code(16, 0.3, 0.2, 0.4)}
    found |= {f"diagnosis{i}": code(9, 0.25, 0.6) for i in range(3)} | {"glucose": code(4, 2.5), "a1c": code(4, 1.5)}
    found["age"] = np.digitize(66 + 14 * rng.standard_normal(rows) + 4 * frail, np.arange(10, 100, 10)).astype(str)
    found["days"] = (1 + rng.poisson(np.exp(1.05 + 0.35 * frail))).clip(1, 14)
    found["tests"] = np.where(rng.random(rows) < 0.03, 1, (43 + 19 * rng.standard_normal(rows) + 3 * frail).clip(1, 132).round())
    found["procedures"] = rng.negative_binomial(0.9, 0.4, rows).clip(0, 6)
    found["medications"] = (1 + rng.poisson(np.exp(2.65 + 0.25 * frail + 0.35 * rng.standard_normal(rows)))).clip(1, 81)
    for name, mean in {"outpatient": -2.6, "emergency": -3.2, "inpatient": -1.1}.items():
        found[name] = rng.poisson(np.exp(mean + 0.6 * frail + 1.2 * rng.standard_normal(rows))).clip(0, 60)
    found["diagnoses"] = np.where(rng.random(rows) < 0.48, 9, rng.integers(1, 10, rows) + (rng.random(rows) < 0.002) * 7)
    given = 1 / (1 + np.exp(-(-0.6 - 0.45 * np.arange(23) + 0.8 * sugar[:, None])))
    changed = rng.choice(["Steady", "Up", "Down"], (rows, 23), p=[0.86, 0.08, 0.06])
    drugs = np.where(rng.random((rows, 23)) < given, changed, "No")
    found |= dict(zip(DRUGS, drugs.T, strict=True))
    found["any"] = np.where((drugs != "No").any(1), "yes", "no")
    found["change"] = np.where(np.isin(drugs, ["Up", "Down"]).any(1), "yes", "no")
    score = 0.5 * np.minimum(found["inpatient"], 6) + 0.25 * np.minimum(found["emergency"], 4) + 0.04 * found["days"]
    score = score + 0.4 * (found["discharge"] == "v2") + 0.9 * (found["discharge"] == "v5") + 0.12 * (drugs[:, 0] != "No")
    return found | {"score": score + 0.3 * frail + rng.logistic(size=rows)}


LATE = RealTable("", "score > 3.15", "used age ratio income lines homes late30 late60 late90 children")
TABLES = {
    "late loans": (_late_loans, LATE),
    "late loans in full": (_late_loans, replace(LATE, full=True)),
    "home credit": (_home_credit, RealTable("", "score > 0.5", NUMBERS, "worst_year worst_ever", model="neural", tied=True)),
    "readmissions": (
        _readmissions,
        RealTable(
            "",
            "score > 3.2",
            "days tests procedures medications outpatient emergency inpatient diagnoses",
            "race gender admission discharge source speciality payer diagnosis0 diagnosis1 diagnosis2 glucose a1c age "
            + " ".join(DRUGS),
            "any change",
            model="forest",
            tied=True,
        ),
    ),
}


def load(name):
    make, declared = TABLES[name]
    return table_of(declared, pd.DataFrame(make(np.random.default_rng([6, len(name)]))))
