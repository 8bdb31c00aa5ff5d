"""What a release with reference records answers about a model that can be asked: SHAP values, summaries, other models. All free."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dpexplain.answers.contributions import Contributions
from dpexplain.answers.contributions_batch import ContributionsBatch
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Matrix
from dpexplain.domain import DomainLike, QueryRules, read_queries, read_query
from dpexplain.domain.columns import plain_columns
from dpexplain.domain.queries import Extra
from dpexplain.errors import ParameterError
from dpexplain.privacy.budget import Guarantee
from dpexplain.registration.labels import Labeller
from dpexplain.release.reference_data import ReferenceData

if TYPE_CHECKING:
    from dpexplain.release.shapley import ShapleyReference
    from dpexplain.release.summary import Summary


class ModelQuestions:
    """Methods of `Release` that need a model beside the reference records; the fields are the release's."""

    domain: DomainLike
    guarantee: Guarantee
    fingerprint: str | None
    reference: ReferenceData | None
    other_columns: tuple[str, ...]
    labeller: Labeller | None

    def shapley(
        self, record: Any, model: Any = None, *, background: int | None = None, extra: Extra = "refuse", clip: bool = False
    ) -> Contributions:
        """SHAP values of `record`: what each feature adds to the model's answer, compared with the reference records. Free, any number of times.

        They add up to the answer minus the average answer over the reference. `model` is anything `PrivateData` takes, shown records in the
        domain's own terms; None is the model that labelled this release, in the process that made it. `background` is how many reference
        records to compare with: more take longer and err less. Error bars hold the choice of records and orders, the privacy noise and
        the reference's estimated bias. Private for the explanation data by post-processing; what the model's answers say about its
        training data is another matter (docs/shap.md).
        """
        point, notes = read_query(self.domain, record, QueryRules(extra, clip, known_extra=self.other_columns))
        found = self._shapley(point[None], model, background)[0]
        return replace(found, details={**found.details, "read_as": notes}) if notes else found

    def shapley_many(
        self, records: Any, model: Any = None, *, background: int | None = None, extra: Extra = "refuse", clip: bool = False
    ) -> ContributionsBatch:
        """The same for many records: a data frame, a list of dicts, a dict of columns, or an array where all is numeric. `.plot()` is a beeswarm."""
        read = read_queries(self.domain, records, QueryRules(extra, clip, "raise", self.other_columns))
        found, notes = self._shapley(read.points, model, background), {row: said for row, said in enumerate(read.notes) if said}
        return replace(found, details={**found.details, "read_as": notes}) if notes else found

    def summary(self, model: Any = None, *, records: int = 100, background: int | None = None) -> Summary:
        """The model as a whole: mean absolute contribution of each feature, a beeswarm, partial dependence; over the reference, free.

        `records` is how many reference records contributions are computed for; `model` and `background` are as for `shapley`.
        """
        from dpexplain.release.summary import summarise

        if isinstance(records, bool) or not isinstance(records, int) or records < 2:
            raise ParameterError(f"records must be a whole number of at least 2, got {records!r}")
        return summarise(
            self._with_reference,
            labeller_of(model, self.labeller, scale_of(self)),
            records,
            background,
            scale_of(self),
            self.guarantee,
        )

    def _shapley(self, points: Matrix, model: Any, background: int | None) -> ContributionsBatch:
        from dpexplain.release.shapley import shapley_batch

        return shapley_batch(self._compared(model, background), points, scale_of(self), self.guarantee, self.fingerprint)

    def _compared(self, model: Any, background: int | None) -> ShapleyReference:
        """The model beside the reference records that it is compared on."""
        from dpexplain.release.shapley import prepare

        return prepare(self._with_reference, labeller_of(model, self.labeller, scale_of(self)), background)

    @property
    def _with_reference(self) -> ReferenceData:
        if self.reference is None:
            raise ParameterError(
                "this release has no reference records to compare with: make it with dpx.release(…, reference=True)"
            )
        return self.reference


def scale_of(release: Any) -> AnswerScale:
    """The units of a release's answers."""
    return getattr(release, "scale", AnswerScale())


def answers_declared(scale: AnswerScale) -> dict[str, Any]:
    """How a model's answers are declared at registration so that they have this scale."""
    if scale.kind == "label":
        return {}
    return {"output": scale.kind} | ({"bounds": (scale.low, scale.high)} if scale.kind == "value" else {})


def labeller_of(model: Any, known: Labeller | None, scale: AnswerScale) -> Labeller:
    """Who labels records: `model`, asked as the release's own model was, or about data frames and for answers of the release's kind."""
    if isinstance(model, Labeller):
        return model
    if model is None:
        if known is None:
            raise ParameterError("this needs the model, which a release file does not contain: pass model=")
        return known
    if known is not None:
        return replace(known, model=model)
    declared = answers_declared(scale)
    return Labeller(model, None, declared.get("output"), _as_frame, declared.get("bounds"))


def _as_frame(columns: dict[str, Any]) -> Any:
    """A pandas data frame, or a pyarrow table where pandas is not installed."""
    import narwhals as nw

    return nw.from_dict(plain_columns(columns), backend="pandas" if find_spec("pandas") else "pyarrow").to_native()
