"""Reference data from what was released: records drawn from noisy counts, labelled by the model and raked to noisy moments. Pure post-processing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.cells import CellCodes
from dpexplain.core.layout import Layout
from dpexplain.core.marginals import Bins
from dpexplain.core.uniforms import Uniforms
from dpexplain.data import PrivateData
from dpexplain.domain import Domain
from dpexplain.estimation.answer import Solver
from dpexplain.estimation.denoise import estimate, restore_clipped
from dpexplain.estimation.global_slopes import Slopes
from dpexplain.estimation.hidden_codes import find_hidden_codes
from dpexplain.estimation.known_covariances import PreliminaryRecords, add_covariances
from dpexplain.estimation.label_raking import LabelRaking
from dpexplain.estimation.local_reference import MomentRaking
from dpexplain.estimation.plane_building import moment_targets
from dpexplain.estimation.population import draw, tables
from dpexplain.estimation.public_points import ask
from dpexplain.estimation.raking import Tables
from dpexplain.estimation.records_from_bins import cell_masses, draw_within_bins, position_errors
from dpexplain.estimation.response import REHEARSALS, normals, table_changes
from dpexplain.mechanisms.marginals_plan import NoisyMarginals
from dpexplain.mechanisms.moments_plan import NoisySketch
from dpexplain.progress import ProgressCallback, no_progress
from dpexplain.release.plan_for_data import require_tabular
from dpexplain.release.reference_data import ReferenceData, columns_of, stored_changes
from dpexplain.release.release_planes import reference_slopes

STEPS = 6  # that `build_reference` announces, at most
_MISFIT = 5.0  # in units of noise: from here on the label moments show that records lack what labels in tables can teach them
_PRELIMINARY = 1 << 16  # records by which tables are compared with moments
_FAR, _FARTHER, _FARTHEST = 1 << 48, 1 << 49, 1 << 50  # positions in the public sequence that drawing records does not reach


@dataclass(frozen=True, slots=True, eq=False)
class DrawnRecords:
    """Records that follow the noisy counts, and how their log weights change under other draws of the noise."""

    codes: CellCodes
    bins: CellCodes
    changes: Matrix
    position_errors: Matrix  # of numbers within their bins (`estimation/records_from_bins.py`)
    hidden_codes: Matrix  # that noise may hide (`estimation/hidden_codes.py`)


def draw_records(
    found: NoisyMarginals,
    domain: Domain,
    rows: int,
    sketch: NoisySketch | None = None,
    watch: ProgressCallback = no_progress,
    rehearsals: int = REHEARSALS,
) -> DrawnRecords:
    """The same counts and moments always give the same records; `sketch` has the moments, where there are any."""
    bins, uniforms, layout = found.bins, Uniforms(), Layout.of(domain.blocks)
    known = None if sketch is None else estimate(sketch.sums, sketch.query, sketch.sigma)
    masses = cell_masses(bins, found.histograms, found.histogram_sigma, known, layout)
    used = [np.unique(joined) for joined in bins.joined]
    believed = tables(found.tables, bins.offsets, used, found.table_sigma)
    if sketch is not None:
        watch("comparing tables with moments")
        believed = _compare_with_moments(believed, sketch, bins, masses, domain)
    watch("learning all tables at once")
    codes = draw(believed, rows, uniforms)
    watch("rehearsing the noise")
    changes = table_changes(codes, believed, uniforms, rehearsals)
    drawn = draw_within_bins(codes, bins, masses, layout, uniforms)
    positions = position_errors(bins, found.histograms, found.histogram_sigma, layout)
    return DrawnRecords(drawn, codes, changes, positions, find_hidden_codes(believed, bins, layout))


def _compare_with_moments(found: Tables, sketch: NoisySketch, bins: Bins, masses: list[Vector], domain: Domain) -> Tables:
    """Tables that follow the covariances of the moments too."""
    uniforms, layout = Uniforms(_FARTHEST), Layout.of(domain.blocks)
    codes = draw(found, _PRELIMINARY, uniforms)
    points = ReferenceData(domain, draw_within_bins(codes, bins, masses, layout, uniforms), None, None, 0.0).encoded
    known = estimate(sketch.sums, sketch.query, sketch.sigma, shrink=False)
    return add_covariances(found, known, PreliminaryRecords(codes, points, sketch.query.weights(points)), layout)


def build_reference(
    marginals: NoisyMarginals,
    sketch: NoisySketch,
    solver: Solver,
    data: PrivateData,
    rows: int,
    watch: ProgressCallback,
) -> ReferenceData:
    """Records drawn from the noisy counts, labelled by the model and raked to the noisy moments."""
    domain, found = require_tabular(data), estimate(sketch.sums, sketch.query, sketch.sigma)
    drawn = draw_records(marginals, domain, rows, sketch, watch)
    plain = ReferenceData(
        domain,
        drawn.codes,
        None,
        None,
        solver.radius,
        stored_changes(drawn.changes),
        position_errors=drawn.position_errors,
        hidden_codes=drawn.hidden_codes,
    )
    if data.labeller is None:
        return plain
    watch("asking the model")
    labels = ask(data.labeller, columns_of(drawn.codes, domain))
    watch("raking records to the moments")
    base = sketch.query.weights(plain.encoded)
    if sketch.query.expected is not None:
        found = restore_clipped(found, sketch.query.expected, plain.encoded, labels, base)

    def rake_to_moments(base: Vector) -> tuple[MomentRaking, Slopes]:
        slopes = reference_slopes(plain.encoded, labels, base, found, solver.layout)
        targets = moment_targets(solver, slopes.values, found)
        return MomentRaking(plain.encoded, labels, base, targets, solver.layout.numbers), slopes

    (moments, slopes), before, other_noise = rake_to_moments(base), np.ones(1), drawn.changes
    if marginals.labels is not None and moments.misfit() > _MISFIT:
        watch("raking records to labels in tables")
        before, other_noise = _rake_to_labels(marginals, marginals.labels, drawn, labels)
        moments, slopes = rake_to_moments(base * before)
    weights = moments.weights()
    shape = (len(other_noise), len(moments.target))
    noise = normals(Uniforms(_FAR), shape[0] * shape[1]).reshape(shape)
    changes, bias = stored_changes(moments.changes(weights, other_noise, noise)), moments.bias(other_noise)
    if marginals.labels is not None:
        weights = weights * before / (weights * before).mean()
    return replace(plain, labels=labels, weights=weights, changes=changes, bias=bias, slopes=slopes)


def _rake_to_labels(found: NoisyMarginals, sums: Matrix, drawn: DrawnRecords, labels: Vector) -> tuple[Vector, Matrix]:
    """Weights with which records have the rows' labels in every pair of bins, and how log weights change under other noise; `sums` are the rows' labels."""
    bins, pairs = found.bins, list(combinations(range(len(found.bins.sizes)), 2))
    rows = max(float(found.tables.sum()) / (2 * len(pairs)), 1.0)  # each table counts all of them, twice
    codes = np.ascontiguousarray(drawn.bins.T, dtype=np.int32)
    raking = LabelRaking(codes, bins.offsets, labels, found.label_sigma / rows, found.table_sigma / rows)
    released = np.concatenate(
        [sums[bins.offsets[a] : bins.offsets[a + 1], bins.offsets[b] : bins.offsets[b + 1]].ravel() for a, b in pairs]
    )
    alike = np.ones(len(labels))
    prior = raking.estimate_prior(alike, released / rows)
    if not prior:
        return alike, drawn.changes
    tilt = np.exp(raking.rake(alike, released / rows, prior))
    tilt /= tilt.mean()
    noise = normals(Uniforms(_FARTHER), len(drawn.changes) * len(released)).reshape(-1, len(released))
    return tilt, raking.rehearse(tilt, drawn.changes, noise, prior)
