"""The conclusion's claim, without a figure in the paper: private explanations are worse for minorities. ACS, by race (RAC1P)."""

from __future__ import annotations

import numpy as np

import dpexplain as dpx
from dpexplain.noise import SeededNoise
from dpexplain.plots.style import SERIES, tidy
from experiments.paper import _lanes
from experiments.paper._exact import problems
from experiments.paper._streams import KnownRows, OnPapersPlane, stack, with_both_errors, with_error
from experiments.paper._study import ACS_FILE, SEED, Study, figure, legend_above, mean

EPSILON, DELTA, STEPS = 0.1, 1e-6, 300
GROUPS = {1: "White", 2: "Black", 3: "Asian", 4: "American Indian\nor Alaska Native", 5: "other,\nor several"}
OURS = {"ours, ε = 0.1": dpx.Basic(EPSILON, DELTA, plane="paper"), "ours, ε = 0.01": dpx.Basic(0.01, DELTA, plane="paper")}
PRINTED, RELEASE = "paper, ε = 0.1", "release, ε = 0.1 once"
BUDGET = dpx.Budget(1e5, DELTA)


def run(inputs, queries):
    data, rng = inputs.acs, np.random.default_rng(SEED)
    race, parts = data.frame.RAC1P.to_numpy(), inputs.parts("minorities", queries)
    chosen = {code: rng.choice(np.flatnonzero(race == code), queries) for code in GROUPS}
    paid = parts.get("groups", lambda: explain_groups(data, chosen, inputs), STUDY.minutes * 3 / 4)
    free = parts.get("releases", lambda: explain_by_releases(data, chosen, inputs.seeds), STUDY.minutes / 4)
    told = {str(code): paid[str(code)] | free[str(code)] for code in GROUPS}
    rows, spread, names = [], {}, (PRINTED, *OURS, RELEASE)
    for code, title in GROUPS.items():
        each = told[str(code)]
        row = {"group": one_line(title), "of all": f"{(race == code).mean():.1%}"}
        row["excess loss of no explanation"] = mean(each["gain"])
        for name in names:
            row |= with_both_errors(name, each[name], 3) if name == RELEASE else with_error(name, each[name].mean(axis=0), 3)
            spread.setdefault(name, []).append([row[name], row[f"± {name}"]])
        rows.append(row | {"people": queries})
    notes = [ratio(name, [told[str(code)][name] for code in GROUPS]) for name in names]
    draws = [{"explanation": name, "seeds": len(told["1"][name])} for name in names]
    return {"rows": rows, "notes": notes, "spread": spread, "draws": draws}


def explain_groups(data, chosen, inputs):
    """{group: {mechanism: relative excess (seeds, people)}}."""
    private = data.private()
    rows, width = KnownRows(private.size), data.encoded.shape[1]
    private.wrap_rows(rows.wrap)
    explainers = {
        name: [dpx.Explainer(private, BUDGET, one, noise=SeededNoise(k)) for k in range(inputs.own_seeds)]
        for name, one in OURS.items()
    }
    found = {}
    for code, positions in chosen.items():
        lanes, told = _lanes.Basic(private.size, width, EPSILON, DELTA, STEPS, inputs.seeds), []
        normal = _lanes.Normal(inputs.seeds, STEPS, width, [SEED, code])
        for record, problem in ask(data, private, positions):
            rows.problem = problem
            printed, _ = lanes.answer(problem.point, problem.A, problem.b, normal.draw())
            answers = {name: [one.explain(record).values for one in each] for name, each in explainers.items()} | {
                PRINTED: printed
            }
            scored = {name: problem.scores(np.asarray(values))["relative_excess"] for name, values in answers.items()}
            told.append(scored | {"gain": np.array([problem.gain])})
        found[str(code)] = stack(told)
    return found


def explain_by_releases(data, chosen, seeds):
    """The same by releases, which share a draw of noise among all people."""
    private, once = data.private(), dpx.Budget(0.1, DELTA)
    releases = [OnPapersPlane(dpx.release(private, once, noise=SeededNoise(SEED + k))) for k in range(seeds)]
    found = {}
    for code, positions in chosen.items():
        told = []
        for record, problem in ask(data, private, positions):
            values = np.array([one.explain(record).values for one in releases])
            told.append({RELEASE: problem.scores(values)["relative_excess"]})
        found[str(code)] = stack(told)
    return found


def ask(data, private, positions):
    """(record, its problem) of each of these people."""
    return zip(records_of(data, positions), problems(private, data.encoded[positions]), strict=True)


def records_of(data, positions):
    names = [feature.name for feature in data.domain.features]
    return data.frame[names].iloc[positions].to_dict("records")


def one_line(group):
    return group.replace("\n", " ")


def ratio(name, groups):
    """The worst group against the majority, with the error of the ratio over people and over seeds; `groups` are (seeds, people) each.

    A release has the same draw of noise for both groups.
    """
    first, worst = groups[0], max(groups[1:], key=np.mean)
    size = worst.mean() / first.mean()
    people = np.hypot(*(one.mean(axis=0).std(ddof=1) / np.sqrt(one.shape[1]) / one.mean() for one in (first, worst)))
    seeds = with_error("", worst.mean(axis=1) / first.mean(axis=1))["± "] if name == RELEASE else 0.0
    return f"{name}: worst group {size:.2f} ± {np.hypot(size * people, seeds):.2f} times the majority's relative excess"


def draw(found):
    drawn, axes = figure(1, width=7.5, height=3.6)
    ax, groups = axes[0, 0], list(GROUPS.values())
    for k, (name, values) in enumerate(found["spread"].items()):
        means, errors = np.array(values).T
        ax.bar(np.arange(len(groups)) + (k - 1.5) * 0.2, means, 0.18, yerr=errors, capsize=2, color=SERIES[k], label=name)
    ax.set_xticks(np.arange(len(groups)), groups)
    ax.set_yscale("log")
    ax.set_ylabel("relative excess loss")
    legend_above(ax, 4)
    tidy(ax)
    return drawn


STUDY = Study(
    name="minorities",
    title="ACS: are explanations worse for minorities?",
    shows="said in the conclusion, not measured: differential privacy injects more noise into explanations of minorities",
    files=(ACS_FILE,),
    full=300,
    quick=10,
    run=run,
    draw=draw,
    minutes=5,
)
