"""Compiled loops behind `compiled_planes.py`: one plane after the other, with points in stretches that stay in cache.

`points` has a row for each column of the data and a column for each point, so that vector instructions work on many points at once. Rows of zeros make
their number a multiple of four, because four are read together. They are in single precision, in which a grid of 1/4096 is exact, and all sums
are in double precision. The formulas are those of `moment_planes.py` and `plane_errors.py`, which tests compare with.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.core.compiling import compile_kernel, widest_registers
from dpexplain.core.layout import Indices
from dpexplain.estimation.error_parts import APART, BIAS, COMMON, SAMPLING, Parts
from dpexplain.estimation.local_change import NEARER, OWN
from dpexplain.estimation.moment_planes import KEPT, LIMIT, NARROWEST, POOLED, STEPS

Points: TypeAlias = NDArray[np.float32]
Flags: TypeAlias = NDArray[np.bool_]
Sources: TypeAlias = tuple[Matrix, Matrix, Vector, Matrix, Matrix]  # M by points, W, h, diagonals of R, their traces by part
TOGETHER = 4  # columns that are read together
_STRETCH = 256
_ANY_ORDER = {"reassoc", "contract", "nsz"}  # sums may be taken in any order


def _sum_up(points: Points, weights: Vector, residuals: Vector, out: Matrix) -> None:  # pragma: no cover
    """out[0] = Σ weights · points, and the sum of weights last; out[1] the same with weights · residuals."""
    widest_registers()
    columns, count = points.shape
    scratch = np.empty(_STRETCH)
    out[:] = 0.0
    for first in range(0, count, _STRETCH):
        last = min(first + _STRETCH, count)
        # Loops over slices are vectorised, over first + r they are not.
        pulled, part, rest = scratch[: last - first], weights[first:last], residuals[first:last]
        p, q = 0.0, 0.0
        for r in range(last - first):
            pulled[r] = part[r] * rest[r]
            p += part[r]
            q += pulled[r]
        out[0, columns] += p
        out[1, columns] += q
        for j in range(0, columns, 2):
            one, two = points[j, first:last], points[j + 1, first:last]
            p, q, s, t = 0.0, 0.0, 0.0, 0.0
            for r in range(last - first):
                p += part[r] * one[r]
                q += part[r] * two[r]
                s += pulled[r] * one[r]
                t += pulled[r] * two[r]
            out[0, j] += p
            out[0, j + 1] += q
            out[1, j] += s
            out[1, j + 1] += t


_sum_up = compile_kernel(_sum_up, _ANY_ORDER)


def _bend(points: Points, weights: Vector, ahead: Vector, constant: float, out: Vector) -> None:  # pragma: no cover
    """out = Σ weights · along · points for along = points·ahead + constant; then Σ weights · along, and Σ weights · along²."""
    widest_registers()
    columns, count = points.shape
    scratch = np.empty(_STRETCH)
    out[:] = 0.0
    for first in range(0, count, _STRETCH):
        last = min(first + _STRETCH, count)
        along, part = scratch[: last - first], weights[first:last]
        along[:] = constant
        for j in range(0, columns, TOGETHER):
            one, two = points[j, first:last], points[j + 1, first:last]
            three, four = points[j + 2, first:last], points[j + 3, first:last]
            p, q, s, t = ahead[j], ahead[j + 1], ahead[j + 2], ahead[j + 3]
            for r in range(last - first):
                along[r] += p * one[r] + q * two[r] + s * three[r] + t * four[r]
        p, q = 0.0, 0.0
        for r in range(last - first):
            moved = along[r] * part[r]
            q += moved * along[r]
            p += moved
            along[r] = moved
        out[columns] += p
        out[columns + 1] += q
        for j in range(0, columns, TOGETHER):
            one, two = points[j, first:last], points[j + 1, first:last]
            three, four = points[j + 2, first:last], points[j + 3, first:last]
            p, q, s, t = 0.0, 0.0, 0.0, 0.0
            for r in range(last - first):
                p += along[r] * one[r]
                q += along[r] * two[r]
                s += along[r] * three[r]
                t += along[r] * four[r]
            out[j] += p
            out[j + 1] += q
            out[j + 2] += s
            out[j + 3] += t


_bend = compile_kernel(_bend, _ANY_ORDER)


def _dot(a: Vector, b: Vector) -> float:  # pragma: no cover
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


_dot = compile_kernel(_dot, _ANY_ORDER)


@compile_kernel
def _multiply(matrix: Matrix, vector: Vector, out: Vector) -> None:  # pragma: no cover
    for j in range(len(out)):
        out[j] = _dot(matrix[j], vector)


@compile_kernel
def _solve(
    points: Points, weights: Vector, middle: Vector, rest: Vector, inverse: Matrix, ridge: float, found: Vector
) -> None:  # pragma: no cover
    """found = (A + κI)⁻¹ rest by conjugate gradients, preconditioned by the moments' inverse; `rest` becomes the residual."""
    n, wide = len(rest), len(points)
    ahead, turned, bent = np.zeros(wide), np.empty(n), np.empty(wide + 2)
    found[:] = 0.0
    before = 1.0
    for _ in range(STEPS):
        _multiply(inverse, rest, turned)
        size = _dot(rest, turned)
        for j in range(n):
            ahead[j] = turned[j] + size / max(before, 1e-300) * ahead[j]
        _bend(points, weights, ahead, -_dot(middle, ahead), bent)
        curvature = bent[wide + 1] + ridge * _dot(ahead, ahead)
        length = size / max(curvature, 1e-300)
        for j in range(n):
            found[j] += length * ahead[j]
            rest[j] -= length * (bent[j] - bent[wide] * middle[j] + ridge * ahead[j])
        before = size


