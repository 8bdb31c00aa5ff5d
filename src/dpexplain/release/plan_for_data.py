"""Plans what a release asks of private rows, from public numbers."""

from __future__ import annotations

from dpexplain.core.cells import cells_of
from dpexplain.core.layout import Layout
from dpexplain.data import PrivateData
from dpexplain.domain import Domain
from dpexplain.errors import ParameterError
from dpexplain.estimation.public_points import PublicModel
from dpexplain.mechanisms.release_plan import ReleasePlan, plan_moments, plan_with_reference
from dpexplain.release.reference_data import trial_columns

WIDEST = 2048  # columns: a release holds n² moments, and rehearsing it takes n³ steps


def plan_release(data: PrivateData, mu: float, reference: int) -> ReleasePlan:
    """A plan that costs at most `mu`; `reference` is how many records to draw, 0 for none.

    A domain that is too wide and a model that cannot answer raise here, before anything is spent.
    """
    _require_narrow(data)
    facts = data.facts
    layout = facts.setting.layout or Layout.of(facts.domain.blocks)
    model = None if facts.column_model is None else PublicModel(facts.column_model)
    if not reference:
        return plan_moments(layout, mu, facts.setting, model)
    domain = require_tabular(data)
    if facts.labeller is not None:
        facts.labeller(trial_columns(domain))
    return plan_with_reference(layout, cells_of(domain.blocks, domain.levels), reference, mu, facts.setting, model)


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
