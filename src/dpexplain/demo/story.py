"""What the demo does, step by step. Each step returns what the report shows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from dpexplain.answers.explanation import Explanation
from dpexplain.core.arrays import Vector
from dpexplain.data import PrivateData
from dpexplain.demo.people import DOMAIN, people
from dpexplain.demo.report import write_report
from dpexplain.errors import BudgetExhausted
from dpexplain.evaluation import Score, optimum, score
from dpexplain.explainer import Explainer
from dpexplain.mechanisms.basic import Basic
from dpexplain.privacy.budget import Budget
from dpexplain.release.release import Release
from dpexplain.release.release import release as pay_once

ASKED: dict[str, dict[str, Any]] = {
    "a young shop assistant": dict(age=22, hours=24, education="school", work="private", trade="sales", region="south", married=False, city=True),
    "a carpenter on overtime": dict(age=46, hours=52, education="school", work="self-employed", trade="craft", region="north", married=True, city=False),
    "a scientist in the city": dict(age=38, hours=44, education="doctorate", work="public", trade="science", region="east", married=False, city=True),
    "an office worker": dict(age=51, hours=38, education="college", work="private", trade="office", region="west", married=True, city=True),
    "a retired teacher": dict(age=72, hours=0, education="degree", work="none", trade="care", region="islands", married=True, city=False),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asked:
    """One person's answer, beside the non-private truth that only a demo may show."""

    who: str
    probability: float
    explanation: Explanation
    truth: Vector
    score: Score


def tell(console: Console, output: Path, count: int) -> None:
    """The whole story; `output` receives explanation.png, report.html, explain.html and income.dpx."""
    with console.status(f"Making up {count:,} people and training a forest on half of them"):
        model, rows = _train(count)
    with console.status("Asking the black box about every private row, once"):
        data = PrivateData(rows, DOMAIN, model=_predictor(model), name="demo")
    console.print(f"[bold]Private data[/bold]  {data!r}")
    budget = Budget(epsilon=0.26, delta=1e-6)
    explainer = Explainer(data, budget, mechanism=Basic(epsilon=0.1, delta=1e-6))
    answers, refusal = _ask(explainer, data, model)
    console.print(_table(answers, budget))
    console.print(f"\n[bold red]Refused[/bold red]  {refusal}\n")
    with console.status("Paying once for a release that answers everybody, for ever"):
        release = pay_once(data, Budget(epsilon=0.1, delta=1e-6))
    console.print(_free_table(release, data))
    console.print(release.explain(ASKED["a carpenter on overtime"]))
    console.print(f"\n[bold]In total[/bold]  {data.spent}")
    png, html = write_report(output, answers, budget, str(refusal), str(data.spent))
    release.save(output / "income.dpx")
    page = release.publish(output / "explain.html")
    console.print(f"\nLook at [bold]{png}[/bold], [bold]{html}[/bold] and [bold]{page}[/bold] (move its sliders).")


def _train(count: int) -> tuple[Any, dict[str, list[Any]]]:
    """A random forest on other people than those who are explained from."""
    from sklearn.ensemble import RandomForestClassifier

    training, rich = people(min(count // 2, 20_000), seed=1)
    model = RandomForestClassifier(60, max_depth=10, min_samples_leaf=5, n_jobs=2, random_state=0)
    model.fit(DOMAIN.encode(training), rich)
    return model, people(count, seed=2)[0]


def _predictor(model: Any) -> Any:
    """The forest was trained on encoded columns; the rows as given are raw."""
    return lambda rows: model.predict_proba(DOMAIN.encode(rows))


def _ask(explainer: Explainer, data: PrivateData, model: Any) -> tuple[list[Asked], BudgetExhausted]:
    answers: list[Asked] = []
    for who, record in ASKED.items():
        explanation = explainer.explain(record)
        probability = float(model.predict_proba(explanation.point[None])[0, 1])
        answers.append(
            Asked(
                who,
                probability,
                explanation,
                optimum(data, record, radius=explanation.details["radius"]),
                score(explanation.values, data, record, radius=explanation.details["radius"]),
            )
        )
    try:
        while True:
            explainer.explain(next(iter(ASKED.values())))
    except BudgetExhausted as refusal:
        return answers, refusal


def _free_table(release: Release, data: PrivateData) -> Table:
    """The same people, from one file, with error bars and at no further cost."""
    table = Table(title="Pay once, explain forever: the same questions from one release", title_justify="left")
    for column in ("who", "strongest effects ± error", "cosine", "this answer cost"):
        table.add_column(column)
    for who, record in ASKED.items():
        answer = release.explain(record)
        effects = "\n".join(f"{name} {value:+.2f} ± {error:.2f}" for name, value, error in answer.top(3))
        table.add_row(
            who, effects, f"{score(answer.values, data, record, plane='paper').cosine:.3f}", f"ε = {answer.cost.epsilon:g}"
        )
    table.caption = str(release.guarantee)
    return table


def _table(answers: list[Asked], budget: Budget) -> Table:
    table = Table(title="Why does the model say so? Private answers beside the non-private truth", title_justify="left")
    for column in ("who", "model says", "strongest private effects", "non-private", "cosine", "spent so far"):
        table.add_column(column)
    for asked in answers:
        private = "\n".join(f"{name} {value:+.2f}" for name, value, _ in asked.explanation.top(3))
        truth = "\n".join(f"{asked.explanation.names[i]} {asked.truth[i]:+.2f}" for i in np.argsort(-np.abs(asked.truth))[:3])
        spent = f"ε = {asked.explanation.guarantee.epsilon:.3f} of {budget.epsilon:g}"
        table.add_row(asked.who, f"{asked.probability:.0%} rich", private, truth, f"{asked.score.cosine:.3f}", spent)
    return table
