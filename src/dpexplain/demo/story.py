"""The steps of the demo. Each returns what the report shows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from dpexplain.answers.explanation import Explanation
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.data import PrivateData
from dpexplain.demo.demo_report import strongest_changes, write_report
from dpexplain.demo.people import DOMAIN, people
from dpexplain.errors import BudgetExhausted
from dpexplain.evaluation import Score, row_shapley, score
from dpexplain.explainer import Explainer
from dpexplain.mechanisms.basic import Basic
from dpexplain.privacy.budget import Budget, round_up
from dpexplain.release.making import release as pay_once
from dpexplain.release.release import Release

REFERENCE = 1 << 15  # records
TRUE_ROWS = 10_000  # that SHAP is compared with: their own sampling error is small beside the bars
ASKED: dict[str, dict[str, Any]] = {
    "a young shop assistant": dict(age=22, hours=24, education="school", work="private", trade="sales", region="south", married=False, city=True),
    "a carpenter on overtime": dict(age=46, hours=52, education="school", work="self-employed", trade="craft", region="north", married=True, city=False),
    "a scientist in the city": dict(age=38, hours=44, education="doctorate", work="public", trade="science", region="east", married=False, city=True),
    "an office worker": dict(age=51, hours=38, education="college", work="private", trade="office", region="west", married=True, city=True),
    "a retired teacher": dict(age=72, hours=0, education="degree", work="none", trade="care", region="islands", married=True, city=False),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PersonAnswer:
    """One person's answer, how it compares with the exact one (which only a demo may show), and the free answer from the release."""

    who: str
    probability: float
    explanation: Explanation
    score: Score
    free: Explanation | None = None

    @property
    def answer_text(self) -> str:
        """The model's own answer as text."""
        return AnswerScale.of("probability").format(self.probability)


def tell_story(console: Console, output: Path, count: int) -> None:
    """Run all steps; `output` receives explanation.png, report.html, explain.html and income.dpx."""
    with console.status(f"Making up {count:,} people and training a forest on half of them"):
        model, rows = _train(count)
    with console.status("Asking the black box about every private row, once"):
        data = PrivateData(rows, DOMAIN, model=_predictor(model), name="demo")
    console.print(f"[bold]Private data[/bold]  {data!r}")
    budget = Budget(epsilon=0.26, delta=1e-6)
    explainer = Explainer(data, budget, mechanism=Basic(epsilon=0.1, delta=1e-6))
    answers, refusal = _ask(explainer, data, model)
    console.print(_table(answers))
    console.print(f"\n[bold red]Refused[/bold red]  {refusal}\n")
    with console.status("Paying once for a release that answers everybody, for ever"):
        release = pay_once(data, Budget(epsilon=0.1, delta=1e-6), reference=REFERENCE)
    answers = [replace(asked, free=release.explain(ASKED[asked.who])) for asked in answers]
    console.print(_free_table(answers, release))
    console.print(answers[1].free)
    console.print(_shap_table(release, model, rows))
    console.print(f"\n[bold]In total[/bold]  {data.spent}")
    png, html = write_report(output, answers, budget, str(refusal), str(data.spent))
    release.save(output / "income.dpx")
    page = release.publish(output / "explain.html", outcome="an income above the threshold")
    console.print(f"\nLook at [bold]{png}[/bold], [bold]{html}[/bold] and [bold]{page}[/bold] (move its sliders).")


def _train(count: int) -> tuple[Any, dict[str, list[Any]]]:
    """A random forest trained on people who are not in the explanation data."""
    from sklearn.ensemble import RandomForestClassifier

    training, rich = people(min(count // 2, 20_000), seed=1)
    model = RandomForestClassifier(60, max_depth=10, min_samples_leaf=5, n_jobs=2, random_state=0)
    model.fit(DOMAIN.encode(training), rich)
    return model, people(count, seed=2)[0]


def _predictor(model: Any) -> Any:
    """The forest was trained on encoded columns; the rows as given are raw."""
    return lambda rows: model.predict_proba(DOMAIN.encode(rows))


def _ask(explainer: Explainer, data: PrivateData, model: Any) -> tuple[list[PersonAnswer], BudgetExhausted]:
    answers: list[PersonAnswer] = []
    for who, record in ASKED.items():
        answer = explainer.explain(record)
        probability = float(model.predict_proba(answer.point[None])[0, 1])
        answers.append(
            PersonAnswer(who, probability, answer, score(answer.values, data, record, radius=answer.details.get("radius")))
        )
    try:
        while True:
            explainer.explain(next(iter(ASKED.values())))
    except BudgetExhausted as refusal:
        return answers, refusal


def _table(answers: list[PersonAnswer]) -> Table:
    """Interactive answers: each was paid for."""
    table = Table(title="Why does the model say so? Private answers, each paid from the budget", title_justify="left")
    for column in ("who", "model says", "what would change it most", "cosine to the exact answer", "spent so far"):
        table.add_column(column)
    for asked in answers:
        spent = f"ε = {round_up(asked.explanation.guarantee.epsilon)}"
        changes = "\n".join(strongest_changes(asked.explanation))
        table.add_row(asked.who, asked.answer_text, changes, f"{asked.score.cosine:.3f}", spent)
    table.caption = str(answers[-1].explanation.guarantee)
    return table


def _free_table(answers: list[PersonAnswer], release: Release) -> Table:
    """The same people, from one file, with error bars and at no further cost."""
    table = Table(title="Pay once, explain forever: the same questions from one release", title_justify="left")
    for column in ("who", "model says", "answer here", "average", "these values make the difference (± error)", "cost"):
        table.add_column(column)
    for asked in answers:
        if asked.free is not None:
            added = asked.free.contributions()
            rows = zip(added.labels, added.values, added.error if added.error is not None else added.values * 0, strict=True)
            largest = sorted(rows, key=lambda row: -abs(row[1]))[:3]
            shown = "\n".join(
                f"{label}: {added.scale.format(v, signed=True)} ± {added.scale.spread(e)}" for label, v, e in largest
            )
            numbers = (added.scale.format(added.answer), added.scale.format(added.base))
            table.add_row(asked.who, asked.answer_text, *numbers, shown, f"ε = {asked.free.cost.epsilon:g}")
    table.caption = str(release.guarantee)
    return table


def _shap_table(release: Release, model: Any, rows: dict[str, list[Any]]) -> Table:
    """SHAP values from the release beside SHAP over true rows, which only a demo may show."""
    table = Table(title="SHAP values that add up, from the same payment, beside SHAP over true rows", title_justify="left")
    for column in ("who", "average", "model says", "from the release (± error)", f"over {TRUE_ROWS:,} true rows"):
        table.add_column(column)
    true = DOMAIN.encode({name: column[:TRUE_ROWS] for name, column in rows.items()})
    for who, record in ASKED.items():
        added = release.shapley(record)
        exact = row_shapley(model, DOMAIN, record, true).mean(axis=0) / 2  # labels 2p - 1 as probabilities
        order = np.argsort(-np.abs(added.values))[:3]
        error = np.zeros(len(added.values)) if added.error is None else added.error
        ours = [
            f"{added.labels[i]}: {added.scale.format(added.values[i], signed=True)} ± {added.scale.spread(error[i])}"
            for i in order
        ]
        theirs = [added.scale.format(float(exact[i]), signed=True) for i in order]
        table.add_row(who, added.scale.format(added.base), added.scale.format(added.answer), "\n".join(ours), "\n".join(theirs))
    table.caption = "Free, for any record and any number of times; base and all contributions give the model's answer"
    return table