def _weigh(local: Vector, everyone: Vector, unraked: Matrix) -> float:  # pragma: no cover
    """Multiply the weights by `everyone`, those of equally weighted rows; returns the share of effective rows, 0 where no point is near."""
    total, square = 0.0, 0.0
    for r in range(len(local)):
        weight = local[r] * everyone[r]
        local[r] = weight
        total += weight * unraked[0, r]
        square += weight * weight * unraked[1, r]
    return total * total / (len(local) * square) if square > 0 else 0.0


_weigh = compile_kernel(_weigh, _ANY_ORDER)


@compile_kernel
def fit_planes(
    local: Matrix,
    queries: Matrix,
    points: Points,
    about: tuple[Vector, Vector, Matrix],  # of the points: residuals, weights for rows of equal weight, factors that undo raking
    alike: tuple[Vector, Vector, Vector],  # for rows of equal weight: slopes φ₀, mean μ, Σ (g/N)(r - r̄)(x - μ)
    constants: tuple[float, float, float],  # t₀, r̄, κ
    inverse: Matrix,
    found: tuple[Matrix, Matrix, Vector, Vector],
) -> None:  # pragma: no cover
    """For each row of `local`, weights of the points: fills slopes, centre, answer and the share of effective rows. `local` becomes s."""
    (residuals, everyone, unraked), (slopes0, mean, right0), (t0, level0, ridge) = about, alike, constants
    slopes, middles, answers, shares = found
    columns, wide = queries.shape[1], len(points)
    sums, right = np.empty((2, wide + 1)), np.empty(columns)
    for i in range(len(local)):
        share = _weigh(local[i], everyone, unraked)
        if share == 0.0:  # where no point is near, all have equal weight
            local[i, :] = 1.0
            share = _weigh(local[i], everyone, unraked)
        weights, middle = local[i], middles[i]
        _sum_up(points, weights, residuals, sums)
        total = sums[0, wide]
        weights /= total
        level = sums[1, wide] / total
        for j in range(columns):
            middle[j] = sums[0, j] / total
            right[j] = sums[1, j] / total - level * middle[j] - share * right0[j]
        _solve(points, weights, middle, right, inverse, ridge, slopes[i])
        answer = t0 + level - share * level0
        for j in range(columns):
            slopes[i, j] += slopes0[j]
            answer += (middle[j] - mean[j]) * slopes0[j] - (middle[j] - queries[i, j]) * slopes[i, j]
        answers[i], shares[i] = answer, share


