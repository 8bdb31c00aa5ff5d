"""The contents of a release file: writing the solver's arrays, and restoring all fields of a release."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpexplain.core import weights
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.layout import Layout
from dpexplain.core.plane import PAPER_RADIUS, Plane, require_plane
from dpexplain.core.weights import Weight
from dpexplain.domain import Domain
from dpexplain.estimation import reference as ref
from dpexplain.estimation.answer import NoiseLevels, Solver
from dpexplain.estimation.local_change import NEARER, OWN
from dpexplain.estimation.moment_planes import BROAD, EVERY, KEPT, LIMIT, NARROWEST, POOLED, STEPS, MomentPlanes
from dpexplain.privacy.budget import Guarantee
from dpexplain.privacy.model_card import ModelCard
from dpexplain.privacy.relation import Neighbours
from dpexplain.release.reference_data import LARGEST_NUMBER, largest_codes, restore_reference
from dpexplain.release.release_planes import restore_planes

SUBJECT = "This release, and every explanation from it,"
_MOST_ROWS = 10**15  # of a table


def solver_arrays(solver: Solver) -> dict[str, Any]:
    """The arrays that a release file stores of the moments."""
    codes = solver.reference.codes
    return {
        "mean": solver.mean,
        "eigenvalues": solver.eigenvalues,
        "eigenvectors": solver.eigenvectors,
        "t1": solver.t1,
        "calibration": solver.noise.calibration,
        "codes": codes.astype(np.uint16 if codes.max() < 2**16 else np.uint32),
        "labels": solver.reference.labels,
        "inverse_weight": solver.reference.inverse_weight,
    }


def restore_parts(header: dict[str, Any], arrays: dict[str, Any]) -> dict[str, Any]:
    """The fields of a release, from a file's header and arrays; KeyError, TypeError or ValueError unless they make sense.

    Files from before there were planes have a ball of radius 1 and no plane in their header: they hold the same moments, and answer by the
    fitted plane, like new ones.
    """
    if header["format"] != "dpexplain.release":
        raise ValueError("format")
    domain = Domain.from_dict(header["domain"])
    layout = Layout.of(domain.blocks)
    extra, of_planes = (
        {name: arrays.pop(name) for name in list(arrays) if name.startswith(part)} for part in ("reference_", "plane_")
    )
    _require_valid_arrays(arrays, layout)
    solver, new = _solver(header, arrays, layout), "plane" in header
    planes, reference = restore_planes(header.get("planes"), of_planes, solver), restore_reference(extra, domain, solver)
    if reference and reference.slopes and (reference.slopes.noise is None) != (planes.slopes.noise is None):
        raise ValueError("noise of some slopes")
    return {
        "solver": solver,
        "planes": planes,
        "domain": domain,
        "weight": weights.from_dict(header["weight"]),
        "guarantee": _guarantee(header["guarantee"]),
        "size": _rows(header["size"]),
        "fingerprint": header["fingerprint"],
        "library": str(header["library"]),
        "reference": reference,
        "other_columns": tuple(map(str, header.get("other_columns", ()))),
        "plane": require_plane(header["plane"]) if new else "fitted",
        "radius": _positive(header["radius"]) if new and header["radius"] is not None else None,
        "scale": AnswerScale.from_dict(header.get("scale")),
        "model_card": _model_card(header.get("model_card")),
    }


def _model_card(stated: Any) -> ModelCard | None:
    """The card of a file: a JSON object, or nothing."""
    return None if stated is None else ModelCard.from_dict(dict(stated))


def _guarantee(paid: dict[str, Any]) -> Guarantee:
    """The guarantee of a file. ValueError unless it is valid: a checksum can be recomputed for any contents."""
    stated = {"subject": SUBJECT, "private": paid["private"], "note": paid["note"], "model_answers": "model_answers" in paid}
    guarantee = Guarantee(_positive(paid["mu"]), _positive(paid["delta"]), Neighbours.from_dict(paid), **stated)
    if not isinstance(guarantee.private, bool) or not isinstance(guarantee.note, str):
        raise ValueError("guarantee")
    if not (isinstance(guarantee.neighbours.unit, str | None) and np.isfinite(guarantee.epsilon) and str(guarantee)):
        raise ValueError("guarantee")
    return guarantee


def _solver(header: dict[str, Any], arrays: dict[str, Any], layout: Layout) -> Solver:
    levels = {name: _positive(header["noise"][name], zero=True) for name in ("t1", "s2", "s1")}
    return Solver(
        mean=arrays["mean"],
        eigenvalues=arrays["eigenvalues"],
        eigenvectors=arrays["eigenvectors"],
        t0=float(header["t0"]),
        t1=arrays["t1"],
        radius=_positive(PAPER_RADIUS if header["radius"] is None else header["radius"]),
        noise=NoiseLevels(**levels, calibration=arrays["calibration"]),
        layout=layout,
        reference=ref.Reference(arrays["codes"].astype(np.int64), arrays["labels"], arrays["inverse_weight"]),
    )


def payload_of(
    solver: Solver, planes: MomentPlanes, weight: Weight, plane: Plane, radius: float | None, scale: AnswerScale
) -> dict[str, Any]:
    """Every number an explanation is computed from, in JSON's types. `docs/release.md` has the formulas."""
    layout, slopes = solver.layout, planes.slopes
    return {
        "plane": plane,
        "scale": scale.to_dict(),
        "mean": solver.mean.tolist(),
        "eigenvalues": solver.eigenvalues.tolist(),
        "eigenvectors": solver.eigenvectors.tolist(),
        "t0": solver.t0,
        "t1": solver.t1.tolist(),
        "radius": solver.radius if plane == "paper" else radius,
        "weight": weight.to_dict(),
        "layout": _describe_layout(layout),
        "reference": {
            "points": solver.reference.codes.tolist(),
            "labels": solver.reference.labels.tolist(),
            "inverse_weight": solver.reference.inverse_weight.tolist(),
        },
        "noise": {
            "sigma_t1": solver.noise.t1,
            "sigma_s2": solver.noise.s2,
            "sigma_s1": solver.noise.s1,
            "calibration": solver.noise.calibration.tolist(),
        },
        "fitted": {
            "slopes": slopes.values.tolist(),
            "spread": slopes.spread.tolist(),
            "inverse": planes.inverse.tolist(),
            "factors": planes.factors.tolist(),
            "average": planes.average.values.tolist(),
            "labels": planes.labels.tolist(),
            "raked": planes.raked.tolist(),
            "ridge": planes.ridge,
            "doubt": planes.doubt,
            "t0_error": planes.t0_error,
            "average_error": planes.average.error,
            "steps": STEPS,
            "every": EVERY,
            "kept": KEPT,
            "limit": LIMIT,
            "broad": BROAD,
            "narrowest": NARROWEST,
            "pooled": POOLED,
            "nearer": NEARER,
            "own": OWN,
            "shares": planes.local_change.shares.tolist(),
            "usual": planes.local_change.usual.tolist(),
            "unseen": planes.local_change.unseen.tolist(),
        },
    }


