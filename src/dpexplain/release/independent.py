"""Private LIME: a model's answers at records that are drawn from a release's margins, feature by feature, and planes fitted to them."""

from __future__ import annotations

import numpy as np

from dpexplain.core.layout import Layout
from dpexplain.domain import Domain, DomainLike
from dpexplain.errors import ParameterError
from dpexplain.estimation.independent_planes import IndependentPlanes, independent_codes
from dpexplain.estimation.moment_planes import MomentPlanes
from dpexplain.estimation.public_points import ask
from dpexplain.estimation.reference import Reference
from dpexplain.registration.labels import Labeller
from dpexplain.release.reference_data import ReferenceData


def independent_planes(
    domain: DomainLike, labeller: Labeller, points: Reference, planes: MomentPlanes, reference: ReferenceData | None
) -> IndependentPlanes:
    """Ask the model about records with the margins of the reference, or of the release's public points where there is none."""
    if not isinstance(domain, Domain):
        raise ParameterError("lime() is for releases of tables. Explain texts and images with release.explain()")
    codes, weights = points.codes, planes.inverse_weight * planes.raked
    if reference is not None:
        codes = reference.codes
        weights = np.ones(len(reference)) if reference.weights is None else reference.weights
    drawn, nothing = independent_codes(np.asarray(codes), weights), np.empty(0)
    encoded = Reference(drawn, nothing, nothing).points(Layout.of(domain.blocks))
    return IndependentPlanes(encoded, ask(labeller, domain.decode(encoded)), planes.average, planes.layout)
