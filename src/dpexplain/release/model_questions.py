"""Questions about a model, answered from a release's reference records at no cost: SHAP values, summaries, other models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from dpexplain.answers.contributions import Contributions
from dpexplain.answers.contributions_batch import ContributionsBatch
from dpexplain.answers.explanation import Explanation
from dpexplain.arguments import quote
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Matrix
from dpexplain.core.weights import Weight
from dpexplain.domain import Domain, DomainLike, ImageDomain, QueryRules, TextDomain, read_queries, read_query
from dpexplain.domain.columns import plain_columns
from dpexplain.domain.queries import Extra, Queries
from dpexplain.errors import ParameterError
from dpexplain.privacy.budget import Guarantee
from dpexplain.privacy.events import mu_of, quanta_up
from dpexplain.registration.labels import Labeller
from dpexplain.release.named import find_class
from dpexplain.release.reference_data import ReferenceData

if TYPE_CHECKING:
    from dpexplain.data import PrivateData
    from dpexplain.estimation.independent_planes import IndependentPlanes
    from dpexplain.ledger.port import Ledger
    from dpexplain.mechanisms.ports import Noise
    from dpexplain.privacy.budget import Budget
    from dpexplain.release.batch import Explanations
    from dpexplain.release.image_shapley import ImageReference
    from dpexplain.release.reference_shapley import ShapleyReference
    from dpexplain.release.release import Release
    from dpexplain.release.summary import Summary
    from dpexplain.release.surrogates import ReleaseSurrogate
    from dpexplain.release.text_shapley import WordReference


class ModelQuestions:
    """Methods of `Release` that need a model beside the reference records; the fields are the release's."""

    domain: DomainLike
    guarantee: Guarantee
    fingerprint: str | None
    reference: ReferenceData | None
    other_columns: tuple[str, ...]
    labeller: Labeller | None
    named: Mapping[str, Release]
    first: Guarantee | None

    def shapley(
        self,
        record: Any,
        model: Any = None,
        *,
        target: Any = None,
        background: int | None = None,
        extra: Extra = "refuse",
        clip: bool = False,
    ) -> Contributions:
        """SHAP values of `record`: what each feature adds to the model's answer, compared with the reference records. Free, any number of times.

        They add up to the answer minus the average answer over the reference. Error bars hold the choice of records and orders, the privacy noise and
        the reference's estimated bias. Private for the explanation data by post-processing; what the model's answers reveal about its training data is
        not covered (docs/shap.md).

        - `model` is anything `PrivateData` takes, shown records in the domain's own terms; None is the model that labelled this release, in the process
          that made it. `target` is a class that the release does not explain by itself.
        - `background` is how many reference records to compare with: more take longer and err less.

        Of a release of texts: what each word of the vocabulary adds, present or absent, compared with background texts that have the released
        frequencies and pairs of words, and what the other words add together (docs/text.md). Of a release of images: what each superpixel adds,
        compared with flat images that have the released means and covariances (docs/images.md).
        """
        if isinstance(self.domain, TextDomain):
            read_query(self.domain, record, self.other_columns, extra, clip)
            return self._word_shapley([self.domain.query_text(record)], model, target, background)[0]
        if isinstance(self.domain, ImageDomain):
            read_query(self.domain, record, self.other_columns, extra, clip)
            return self._image_shapley([self.domain.picture(record)], model, target, background)[0]
        point, notes = read_query(self.domain, record, self.other_columns, extra, clip)
        found = self._shapley(point[None], model, target, background)[0]
        return replace(found, details={**found.details, "read_as": notes}) if notes else found

    def shapley_many(
        self,
        records: Any,
        model: Any = None,
        *,
        target: Any = None,
        background: int | None = None,
        extra: Extra = "refuse",
        clip: bool = False,
    ) -> ContributionsBatch:
        """The same for many records: a data frame, a list of dicts, a dict of columns, or an array where all is numeric. `.plot()` is a beeswarm."""
        read = read_queries(self.domain, records, QueryRules(extra, clip, "raise", self.other_columns))
        if isinstance(self.domain, TextDomain):
            return self._word_shapley([self.domain.query_text(one) for one in read.records], model, target, background)
        if isinstance(self.domain, ImageDomain):
            return self._image_shapley([self.domain.picture(one) for one in read.records], model, target, background)
        found, notes = (
            self._shapley(read.points, model, target, background),
            {row: note for row, note in enumerate(read.notes) if note},
        )
        return replace(found, details={**found.details, "read_as": notes}) if notes else found

    def lime(
        self,
        record: Any,
        model: Any = None,
        *,
        weight: Weight | None = None,
        target: Any = None,
        extra: Extra = "refuse",
        clip: bool = False,
    ) -> Explanation:
        """LIME's explanation of `record` without private rows: a plane fitted to the model's answers at records drawn from the release's
        margins, each feature by itself. Free, any number of times; the model is asked 32,768 questions the first time.

        `explain` fits its plane to the distribution of records, so an effect of one feature may be attributed to a correlated one; here each feature has
        its own effect, as for SHAP. `model` and `target` are as for `shapley`; needs no reference records. Error bars hold the choice of points and
        the noise of the margins, and `details["columns"]` is "independent".
        """
        point, notes = read_query(self.domain, record, self.other_columns, extra, clip)
        read = Queries(point[None], (record,), (notes,), ())
        return self._lime(read, model, target, weight).explanation_at(0, record)

    def lime_many(
        self,
        records: Any,
        model: Any = None,
        *,
        weight: Weight | None = None,
        target: Any = None,
        extra: Extra = "refuse",
        clip: bool = False,
    ) -> Explanations:
        """The same for many records: a data frame, a list of dicts, a dict of columns, or an array where all is numeric."""
        read = read_queries(self.domain, records, QueryRules(extra, clip, "raise", self.other_columns))
        return self._lime(read, model, target, weight)

    def _lime(self, read: Queries, model: Any, target: Any, weight: Weight | None) -> Explanations:
        from dpexplain.release.independent import independent_planes

        release, labeller = self._resolve_target(model, target)
        key = id(labeller.model), repr(labeller.target)
        if key not in self._asked_models:  # the model is stored too, so that no other gets its id
            made = independent_planes(self.domain, labeller, release.solver.reference, release.planes, release.reference)
            self._asked_models[key] = (labeller.model, made)
        return replace(release.explain_from(self._asked_models[key][1], read, weight), more={"columns": "independent"})

    @cached_property
    def _asked_models(self) -> dict[tuple[int, str], tuple[Any, IndependentPlanes]]:
        """Models that LIME's questions were put to, with their answers."""
        return {}

    def summary(self, model: Any = None, *, target: Any = None, records: int = 100, background: int | None = None) -> Summary:
        """The model as a whole: mean absolute contribution of each feature, a beeswarm, partial dependence; over the reference, free.

        `records` is how many reference records contributions are computed for; `model` and `background` are as for `shapley`.
        """
        from dpexplain.release.summary import summarise

        if isinstance(records, bool) or not isinstance(records, int) or records < 2:
            raise ParameterError(f"records must be a whole number of at least 2, got {quote(records)}")
        release, labeller = self._resolve_target(model, target)
        return summarise(release._with_reference, labeller, records, background, scale_of(self), self.guarantee)

    def surrogate(self, model: Any = None, *, target: Any = None) -> ReleaseSurrogate:
        """A surrogate of the model, fitted to the labelled reference: answers and SHAP values in microseconds, without the model.

        `model` is asked to measure how far its SHAP values are from the surrogate's; by default the model that labelled this release, in the
        process that made it. Without one, errors are what the surrogate does not explain. `target` is one of `.targets`. It reproduces how the
        model behaves: hand it out only where that may be known.
        """
        from dpexplain.release.surrogates import make_surrogate

        release = self._whole if target is None else self.of(target)
        known = model is not None or release.labeller is not None
        asked = self._resolve_target(model, target)[1] if known else None
        return make_surrogate(release._with_reference, asked, scale_of(self), self.guarantee)

    def relabel(self, model: Any, *, target: Any = None) -> Release:
        """A release for another model, or another class: the reference records labelled anew. Free for the explanation data.

        Error bars are wider than those of a release that was made for the model: its label moments on the private rows are estimated from the
        reference alone. `refine` buys that. `model=None` is this release's own model, for another `target`.
        """
        from dpexplain.release.relabelling import relabel

        return relabel(self._whole, labeller_of(model, self.labeller, scale_of(self), target))

    def refine(
        self,
        data: PrivateData,
        model: Any = None,
        *,
        spend: Budget,
        target: Any = None,
        budget: Budget | None = None,
        ledger: Ledger | str | None = None,
        noise: Noise | None = None,
        request_id: str | None = None,
    ) -> Release:
        """`relabel`, and the model's label moments on the private rows: n + 1 numbers, for `spend`. The guarantee states the total.

        `data` are the rows that this release was made from, registered with any model, in memory or in files. `budget` is the
        total of the account that pays, by default `spend`; `ledger`, `noise` and `request_id` are as for `dpx.release`.
        """
        from dpexplain.release.relabelling import refine

        labeller = labeller_of(model, self.labeller, scale_of(self), target)
        paying: dict[str, Any] = {"budget": budget, "ledger": ledger, "noise": noise, "request_id": request_id}
        return refine(self._whole, data, labeller, spend, **paying)

    @property
    def _whole(self) -> Release:
        """This object as a `Release`."""
        return cast("Release", self)

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the classes, or other models, that `explain(…, target=)` answers about."""
        return tuple(self.named)

    @property
    def targets_kind(self) -> Literal["class", "model"]:
        """Whether `.targets` are classes of one model, or other models that were added by name."""
        return "class" if self.first is None else "model"

    def of(self, target: Any) -> Release:
        """The release of one class, or of a model that was added, by its name."""
        if str(target) not in self.named:
            known = (
                ", ".join(map(repr, self.named)) or "none. Register the data with target='all', or add a model with with_model"
            )
            raise ParameterError(f"this release has no target {quote(target)}. It has {known}")
        return self.named[str(target)]

    def with_model(self, name: str, other: Release) -> Release:
        """This release with another one of the same records beside it, as `relabel` and `refine` make them: one file for both."""
        if not isinstance(name, str) or not name:
            raise ParameterError(f"the name of a model must be text, got {quote(name)}")
        if other.domain.fingerprint != self.domain.fingerprint:
            raise ParameterError("the other release has a different domain. Add what relabel or refine made of this one")
        if not _same_records(self.reference, other.reference) or other.guarantee.mu < self.first_guarantee.mu:
            raise ParameterError("the other release has different records. Add what relabel or refine made of this one")
        named = {**self.named, name: replace(other, named={})}
        return replace(
            self._whole, guarantee=paid_together(self.first_guarantee, named.values()), first=self.first_guarantee, named=named
        )

    @property
    def first_guarantee(self) -> Guarantee:
        """What was paid for this release before others were added to it."""
        return self.first or self.guarantee

    def _shapley(self, points: Matrix, model: Any, target: Any, background: int | None) -> ContributionsBatch:
        from dpexplain.release.reference_shapley import shapley_batch

        return shapley_batch(
            self._shapley_reference(model, target, background), points, scale_of(self), self.guarantee, self.fingerprint
        )

    def _word_shapley(self, texts: list[str], model: Any, target: Any, background: int | None) -> ContributionsBatch:
        return self.word_reference(model, target).explain(texts, scale_of(self), self.guarantee, self.fingerprint, background)

    def word_reference(self, model: Any = None, target: Any = None) -> WordReference:
        """The model with the background texts of a release of texts; asked about them once."""
        from dpexplain.release.text_shapley import prepare_words

        labeller = labeller_of(model, self.labeller, scale_of(self), target, self.domain)
        key = id(labeller.model), repr(labeller.target)
        if key not in self._word_references:  # the model is stored too, so that no other gets its id
            self._word_references[key] = prepare_words(self._whole, labeller)
        return self._word_references[key]

    @cached_property
    def _word_references(self) -> dict[tuple[int, str], WordReference]:
        """Models that were asked about background texts."""
        return {}

    def _image_shapley(self, images: list[Any], model: Any, target: Any, background: int | None) -> ContributionsBatch:
        from dpexplain.release.image_shapley import prepare_images

        labeller = labeller_of(model, self.labeller, scale_of(self), target, self.domain)
        key = id(labeller.model), repr(labeller.target), background
        if key not in self._image_references:  # the model is stored too, so that no other gets its id
            self._image_references[key] = prepare_images(self._whole, labeller, background)
        return self._image_references[key].explain(images, scale_of(self), self.guarantee, self.fingerprint)

    @cached_property
    def _image_references(self) -> dict[tuple[int, str, int | None], ImageReference]:
        """Models that were asked about flat images."""
        return {}

    def _shapley_reference(self, model: Any, target: Any, background: int | None) -> ShapleyReference:
        """The model with the reference records that its answers are compared with."""
        from dpexplain.release.reference_shapley import prepare_once

        release, labeller = self._resolve_target(model, target)
        return prepare_once(release._with_reference, labeller, background)

    def _resolve_target(self, model: Any, target: Any) -> tuple[Release, Labeller]:
        """The release of `target`, one of `.targets` or any class of the model, and the labeller that asks the model about it."""
        named = None if target is None else self.named.get(str(target))
        if named is None:
            return self._whole, labeller_of(model, self.labeller, scale_of(self), target)
        asked = model.model if isinstance(model, Labeller) else model
        return named, labeller_of(model, named.labeller, scale_of(named), find_class(asked, target))

    @property
    def _with_reference(self) -> ReferenceData:
        if self.reference is None and not isinstance(self.domain, Domain):
            raise ParameterError(
                "this needs reference records, which releases of texts and images do not have. explain() gives slopes of words or superpixels, "
                "and contributions() of them what each adds; shapley() gives SHAP values of words or superpixels (docs/text.md, docs/images.md)"
            )
        if self.reference is None:
            raise ParameterError(
                "this release has no reference records to compare with. Make it with dpx.release(…, reference=True)"
            )
        return self.reference


def paid_together(first: Guarantee, others: Iterable[Release]) -> Guarantee:
    """The release, and what each of the others, which all include it, cost on top of it."""
    own = quanta_up(Fraction(first.mu) ** 2)
    more = sum(max(quanta_up(Fraction(one.guarantee.mu) ** 2) - own, 0) for one in others)
    return replace(first, mu=mu_of(own + more)) if more else first


def _same_records(one: ReferenceData | None, other: ReferenceData | None) -> bool:
    return one is not None and other is not None and np.array_equal(one.codes, other.codes)


def scale_of(release: Any) -> AnswerScale:
    """The units of a release's answers."""
    return getattr(release, "scale", AnswerScale())


