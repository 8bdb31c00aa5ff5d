"""Happy or sad: private explanations of a network's answers about faces, at pixel and superpixel level (docs/images.md).

python -m experiments.faces --data DIR --cache DIR --output out/faces
"""

from __future__ import annotations

import argparse
import json
from math import e, log, sqrt
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import dpexplain as dpx
from dpexplain import evaluation, plots
from experiments import face_data
from experiments.datasets import data_folder

DELTA = 1e-5  # the paper's
PER_QUERY, IN_TOTAL = (0.1, 1.0, 4.0, 10.0), (0.1, 1.0, 4.0)
PAPER_STEPS = 200  # of the paper's experiments on faces
WIDEST_RELEASE = 24
SHOWN = 4


def theorem_steps(size, width, epsilon):
    """T of Theorem 3.2: m²ε²/(32 n ln²(e + 1/δ))."""
    return size**2 * epsilon**2 / (32 * width * log(e + 1 / DELTA) ** 2)


def interactive(data, faces, calibration, epsilon, runs):
    """Secure-noise answers about each face, several times, and the norm of the noise on one gradient."""
    steps = PAPER_STEPS if calibration == "paper" else None
    mechanism = dpx.Basic(epsilon, DELTA, steps=steps, calibration=calibration, plane="paper")
    explainer = dpx.Explainer(data, dpx.Budget(10_000, DELTA), mechanism)
    answers = [[explainer.explain(face) for face in faces] for _ in range(runs)]
    last = answers[0][0].details
    values = np.array([[answer.values for answer in run] for run in answers])
    return values, {"noise": last["sigma"] * sqrt(values.shape[2]), "gradients": last["gradients"]}


def explain_from_release(data, faces, epsilon):
    """One release for all faces."""
    release = dpx.release(data, dpx.Budget(epsilon, DELTA))
    return np.array([[release.explain(face).values for face in faces]]), {}


def methods(data, faces, totals, runs):
    for epsilon in PER_QUERY:
        yield "Basic, exact", epsilon, interactive(data, faces, "exact", epsilon, runs)
        yield "Basic, paper", epsilon, interactive(data, faces, "paper", epsilon, runs)
    for epsilon in totals:
        yield "release, in total", epsilon, explain_from_release(data, faces, epsilon)


def measure(model, images, faces, grid, runs):
    """Everything about one grid: how far each method is from the optimum, and its pictures of the first faces."""
    domain = dpx.ImageDomain(shape=(48, 48), grid=(grid, grid))
    data = dpx.PrivateData(images, domain, model=model)
    evaluation.remember(data)
    moments = evaluation.local_moments_of(data, faces)
    best = np.array([evaluation.optimum(data, face, plane="paper") for face in faces])
    found = {"grid": grid, "columns": domain.width, "size": data.size, "faces": len(faces), "runs": runs, "rows": []}
    found["gradient"] = float(np.mean([2 * np.linalg.norm(one.b) / data.size for one in moments]))  # ‖∇L(0)‖
    found["alike"] = float(np.corrcoef(best)[np.triu_indices(len(faces), 1)].mean())  # do optima of different faces differ?
    maps = {"exact": best[:SHOWN]}
    for name, epsilon, (values, facts) in methods(data, faces, IN_TOTAL if grid <= WIDEST_RELEASE else (), runs):
        scores = [evaluation.compare(run[i], best[i], moments[i], data.size) for run in values for i in range(len(faces))]
        mean = {
            what: float(np.mean([getattr(score, what) for score in scores]))
            for what in ("relative_excess", "excess_loss", "cosine")
        }
        found["rows"].append({"method": name, "epsilon": epsilon, **mean, **facts})
        maps[f"{name} ε={epsilon:g}"] = values[0][:SHOWN]
        print(grid, found["rows"][-1], flush=True)
    return found, {name: np.array([domain.image(one) for one in values]) for name, values in maps.items()}


