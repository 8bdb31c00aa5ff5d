"""SHAP values of an image's superpixels: what each adds to a model's answer, compared with background images of a release. Free, any number of times.

A release of images has no reference records, but it has a few thousand public points with the released means and covariances of superpixels
(`MomentPlanes`). Each is a *flat image*: every pixel has its superpixel's mean. The model is shown mixtures: superpixels that joined as in the image, the
others flat. With all joined it is the image itself, with none the flat image, so values add up to f(image) minus the average answer over flat images.

Errors are those of an average over records (`estimation/background.py`), with terms of their own: noise of the released means, rehearsed by tilting the
weights of the flat images; and what flat images cannot show. The model's average answer over them misses the released one by Δ, and what each of d
superpixels adds may be wrong by Δ/√d, beyond noise; τ² Var φ is for its covariances with superpixels, τ² their mean squared miss relative to their spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpexplain.answers.contributions_batch import ContributionsBatch
from dpexplain.core.answer_scale import AnswerScale
from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.uniforms import Uniforms
from dpexplain.domain import ImageDomain
from dpexplain.domain.image import COLUMN
from dpexplain.estimation.background import Background, WeightedRecords, choose_background
from dpexplain.estimation.coalitions import questions_per_record, record_values
from dpexplain.estimation.response import REHEARSALS, normals
from dpexplain.privacy.budget import Guarantee
from dpexplain.progress import with_bar
from dpexplain.registration.labels import Labeller
from dpexplain.release.reference_shapley import FEWEST_RECORDS, QUESTIONS, TRAINING, checked_count, in_own_units

if TYPE_CHECKING:
    from dpexplain.release.release import Release

_PIXELS = 1 << 22  # of the images that the model is shown at once
_FAR = 5 << 48  # a position in the public sequence that nothing else reaches


@dataclass(frozen=True, slots=True, eq=False)
class ImageReference:
    """One model and the flat images that it is compared on: prepared once, for any number of images."""

    domain: ImageDomain
    labeller: Labeller
    background: Background
    points: Matrix  # superpixels of the flat images
    at_records: Vector
    same_model: bool  # whether it is the one that labelled the release
    level_miss: float  # Δ²

    def explain(
        self, images: Sequence[NDArray[Any]], scale: AnswerScale, guarantee: Guarantee, fingerprint: str | None
    ) -> ContributionsBatch:
        """Contributions of each image's superpixels."""
        points = self.domain.encode_queries(list(images))
        # One question for all: a model that cannot answer raises before anything is computed.
        answers = ask_images(self.labeller, self.domain, np.stack(images)) if len(images) else np.empty(0)
        found = [self._explain_one(images[i], float(answers[i])) for i in with_bar(range(len(images)), "explaining", len(images))]
        values, errors = (np.array([one[k] for one in found]).reshape(points.shape) for k in (0, 1))
        return in_own_units(self, points, (values, errors, answers), scale, guarantee, fingerprint)

    def _explain_one(self, image: NDArray[Any], answer: float) -> tuple[Vector, Vector]:
        each = record_values(partial(self._ask_mixtures, image), self.at_records, answer, self.domain.width)
        values, error = self.background.average_by_feature(each, ignored=False)
        return values, np.sqrt(np.square(error) + self.level_miss / self.domain.width)

    def _ask_mixtures(self, image: NDArray[Any], records: NDArray[np.intp], joined: NDArray[np.bool_]) -> Vector:
        found, step = np.empty(len(records)), max(_PIXELS // image.size, 1)
        for start in range(0, len(records), step):
            part = slice(start, start + step)
            flat = self.domain.flat_images(self.points[records[part]])
            mixtures = np.where(self.domain.on_pixels(joined[part]), image, flat)
            found[part] = ask_images(self.labeller, self.domain, mixtures)
        return found

    @property
    def base(self) -> tuple[float, float]:
        """(the average answer over the flat images, its standard error)."""
        average, error = self.background.average_one(self.at_records)
        return average, float(np.sqrt(error**2 + self.level_miss))

    @property
    def details(self) -> dict[str, Any]:
        return {
            "quantity": "shapley",
            "source": "superpixels",
            "method": "paired orders",
            "records": len(self.at_records),
            "questions": len(self.at_records) * questions_per_record(self.domain.width),
            "same_model": self.same_model,
            "training_data": TRAINING.format(asked="image", background="flat images"),
        }


def prepare_images(release: Release, labeller: Labeller, records: int | None) -> ImageReference:
    """Ask the model about the release's flat images; DataError where it cannot answer."""
    domain, planes = release.domain, release.planes
    if not isinstance(domain, ImageDomain):
        raise TypeError("SHAP values of superpixels need a release of images")
    weights, known = planes.inverse_weight * planes.raked, release.labeller
    same = known is not None and labeller.model is known.model and labeller.target == known.target
    step = max(_PIXELS // int(np.prod(domain.shape)), 1)
    parts = [planes.points[start : start + step] for start in range(0, len(planes.points), step)]
    answers = np.concatenate([ask_images(labeller, domain, domain.flat_images(part)) for part in parts])
    changes = _rehearse(planes.points, weights / weights.sum(), release.solver.noise.s1)
    everyone = WeightedRecords(planes.points, weights / weights.sum(), changes, moment_miss(release, answers))
    wanted = QUESTIONS // questions_per_record(max(domain.width, 2)) if records is None else records
    count = checked_count(max(wanted, FEWEST_RECORDS) if records is None else records, len(planes.points))
    background = choose_background(everyone, answers, domain.blocks, count)
    chosen = background.positions
    level_miss = max((float(planes.raked @ answers / planes.raked.sum()) - planes.t0) ** 2 - planes.t0_error**2, 0.0)
    return ImageReference(domain, labeller, background, planes.points[chosen], answers[chosen], same, level_miss)


def ask_images(labeller: Labeller, domain: ImageDomain, images: NDArray[Any]) -> Vector:
    """Labels of images, shown as the registered ones were."""
    return labeller({COLUMN: np.rint(images).astype(np.uint8) if domain.bounds is None else images})


def _rehearse(points: Matrix, weights: Vector, error: float) -> Matrix:
    """(K, N): changes of log weights that move the means of the superpixels as other noise would, to first order."""
    centred = points - weights @ points
    covariance = (centred * weights[:, None]).T @ centred
    covariance[np.diag_indices(len(covariance))] += error**2 + 1e-9
    moved = error * normals(Uniforms(_FAR), REHEARSALS * points.shape[1]).reshape(REHEARSALS, -1)
    return np.asarray(np.linalg.solve(covariance, moved.T).T @ centred.T)


def moment_miss(release: Release, answers: Vector) -> float:
    """τ²: by how much the answers' covariances with superpixels over flat images miss the released ones, in spreads, squared, beyond noise."""
    solver, planes = release.solver, release.planes
    share, centred = planes.raked / planes.raked.sum(), planes.points - planes.mean
    released = solver.eigenvectors @ (solver.eigenvalues * (solver.eigenvectors.T @ planes.slopes.values))
    found = (share * (answers - share @ answers)) @ centred
    spread = np.maximum(share @ np.square(centred), 1e-9) * max(float(share @ np.square(answers - share @ answers)), 1e-9)
    noise = np.square(solver.noise.t1) / spread + 1 / len(answers)
    return max(float((np.square(found - released) / spread - noise).mean()), 0.0)
