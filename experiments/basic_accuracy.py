"""Algorithm 1 on real data: exact calibration at its defaults beside the paper's own, for the same (ε, δ) a query.

python -m experiments.basic_accuracy --data DIR
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import dpexplain as dpx
from dpexplain import evaluation
from experiments.datasets import acs, adult, arguments, data_folder, random_records


def mechanisms(epsilon):
    return {
        "fitted plane": dpx.Basic(epsilon, 1e-6),
        "paper's plane": dpx.Basic(epsilon, 1e-6, plane="paper"),
        "paper's plane, noise and steps, T=300": dpx.Basic(epsilon, 1e-6, steps=300, calibration="paper"),
    }


def measure(data, private, mechanism, records):
    """Mean relative excess, cosine and top-5 overlap of secure-noise answers."""
    explainer = dpx.Explainer(private, dpx.Budget(1000, 1e-6), mechanism)
    asked = track(records, description=data.name, transient=True)
    scores = []
    for record in asked:
        answer = explainer.explain(record)
        radius = answer.details["radius"]  # the best plane that slopes within the same cap can give
        scores.append(evaluation.score(answer.values, private, record, plane=answer.plane, radius=radius))
    return [float(np.mean([getattr(s, what) for s in scores])) for what in ("relative_excess", "cosine", "top_k_overlap")]


def main():
    options = arguments(__doc__.splitlines()[0]).parse_args()
    table = Table(title=f"{options.queries} random queries, δ = 1e-6 a query, stable weight")
    for column in ("data", "rows", "columns", "ε a query", "mechanism", "relative excess", "cosine", "top-5 shared"):
        table.add_column(column)
    folder = data_folder(options.data)
    for load, epsilons in ((acs, (0.01, 0.1)), (adult, (0.1, 1.0))):
        data = load(folder)
        private, records = data.with_model(), random_records(data, options.queries, options.seed)
        for epsilon in epsilons:
            for name, mechanism in mechanisms(epsilon).items():
                excess, cosine, shared = measure(data, private, mechanism, records)
                rows, columns = f"{private.size:,}", str(data.domain.width)
                table.add_row(data.name, rows, columns, f"{epsilon:g}", name, f"{excess:.4f}", f"{cosine:.4f}", f"{shared:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