def scores_table(results):
    table = Table(title=f"δ = {DELTA:g}; means over faces and runs")
    for column in (
        "superpixels",
        "columns",
        "method",
        "ε",
        "relative excess",
        "cosine",
        "‖noise‖/‖∇L(0)‖",
        "gradients",
        "T of Thm 3.2",
    ):
        table.add_column(column)
    for found in results:
        for row in found["rows"]:
            noise = f"{row['noise'] / found['gradient']:.2f}" if "noise" in row else ""
            steps = f"{theorem_steps(found['size'], found['columns'], row['epsilon']):.2f}" if "paper" in row["method"] else ""
            numbers = f"{row['relative_excess']:.3f}", f"{row['cosine']:.3f}", noise, str(row.get("gradients", "")), steps
            table.add_row(
                f"{found['grid']}×{found['grid']}", str(found["columns"]), row["method"], f"{row['epsilon']:g}", *numbers
            )
    return table


COLUMNS = ("exact", "Basic, paper ε=1", "Basic, exact ε=0.1", "Basic, exact ε=1", "Basic, exact ε=10", "release, in total ε=1")


def face_grid(maps, faces, columns=COLUMNS):
    """One face a row: the face, then each method's heat map over it, each in its own scale."""
    from matplotlib.figure import Figure

    shown = [column for column in columns if column in maps]
    figure = Figure(figsize=(1.7 * (len(shown) + 1), 1.8 * len(faces)), layout="constrained")
    for axes, (i, face) in zip(figure.subplots(len(faces), len(shown) + 1, squeeze=False), enumerate(faces), strict=True):
        plots.overlay(np.zeros((48, 48)), face, scale=False, title="face" if i == 0 else "", ax=axes[0])
        for column, ax in zip(shown, axes[1:], strict=True):
            plots.overlay(maps[column][i], face, scale=False, title=column if i == 0 else "", ax=ax)
    return figure


def heat_maps(maps_of, columns=COLUMNS):
    """One grid a row, heat maps of the first face without the face: nobody's picture."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.6 * len(columns), 1.75 * len(maps_of)), layout="constrained")
    for row, (axes, (grid, maps)) in enumerate(
        zip(figure.subplots(len(maps_of), len(columns), squeeze=False), maps_of.items(), strict=True)
    ):
        for column, ax in zip(columns, axes, strict=True):
            title = column if row == 0 else ""
            if column in maps:
                plots.overlay(maps[column][0], scale=False, title=title, ax=ax)
            else:
                ax.set_axis_off()
                ax.set_box_aspect(1)
                ax.set_title(title, loc="left", fontsize=10)
        axes[0].set_ylabel(f"{grid}×{grid}")
    return figure


def main():
    from experiments import face_network  # needs torch

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with fer2013_48x48.npz (default: DPEXPLAIN_DATA)")
    parser.add_argument("--cache", type=Path, required=True, help="where to keep the unpacked images and the trained network")
    parser.add_argument("--output", type=Path, default=Path("out/faces"))
    parser.add_argument("--faces", type=int, default=12, help="how many random test faces are explained")
    parser.add_argument("--runs", type=int, default=4, help="how often each is asked about")
    parser.add_argument("--grids", type=int, nargs="+", default=[4, 6, 12, 24, 48])
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    data = face_data.load(data_folder(options.data), options.cache)
    model = face_network.classifier(data, options.cache)
    print(f"test accuracy {model.accuracy(data.test, data.test_happy):.4f}, {len(data.training)} private images")
    faces = data.test[np.random.default_rng(0).permutation(len(data.test))[: options.faces]]
    for grid in options.grids:
        found, maps = measure(model, data.training, faces, grid, options.runs)
        (options.output / f"scores-{grid:02}.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
        np.savez_compressed(options.output / f"maps-{grid:02}.npz", **maps)
    summarise(options.output, faces[:SHOWN])


def summarise(output, faces):
    """Table and pictures of every grid measured so far, the finest first."""
    results = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(output.glob("scores-*.json"), reverse=True)]
    maps_of = {found["grid"]: dict(np.load(output / f"maps-{found['grid']:02}.npz")) for found in results}
    for grid, maps in maps_of.items():
        face_grid(maps, faces).savefig(output / f"faces-{grid:02}.png", dpi=90)
    heat_maps(maps_of).savefig(output / "heat-maps.png", dpi=56)
    Console(width=140).print(scores_table(results))


if __name__ == "__main__":
    main()
