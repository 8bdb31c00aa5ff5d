"""Figure 6: faces, heat maps of models trained with differential privacy (ε̂ = 0.5, 2, 10 and none; δ̂ = 1e-5) about one sad face that they call happy.

Algorithm 1 with ε = 0.1, δ = 1e-5, T = 200 on pixels as in the paper, and ours at ε = 1 on 12×12 superpixels. With Opacus the models are networks of
two convolutions, as in the paper, else the small networks of _training.py on 24×24 means. A badly trained f_0.5 is added, because the paper's is
right for 51 % only.
"""

from __future__ import annotations

import numpy as np

import dpexplain as dpx
from dpexplain import evaluation, plots
from dpexplain.noise import SeededNoise
from dpexplain.progress import with_bar
from experiments.paper import _private_models
from experiments.paper._exact import Problem, optima
from experiments.paper._streams import KnownRows, with_error
from experiments.paper._study import FACE_FILE, SEED, Study, digits, figure

DELTA, SEEN = 1e-5, (24, 24)
BUDGET = dpx.Budget(1e7, DELTA)
KINDS = {
    "paper, pixels, ε = 0.1": (48, dpx.Basic(0.1, DELTA, 200, calibration="paper")),
    "ours, 12×12, ε = 1": (12, dpx.Basic(1.0, DELTA, plane="paper")),
}
EXACT = "exact, 12×12, not private"


def run(inputs, queries):
    faces = inputs.faces
    test_truth = np.where(faces.test_happy, 1.0, -1.0)
    models = _private_models.models_of_faces(faces, inputs, SEEN)
    answers = {name: model(faces.test) for name, model in models.items()}
    fooled = np.flatnonzero((test_truth < 0) & np.all([each > 0 for each in answers.values()], axis=0))
    asked = list(faces.test[fooled[:queries] if len(fooled) >= queries else np.arange(queries)])
    reported = _private_models.FACES_REPORTED
    described = [_private_models.describe(name, model, faces.test, test_truth, reported) for name, model in models.items()]
    labels = np.array([model(faces.training) for model in models.values()])
    told, maps = explain_faces(faces.training, labels, asked)
    rows = []
    for k, name in enumerate(models):
        accuracy = digits(float(np.mean(answers[name] == test_truth)), 3)
        rows += [{"model": name, "test accuracy": accuracy, "explanation": kind} | each[k] for kind, each in told.items()]
    maps = dict(zip(models, maps, strict=True))
    plain = np.array(maps["f"][EXACT])
    likeness = {name: digits(float(np.corrcoef(plain, each[EXACT])[0, 1]), 3) for name, each in maps.items()}
    for row in rows:
        row["optimum like f's"] = likeness[row["model"]]
    return {"rows": rows, "models": described, "maps": maps}


def explain_faces(images, labels, faces):
    """({explanation: a row for each model}, [{explanation: map of the first face} for each model]); `labels` are (models, images).

    Curvature does not depend on a model's answers, so that each face's is computed once for all of them.
    """
    told, maps = {}, [{} for _ in labels]
    for kind, (grid, mechanism) in KINDS.items():
        grid = min(grid, images.shape[1])
        data = dpx.PrivateData(images, dpx.ImageDomain(shape=images.shape[1:], grid=(grid, grid)), labels=labels[0])
        rows, encoded = KnownRows(data.size), data.domain.encode(images)
        data.wrap_rows(rows.wrap)
        explainers = [dpx.Explainer(data, BUDGET, mechanism, noise=SeededNoise(SEED + k)) for k in range(len(labels))]
        scores = [[] for _ in labels]
        for face in with_bar(faces, "queries"):
            for k, problem in enumerate(problems_of_models(data, encoded, labels, face)):
                rows.problem = problem
                values = explainers[k].explain(face).values
                maps[k].setdefault(kind, [digits(value, 3) for value in values])
                maps[k].setdefault(f"exact, {grid}", [digits(value, 3) for value in problem.best])
                scores[k].append(problem.scores(values[None]))
            rows.problem = None
        told[kind] = [row_of(each) for each in scores]
    return told, [{kind: each[kind] for kind in KINDS} | {EXACT: each[f"exact, {grid}"]} for each in maps]


def problems_of_models(data, encoded, labels, face):
    """A face's problem for each model."""
    point = data.domain.encode_query(face)
    A = evaluation.local_moments_of(data, [point])[0].A / data.size
    alpha = dpx.weights.Stable()(np.linalg.norm(encoded - point, axis=1))
    pulled = labels * alpha
    targets = (pulled @ encoded - np.outer(pulled.sum(axis=1), point)) / data.size
    for target, best in zip(targets, optima(A, targets), strict=True):
        yield Problem(point, A, target, best, float(2 * target @ best - best @ A @ best))


def row_of(scores):
    cosines, lost = ([float(one[key][0]) for one in scores] for key in ("cosine", "relative_excess"))
    sizes = {"faces": len(scores), "seeds": 1}
    return with_error("cosine to its own optimum", cosines, 3) | with_error("relative excess", lost, 3) | sizes


def draw(found):
    kinds = (*KINDS, EXACT)
    models = list(found["maps"])
    drawn, axes = figure(len(models), len(kinds), width=2.4, height=2.0)
    for row, kind in zip(axes, kinds, strict=True):
        for ax, name in zip(row, models, strict=True):
            values = np.array(found["maps"][name][kind])
            side = round(np.sqrt(len(values)))
            plots.overlay(values.reshape(side, side), title=name if kind == kinds[0] else "", ax=ax)
        row[0].set_ylabel(kind, fontsize=9)
    return drawn


STUDY = Study(
    name="figure-6",
    title="faces: explanations of models trained with differential privacy",
    shows="f_0.5's map is random; with more ε̂ the mouth gains influence",
    files=(FACE_FILE,),
    full=4,
    quick=1,
    run=run,
    draw=draw,
    minutes=5,
)
