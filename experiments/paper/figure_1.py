"""Figure 1: faces, heat maps by Algorithm 1 for several ε (δ = 1e-5, T = 200): pixels as in the paper, and superpixels.

The figure shows one face. Numbers are means over `queries` of them; the drawing has explanations only, no face.
"""

from __future__ import annotations

import numpy as np

import dpexplain as dpx
from dpexplain import evaluation, plots
from dpexplain.noise import SeededNoise
from experiments.faces import theorem_steps
from experiments.paper._streams import judge, with_error
from experiments.paper._study import FACE_FILE, SEED, Study, digits, figure

DELTA, STEPS, GRIDS = 1e-5, 200, (48, 12, 6)
PRINTED, EXACT = (0.07, 0.1, 1.0), (0.1, 1.0, 4.0)


def mechanisms():
    papers = {f"paper, ε = {e:g}": dpx.Basic(e, DELTA, STEPS, calibration="paper") for e in PRINTED}
    return papers | {f"ours, ε = {e:g}": dpx.Basic(e, DELTA, plane="paper") for e in EXACT}


def run(inputs, queries):
    images, labels = inputs.faces, evaluation.labelled_rows(inputs.private_faces)[:, -1]
    chosen = images.test[np.random.default_rng(SEED).permutation(len(images.test))[:queries]]
    rows, maps = [], {}
    for grid in GRIDS:
        domain = dpx.ImageDomain(shape=images.training.shape[1:], grid=(grid, grid))
        data = dpx.PrivateData(images.training, domain, labels=labels)
        scores, maps[str(grid)] = explain_faces(data, list(chosen))
        rows += [line(grid, data, name, each) for name, each in scores.items()]
    return {"rows": rows, "maps": maps}


def explain_faces(data, faces):
    """({mechanism: scores}, {mechanism: the first face's values})."""
    evaluation.remember(data, most=1)
    budget = dpx.Budget(1e7, DELTA)
    explainers = {
        name: dpx.Explainer(data, budget, one, noise=SeededNoise(SEED + k)) for k, (name, one) in enumerate(mechanisms().items())
    }
    scores = {name: [] for name in explainers}
    maps = {"exact, not private": evaluation.optimum(data, faces[0], plane="paper")}
    for face, score in judge(data, faces):
        for name, explainer in explainers.items():
            values = explainer.explain(face).values
            maps.setdefault(name, values)
            scores[name].append(score(values))
    return scores, {name: [digits(value, 3) for value in values] for name, values in maps.items()}


def line(grid, data, name, scores):
    printed = name.startswith("paper")
    steps = theorem_steps(data.size, data.domain.width, float(name.split("= ")[1])) if printed else ""
    return {
        "superpixels": f"{grid}×{grid}",
        "explanation": name,
        **with_error("cosine", [one["cosine"] for one in scores], 3),
        **with_error("relative excess", [one["relative_excess"] for one in scores], 3),
        "T that Theorem 3.2 allows": digits(steps, 2) if printed else "",
        "faces": len(scores),
        "seeds": 1,
    }


def draw(found):
    names = list(found["maps"][str(GRIDS[0])])
    drawn, axes = figure(len(names), len(GRIDS), width=2.3, height=1.85)
    for row, grid in zip(axes, GRIDS, strict=True):
        for ax, name in zip(row, names, strict=True):
            plane = np.array(found["maps"][str(grid)][name]).reshape(grid, grid)
            plots.overlay(plane, title=name if grid == GRIDS[0] else "", ax=ax)
            ax.title.set_fontsize(8)
        row[0].set_ylabel(f"{grid}×{grid}")
    return drawn


STUDY = Study(
    name="figure-1",
    title="faces: heat maps for several ε, pixels and superpixels",
    shows="maps of single pixels look meaningful from ε = 0.07",
    files=(FACE_FILE,),
    full=12,
    quick=1,
    run=run,
    draw=draw,
    minutes=2,
)