def _pull(
    moved: Matrix, owner: Indices, weights: Vector, centre: Vector, offset: Vector, away: Vector, reference: Vector, added: Vector
) -> None:  # pragma: no cover
    """Adds the variances that points with these weights cause: of slopes to `reference`; of contributions, base and answer to `added`."""
    widest_registers()
    columns, count = moved.shape
    scratch = np.empty((3, _STRETCH))
    for first in range(0, count, _STRETCH):
        last = min(first + _STRETCH, count)
        size, part = last - first, weights[first:last]
        one, base, answer = scratch[:, :size]
        one[:], base[:], answer[:] = 0.0, 1.0, 1.0
        for j in range(columns):
            row, middle, towards, leaving, total = moved[j, first:last], centre[j], offset[j], away[j], 0.0
            for r in range(size):
                apart = row[r] - middle
                total += part[r] * apart * apart
                one[r] += towards * apart
                answer[r] -= leaving * apart
            reference[j] += total
            if j == columns - 1 or owner[j + 1] != owner[j]:
                total = 0.0
                for r in range(size):
                    total += part[r] * one[r] * one[r]
                    base[r] -= one[r]
                    one[r] = 0.0
                added[owner[j]] += total
        total, other = 0.0, 0.0
        for r in range(size):
            both = base[r] + answer[r] - 1.0
            total += part[r] * both * both
            other += part[r] * answer[r] * answer[r]
        added[len(added) - 2] += total
        added[len(added) - 1] += other


_pull = compile_kernel(_pull, _ANY_ORDER)


@compile_kernel
def _spread_noise(
    root: Matrix, counted: Vector, owner: Indices, offset: Vector, away: Vector, added: Vector
) -> None:  # pragma: no cover
    """Adds to `added` the variances of contributions, base and answer that noise of the slopes, with covariance WWᵀ, causes."""
    columns = len(offset)
    for t in range(root.shape[1]):
        one, all_of_them, answer = 0.0, 0.0, 0.0
        for j in range(columns):
            one += offset[j] * root[j, t]
            answer -= away[j] * root[j, t]
            if j == columns - 1 or owner[j + 1] != owner[j]:
                added[owner[j]] += counted[t] * one * one
                all_of_them += one
                one = 0.0
        added[len(added) - 2] += counted[t] * (answer - all_of_them) * (answer - all_of_them)
        added[len(added) - 1] += counted[t] * answer * answer


@compile_kernel
def _spread_change(
    change: Vector, usual: Vector, owner: Indices, offset: Vector, away: Vector, reference: Vector, added: Vector
) -> None:  # pragma: no cover
    """Adds what may be wrong about the change δ of the slopes: OWN (d·δ)² + Σ d²·usual; to slopes the first alone."""
    one, all_of_them, answer, own, every, last = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(len(change)):
        reference[j] += OWN * change[j] * change[j]
        one += offset[j] * change[j]
        own += offset[j] * offset[j] * usual[j]
        answer -= away[j] * change[j]
        last += away[j] * away[j] * usual[j]
        every += (away[j] + offset[j]) ** 2 * usual[j]
        if j == len(change) - 1 or owner[j + 1] != owner[j]:
            added[owner[j]] += OWN * one * one + own
            all_of_them += one
            one, own = 0.0, 0.0
    added[len(added) - 2] += OWN * (answer - all_of_them) * (answer - all_of_them) + every
    added[len(added) - 1] += OWN * answer * answer + last


@compile_kernel
def _spread_ratios(
    local: Vector, middle: Vector, variances: Vector, numbers: Indices, number_squares: Matrix, found: Vector
) -> None:  # pragma: no cover
    """ρ of each column; `number_squares` has one row a number."""
    for j in range(len(middle)):
        found[j] = middle[j]
    for k in range(len(numbers)):
        found[numbers[k]] = _dot(local, number_squares[k])
    for j in range(len(middle)):
        near = max(found[j] - middle[j] * middle[j], 1e-300)
        found[j] = np.sqrt(min(max(variances[j] / near, 1.0), NARROWEST))