def _describe_layout(layout: Layout) -> list[dict[str, Any]]:
    """The attributes in order; a scale where it is not 1."""
    kinds = zip(layout.starts, layout.stops, layout.is_number, layout.scales or [1.0] * layout.attributes, strict=True)
    return [
        {"start": s, "stop": e, "kind": "number" if number else "code"} | ({} if scale == 1 else {"scale": scale})
        for s, e, number, scale in kinds
    ]


def _require_valid_arrays(arrays: dict[str, Any], layout: Layout) -> None:
    """ValueError unless shapes, ranges and finiteness are right, which a checksum does not show."""
    n, points = layout.width, arrays["labels"].shape[0]
    shapes = dict.fromkeys(("mean", "eigenvalues", "t1", "calibration"), (n,)) | {"eigenvectors": (n, n)}
    shapes |= {"codes": (layout.attributes, points), "labels": (points,), "inverse_weight": (points,)}
    if {name: array.shape for name, array in arrays.items()} != shapes or not points:
        raise ValueError("shapes")
    if not all((np.abs(array) <= LARGEST_NUMBER).all() for array in arrays.values()):  # NaN is not
        raise ValueError("numbers that no release has")
    positive = (arrays["eigenvalues"] > 0).all() and (arrays["inverse_weight"] > 0).all() and (arrays["calibration"] >= 0).all()
    if not positive or (arrays["codes"] > largest_codes(layout)[:, None]).any():
        raise ValueError("ranges")


def _positive(value: Any, *, zero: bool = False) -> float:
    number = float(value)
    if isinstance(value, (bool, str)) or not (np.isfinite(number) and (number > 0 or (zero and number == 0))):
        raise ValueError("numbers out of range")
    return number


def _rows(value: Any) -> int:
    """A number of rows; ValueError for an impossible one."""
    rows = int(value)
    if not 1 <= rows <= _MOST_ROWS:
        raise ValueError("rows")
    return rows