def answer_options(scale: AnswerScale) -> dict[str, Any]:
    """How a model's answers are declared at registration so that they have this scale."""
    if scale.kind == "label":
        return {}
    return {"output": scale.kind} | ({"bounds": (scale.low, scale.high)} if scale.kind == "value" else {})


def labeller_of(
    model: Any, known: Labeller | None, scale: AnswerScale, target: Any = None, domain: DomainLike | None = None
) -> Labeller:
    """The labeller that asks `model`: like the release's own model, or with data frames and the release's kind of answers.

    Texts of a `domain` without a column are shown as a list, images as an array.
    """
    if isinstance(model, Labeller):
        return model if target is None else replace(model, target=target)
    if model is None and known is None:
        raise ParameterError("this needs the model, which a release file does not contain. Pass model=")
    declared = answer_options(scale)
    if known is not None:
        if model is not None and model is not known.model and known.output is None:
            known = replace(known, output=declared.get("output"))  # a callable cannot say what its answers are
        return replace(known, model=known.model if model is None else model, target=known.target if target is None else target)
    listed = isinstance(domain, TextDomain) and domain.column is None
    table = _as_array if isinstance(domain, ImageDomain) else _as_list if listed else _as_frame
    return Labeller(model, target, declared.get("output"), table, declared.get("bounds"))


def _as_list(columns: dict[str, Any]) -> list[Any]:
    """The one column there is."""
    (texts,) = columns.values()
    return list(texts)


def _as_array(columns: dict[str, Any]) -> Any:
    """The one column there is, as it is."""
    (images,) = columns.values()
    return images


def _as_frame(columns: dict[str, Any]) -> Any:
    """A pandas data frame, or a pyarrow table where pandas is not installed."""
    import narwhals as nw

    return nw.from_dict(plain_columns(columns), backend="pandas" if find_spec("pandas") else "pyarrow").to_native()
