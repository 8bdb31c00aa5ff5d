"""Plans what a release asks of private rows, from public numbers."""

from __future__ import annotations

import warnings

from dpexplain.core.cells import cells_of
from dpexplain.core.layout import Layout
from dpexplain.data import PrivateData
from dpexplain.domain import Domain
from dpexplain.errors import DataError, ParameterError, UnaskedModel
from dpexplain.estimation.public_points import PublicModel
from dpexplain.mechanisms.release_plan import ReleasePlan, plan_moments, plan_with_reference
from dpexplain.registration.labels import Labeller
from dpexplain.release.reference_data import trial_columns

WIDEST = 2048  # columns: a release holds n² moments, and rehearsing it takes n³ steps


def plan_release(data: PrivateData, mu: float, reference: int) -> ReleasePlan:
    """A plan that costs at most `mu`; `reference` is how many records to draw, 0 for none.

    A domain that is too wide raises here, before anything is spent, and so does a model that cannot answer about records of the domain if reference
    records are to be labelled by it; else it is not used, and UnaskedModel warns of that.
    """
    _require_narrow(data)
    facts = data.facts
    layout = facts.setting.layout or Layout.of(facts.domain.blocks)
    model = None if facts.column_model is None else PublicModel(facts.column_model)
    if not reference:
        _warn_if_unanswered(data)
        return plan_moments(layout, mu, facts.setting, model)
    domain = require_tabular(data)
    if facts.labeller is not None:
        _require_answers(facts.labeller, domain)
    cells, labelled = cells_of(domain.blocks, domain.levels), facts.labeller is not None and not facts.targets
    return plan_with_reference(layout, cells, reference, mu, facts.setting, model, labelled=labelled)


def _warn_if_unanswered(data: PrivateData) -> None:
    """Warn where the model cannot be asked about public records. These are synthetic, so that the cause says nothing about a row."""
    domain, labeller = data.facts.domain, data.facts.labeller
    if labeller is None or not isinstance(domain, Domain):
        return
    try:
        labeller(trial_columns(domain))
    except Exception as error:  # whatever a foreign model raises
        warnings.warn(
            f"the model cannot answer about synthetic records of the domain ({_explain(error, labeller, domain)}), so the release is made from the rows' "
            "answers alone and is less accurate. Let the model take the domain's columns as dpx.check(data) shows them",
            UnaskedModel,
            stacklevel=5,
        )


def _require_answers(labeller: Labeller, domain: Domain) -> None:
    try:
        labeller(trial_columns(domain))
    except DataError as error:
        raise DataError(
            f"the model cannot label synthetic records of the domain: {_explain(error, labeller, domain)}. Declare every column that it needs"
        ) from None


def _explain(error: Exception, labeller: Labeller, domain: Domain) -> str:
    from dpexplain.registration.declaration_check import explain_refusal  # which loads libraries of data frames

    return explain_refusal(error, labeller, domain)


def _require_narrow(data: PrivateData) -> None:
    if (width := data.facts.domain.width) > WIDEST:
        raise ParameterError(
            f"a release of {width} columns would hold {width * width:,} noisy moments; at most {WIDEST} columns are supported. Declare "
            "fewer (a coarser grid, a smaller vocabulary), or explain one query at a time with dpx.Explainer"
        )


def require_tabular(data: PrivateData) -> Domain:
    if not isinstance(data.facts.domain, Domain):
        raise ParameterError("reference data are records of a table. Leave reference= out for text and images")
    return data.facts.domain