@compile_kernel
def plane_variances(
    chosen: Indices,
    every: int,
    local: Matrix,
    planes: tuple[Matrix, Vector, Matrix, Vector, Matrix],  # middles, shares, queries, the average record, slopes
    about: tuple[Vector, Vector],  # of the points: weights g, squared residuals
    spread: tuple[Vector, Indices, Matrix],  # variances of columns, which of them are numbers, squares of these
    sources: Sources,
    constants: tuple[float, float, float, float],  # doubt, mean squared residual, variance of the level, `drawn` of the points
    changes: tuple[Vector, Vector, Vector, Vector],  # φ₀; w, u and v of what may be wrong about changes from it
    frame: tuple[Vector, Matrix, Indices],  # μ, the moments' inverse, each column's feature
    found: tuple[Matrix, Matrix, Matrix, Parts],
) -> None:  # pragma: no cover
    """Fills the variances (noise, reference, added, parts) of the chosen queries from every so many points."""
    (middles, shares, queries, average, slopes), (raked, squares), (moved, root, left, diagonals, traces) = planes, about, sources
    (doubt, mean_square, level, drawn), (variances, numbers, number_squares) = constants, spread
    (slopes0, weighed, usual, unseen), (mean, inverse, owner) = changes, frame
    noise, reference, added, parts = found
    count, few, columns = local.shape[1], moved.shape[1], len(mean)
    weights, narrow, scratch = np.empty(few), np.empty(columns), np.empty((7, columns))
    centre, offset, away, counted, towards, leaving, change = scratch
    for i in chosen:
        share, middle = shares[i], middles[i]
        seen, limit = share * count / (share * count + POOLED), LIMIT / share
        _spread_ratios(local[i], middle, variances, numbers, number_squares, narrow)
        factor = doubt / np.sqrt(share) / few
        for k in range(few):
            pull = min(max(count * local[i, k * every] - share * raked[k * every], -limit), limit)
            weights[k] = pull * pull * (seen * squares[k * every] + (1 - seen) * mean_square) * factor
        kept = min(1.0, KEPT * share)
        kept *= kept
        offset[:], away[:] = queries[i] - average, middle - queries[i]
        for j in range(columns):
            towards[j], leaving[j] = narrow[j] * offset[j], narrow[j] * away[j]
            counted[j] = kept + (1 - kept) * left[j] * left[j]
            noise[i, j] = kept * diagonals[0, j] + (1 - kept) * diagonals[1, j]
            centre[j] = 0.0
            for t in range(columns):
                centre[j] += inverse[j, t] * (middle[t] - mean[t])
        reference[i, :], added[i, :] = 0.0, 0.0
        _pull(moved, owner, weights, centre, towards, leaving, reference[i], added[i])
        reference[i] *= narrow * narrow
        pulled, from_drawing = np.mean(reference[i]), min(drawn * np.sqrt(share), 1.0)
        _spread_noise(root, counted, owner, offset, away, added[i])
        change[:] = slopes[i] - slopes0
        changed = (_dot(weighed, change * change) * usual + (1 - share) * unseen) / share**NEARER
        noise[i] += changed
        _spread_change(change, changed, owner, offset, away, reference[i], added[i])
        added[i, added.shape[1] - 2 :] += level
        parts[i, COMMON, :BIAS] = kept * traces[0] + (1 - kept) * traces[1]
        parts[i, COMMON, BIAS], parts[i, APART, SAMPLING] = np.mean(changed), from_drawing * pulled
        parts[i, APART, BIAS] = (1 - from_drawing) * pulled + OWN * np.mean(change * change)


@compile_kernel
def finish_planes(
    offsets: Matrix,
    average_error: float,
    owner: Indices,
    alone: Flags,  # which features have one column
    fitted: tuple[Matrix, Vector],  # slopes and answers
    variances: tuple[Matrix, Matrix, Matrix],  # noise, reference, added: they become standard errors
    added: Matrix,
    numbers: Matrix,
) -> None:  # pragma: no cover
    """Contributions, base and standard errors; `numbers` has base, root mean squares of noise and of reference, one row each.

    `noise` and `added` become standard errors; `reference` becomes that of both together.
    """
    (slopes, answers), (noise, reference, rest) = fitted, variances
    columns, features = slopes.shape[1], added.shape[1]
    for i in range(len(slopes)):
        added[i, :], base, shifted = 0.0, answers[i], 0.0
        noises, references = 0.0, 0.0
        for j in range(columns):
            part = slopes[i, j] * offsets[i, j]
            doubt = noise[i, j] + reference[i, j] if alone[owner[j]] else 0.0
            shift = average_error * average_error * (slopes[i, j] * slopes[i, j] + doubt)
            added[i, owner[j]] += part
            rest[i, owner[j]] += shift
            base -= part
            shifted += shift
            noises += noise[i, j]
            references += reference[i, j]
            reference[i, j] = np.sqrt(noise[i, j] + reference[i, j])
            noise[i, j] = np.sqrt(noise[i, j])
        rest[i, features] += shifted
        for a in range(features + 2):
            rest[i, a] = np.sqrt(rest[i, a])
        numbers[0, i], numbers[1, i], numbers[2, i] = base, np.sqrt(noises / columns), np.sqrt(references / columns)
