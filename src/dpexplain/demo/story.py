"""The steps of the demo. Each returns what the report shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from dpexplain.answers.contributions import Contributions
from dpexplain.answers.explanation import Explanation
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.data import PrivateData
from dpexplain.demo.demo_report import write_report
from dpexplain.demo.people import DOMAIN, people
from dpexplain.errors import BudgetExhausted
from dpexplain.evaluation import Score, row_shapley, score
from dpexplain.evaluation.metrics.agreement import strongest
from dpexplain.explainer import Explainer
from dpexplain.mechanisms.basic import Basic
from dpexplain.privacy.budget import Budget, round_up
from dpexplain.release.making import release as pay_once
from dpexplain.release.release import Release

REFERENCE = 1 << 15  # records
TRUE_ROWS = 10_000  # that SHAP is compared with: their own sampling error is small beside the bars
STRONGEST = 3  # lines for each person
NUMBERS = ("model", "here", "points", "± error", "true rows", "cosine")
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
    columns = ("who", "what would change it most", "points", "cosine", "spent")
    table = _new_table("Why does the model say so? Each answer is paid from the budget", columns)
    for asked in answers:
        answer, scale = asked.explanation, asked.explanation.scale
        lines = [(change.text, scale.number(change.value, signed=True)) for change in answer.changes(STRONGEST)]
        after = (f"{asked.score.cosine:.3f}", f"ε = {round_up(answer.guarantee.epsilon)}")
        _add_person(table, (asked.who,), lines, after)
    table.caption = f"The cosine is to the exact answer, which only a demo may show. {answers[-1].explanation.guarantee}"
    return table


def _free_table(answers: list[PersonAnswer], release: Release) -> Table:
    """The same people, from one file, with error bars and at no further cost."""
    columns = ("who", "model", "here", "largest contributions", "points", "± error")
    table = _new_table("Pay once, explain forever: the same questions from one release", columns)
    for asked in answers:
        if asked.free is not None:
            added = asked.free.contributions()
            before = (asked.who, asked.answer_text, added.scale.format(added.answer))
            _add_person(table, before, [_line(added, i) for i in strongest(added.values, STRONGEST)])
    table.caption = str(release.guarantee)
    return table


def _shap_table(release: Release, model: Any, rows: dict[str, list[Any]]) -> Table:
    """SHAP values from the release beside SHAP over true rows, which only a demo may show."""
    columns = ("who", "largest SHAP values", "points", "± error", "true rows")
    table = _new_table("SHAP values that add up, from the same payment, beside SHAP over true rows", columns)
    true = DOMAIN.encode({name: column[:TRUE_ROWS] for name, column in rows.items()})
    for who, record in ASKED.items():
        added = release.shapley(record)
        exact = row_shapley(model, DOMAIN, record, true).mean(axis=0) / 2  # labels 2p - 1 as probabilities
        lines = [(*_line(added, i), added.scale.number(float(exact[i]), signed=True)) for i in strongest(added.values, STRONGEST)]
        _add_person(table, (who,), lines)
    table.caption = (
        f"Free, for any record and any number of times. The average and all values together are the model's answer. "
        f"The last column is SHAP over {TRUE_ROWS:,} private rows, which only a demo may show."
    )
    return table


def _line(added: Contributions, i: int) -> tuple[str, str, str]:
    """One contribution: what it is of, its value and its error."""
    spread = "unknown" if added.error is None else added.scale.spread(float(added.error[i]))
    return added.labels[i], added.scale.number(float(added.values[i]), signed=True), spread


def _new_table(title: str, columns: Sequence[str]) -> Table:
    """A table whose columns of numbers are aligned at their right."""
    table = Table(
        title=title, title_justify="left", caption_justify="left", box=box.SIMPLE, show_edge=False, padding=(0, 1, 0, 0)
    )
    for column in columns:
        table.add_column(column, justify="right" if column in NUMBERS else "left", no_wrap=True)
    return table


def _add_person(table: Table, before: Sequence[str], lines: Sequence[Sequence[str]], after: Sequence[str] = ()) -> None:
    """Several lines about one person; what is said once stands in the first of them."""
    for i, line in enumerate(lines):
        once = [list(cells) if i == 0 else [""] * len(cells) for cells in (before, after)]
        table.add_row(*once[0], *line, *once[1], end_section=i == len(lines) - 1)
