"""Tables with missing values, unbalanced soft answers, spikes and skew: one set on which constants may be chosen, and one of other kinds that is held out.

They are declared as those of `experiments/strangers.py` are. A missing number has the middle of its bounds, as rows are registered, and a missing code
none of its values; `unseen` models are asked about missing numbers as such, so that no public point shows them how they answer.
"""

from __future__ import annotations

from experiments.strangers import Make

DEVELOPMENT = {
    "cars": Make(
        26_000, {"year": 1, "amount": 1, "gamma": 1, "normal": 1, "count": 1}, (-20, 6, 4), 2, positives=0.06, missing=0.1
    ),
    "houses": Make(18_000, {"amount": 2, "count": 2, "year": 1}, (-12, 5), 3, model="forest", positives=0.3, missing=0.05),
    "patients": Make(9_000, {"normal": 4, "heap": 1, "gamma": 2}, (5, 4), 5, positives=0.12, missing=0.15, unseen=True),
    "subscribers": Make(36_000, {"gamma": 1, "uniform": 1, "product": 1, "spike": 1}, (4, 3), 4, positives=0.2),
    "orders": Make(50_000, {"spike": 4, "amount": 2, "count": 2}, (-15, 6), 2, positives=0.04, missing=0.1),
    "rides": Make(60_000, {"gamma": 1, "uniform": 1, "product": 1, "spike": 2}, (-25, 7), 2, model="neural", positives=0.4),
    "wages": Make(40_000, {"year": 1, "heap": 2, "count": 1}, (9, 7, 5), 3, (6,), positives=0.1, missing=0.08, unseen=True),
    "invoices": Make(30_000, {"amount": 1, "copy": 3, "spike": 2, "gamma": 1}, (-8, 4), 2, positives=0.1, missing=0.1),
}
HELD_OUT = {
    "flats": Make(24_000, {"tail": 1, "tens": 2, "until": 1, "normal": 1}, (-18, 5, 3), 2, positives=0.07, missing=0.1),
    "wards": Make(14_000, {"age": 1, "stay": 2, "normal": 3}, (-10, 6), 6, positives=0.1, missing=0.12),
    "parcels": Make(70_000, {"stay": 2, "ratio": 1, "count": 2}, (-24, 5), 2, model="forest", positives=0.15, missing=0.06),
    "donors": Make(20_000, {"age": 1, "paid": 3, "tens": 1}, (7, 4), 4, positives=0.05, missing=0.1, unseen=True),
    "fields": Make(33_000, {"tail": 2, "difference": 1, "until": 2}, (6, 5), 1, model="neural", positives=0.35),
    "phones": Make(45_000, {"paid": 2, "tail": 1, "larger": 1, "count": 2}, (-12, 4), 3, positives=0.08, missing=0.1),
    "courses": Make(11_000, {"tens": 3, "until": 1, "age": 1}, (5, 4), 4, (5, 5), model="forest", positives=0.25, missing=0.05),
    "policies": Make(90_000, {"age": 1, "paid": 2, "tail": 2, "ratio": 1}, (-16, 6, 4), 3, positives=0.03, missing=0.1),
    "boats": Make(8_000, {"until": 1, "tail": 1, "tens": 1, "stay": 1}, (-9, 4), 2, positives=0.2, missing=0.1),
    "calls": Make(55_000, {"stay": 3, "larger": 1, "paid": 1}, (8, -8), 2, model="linear", positives=0.12, missing=0.05),
    "jobs": Make(28_000, {"age": 1, "tens": 2, "difference": 1}, (-30, 9, 5), 3, positives=0.06, missing=0.1, unseen=True),
    "meals": Make(16_000, {"tail": 3, "normal": 2}, (6, -10), 2, model="forest", soft=False, positives=0.2, missing=0.08),
}
