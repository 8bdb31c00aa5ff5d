"""`dpexplain explain --method shapley | surrogate`: SHAP values of a model over a release's reference records, or of a surrogate of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from dpexplain.cli.shared_options import describe_count, parse_record

if TYPE_CHECKING:
    from dpexplain.answers.contributions import Contributions
    from dpexplain.answers.contributions_batch import ContributionsBatch
    from dpexplain.registration.labels import Labeller
    from dpexplain.release.release import Release


@dataclass(frozen=True, slots=True)
class ShapleyRequest:
    """The method, "shapley" or "surrogate", and the model as they were named on the command line; a surrogate needs no model."""

    method: str
    model: str | None
    target: str | None
    trusted: bool

    def explainer(self, made: Release) -> tuple[Callable[..., Contributions], Callable[..., ContributionsBatch]]:
        """The object that answers about one record, and about many."""
        asked, named = self.labeller(made), self.target if self.target in made.targets else None
        if self.method == "surrogate":
            stand_in = made.surrogate(asked, target=named)
            return stand_in.shapley, stand_in.shapley_many
        return partial(made.shapley, model=asked, target=named), partial(made.shapley_many, model=asked, target=named)

    def labeller(self, made: Release) -> Labeller | None:
        """The labeller that asks the model; None where no model was named."""
        if self.model is None:
            return None
        from dpexplain.cli.data_options import target_of
        from dpexplain.registration.model_sources import ModelSource
        from dpexplain.registration.options import RegistrationOptions
        from dpexplain.registration.sources import labeller_of_model
        from dpexplain.release.model_questions import answer_options, scale_of
        from dpexplain.release.named import find_class

        source = ModelSource(self.model, self.trusted)
        declared = answer_options(scale_of(made))
        opened, target = source.open(made.domain), target_of(self.target, source)
        if self.target is None and made.targets:
            target = find_class(opened, made.targets[0])
        return labeller_of_model(opened, made.domain, RegistrationOptions(target=target, **declared))


def explain_by_shapley(
    made: Release,
    asked: ShapleyRequest,
    record: str | None,
    rows: Path | None,
    output: Path | None,
    rules: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    """Print contributions of one record, or write those of many."""
    one, many = asked.explainer(made)
    if record is not None:
        answer = one(parse_record(record), **rules)
        print(answer.to_json(indent=2)) if as_json else Console().print(answer)
        return
    from dpexplain.cli.explanation_files import require_output
    from dpexplain.registration.tables import read_query_file

    require_output(output, as_json)
    answers = many(read_query_file(Path(str(rows)), made.domain), **rules)
    if output is None:
        print(json.dumps([one.to_dict() for one in answers], ensure_ascii=False))
        return
    _write(output, answers)
    done = {"file": str(output), "explanations": len(answers)}
    print(json.dumps(done) if as_json else f"Wrote {output}: {describe_count(len(answers), 'explanation')}.")


def _write(path: Path, answers: ContributionsBatch) -> None:
    """One row for each record: answer, base, and the contribution of each feature; .json has whole contributions with their errors."""
    if path.suffix.lower() == ".json":
        path.write_text(json.dumps([one.to_dict() for one in answers], ensure_ascii=False), encoding="utf-8")
        return
    import pyarrow.csv
    import pyarrow.parquet

    table = answers.to_frame("pyarrow").replace_schema_metadata({"dpexplain.guarantee": str(answers.guarantee)})
    if path.suffix.lower() == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.parquet.write_table(table, path)
