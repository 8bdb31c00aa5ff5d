"""Random forests on many rows of few small numbers: the answers about the training rows, tree after tree, in seconds instead of minutes.

A row is sixteen bytes: up to ten codes, how often the tree's bootstrap sample has it, its label and its number. Rows of a node lie together, and all
rows go down the tree while it grows, those outside the sample too, so a leaf answers them and no tree is kept. Splits are those of scikit-learn's
trees (Gini, thresholds halfway between values, a random √k of the k encoded columns at each node): `tests/unit/test_paper_forest.py` compares them.
"""

from __future__ import annotations

from pathlib import Path
from time import process_time

import numpy as np

import dpexplain as dpx
from dpexplain.progress import with_bar
from experiments.paper._cells import compiled

MOST_CODES, DRAWN, LABEL, NUMBER, RECORD = 10, 10, 11, 12, 16  # where things are in a row's bytes
VALUES = 256  # of a code
ORDERED = -1  # a column that is split by a threshold; others are one value against all
STORE_EVERY = 25


def encode_rows(frame, domain):
    """(codes, columns): small numbers in the order of the features' values, and each encoded column as (feature, value or ORDERED)."""
    codes, columns = [], []
    for number, feature in enumerate(domain.features):
        values = frame[feature.name].to_numpy()
        if isinstance(feature, dpx.Categorical):
            codes.append(np.searchsorted(np.sort(feature.values), values))
            columns += [(number, value) for value in range(len(feature.values))]
        else:
            codes.append(order_values(values))
            columns.append((number, ORDERED))
    if len(codes) > MOST_CODES or max(map(np.max, codes)) >= VALUES:
        raise ValueError(f"at most {MOST_CODES} features of at most {VALUES} values")
    return np.stack(codes, axis=1).astype(np.uint8), np.array(columns, dtype=np.int64)


def order_values(values):
    """Whole numbers from 0 on as they are, if they are few; ranks of other values, in steps of equal size where there are too many."""
    whole = np.issubdtype(values.dtype, np.integer)
    if whole and values.max() - values.min() < VALUES:
        return values - values.min()
    different, ranks = np.unique(values, return_inverse=True)
    return ranks if len(different) <= VALUES else ranks * VALUES // len(different)


class Forest:
    """Votes of trees about their training rows so far; `grow` adds trees, and what is stored goes on where it stopped."""

    def __init__(self, codes, columns, truth, depth, seed, tries=None):
        self.codes, self.columns, self.truth = codes, columns, np.asarray(truth, dtype=np.uint8)
        self.depth, self.seed, self.tries = depth, seed, tries or max(1, int(np.sqrt(len(columns))))
        self.trees, self.votes, self.kept = 0, np.zeros(len(codes), np.float32), {}
        self.seconds = self.stored_seconds = 0.0  # of processor time, in all and in runs before this one

    def grow(self, trees, stored: Path | None = None, keep=()):
        """Answers by so many trees. `keep`: numbers of trees whose answers are kept on the way."""
        if stored is not None and stored.exists():
            self._load(stored)
        for number in with_bar(range(self.trees, trees), f"forest of depth {self.depth}"):
            start = process_time()
            self.votes += self.tree(number)
            self.seconds += process_time() - start
            self.trees = number + 1
            if self.trees in keep:
                self.kept[self.trees] = self.answers
            if stored is not None and (self.trees % STORE_EVERY == 0 or self.trees == trees):
                self._store(stored)
        return self.answers

    @property
    def answers(self):
        return self.votes > self.trees / 2

    def tree(self, number):
        """What one tree says about each row: the share of its sample in the row's leaf that is labelled 1."""
        rng = np.random.default_rng([self.seed, self.depth, number])
        size = len(self.codes)
        records = np.zeros((size, RECORD), np.uint8)
        records[:, : self.codes.shape[1]] = self.codes
        records[:, DRAWN] = np.bincount(rng.integers(0, size, size), minlength=size)
        records[:, LABEL] = self.truth
        records[:, NUMBER:] = np.arange(size, dtype=np.uint32).view(np.uint8).reshape(-1, 4)
        said = np.empty(size, np.float32)
        _grow(records, self.columns, self.depth, self.tries, int(rng.integers(2**31)), said)
        return said

    def _store(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = {f"kept {count}": np.packbits(each) for count, each in self.kept.items()}
        unfinished = path.with_suffix(".unfinished.npz")
        np.savez(unfinished, trees=self.trees, votes=self.votes, seconds=self.seconds, **kept)
        unfinished.replace(path)

    def _load(self, path):
        with np.load(path) as found:
            self.trees, self.votes = int(found["trees"]), found["votes"]
            self.seconds = self.stored_seconds = float(found["seconds"])
            names = [name for name in found.files if name.startswith("kept ")]
            self.kept = {int(name[5:]): np.unpackbits(found[name], count=len(self.codes)).astype(bool) for name in names}


@compiled
def _grow(records, columns, depth, tries, seed, said):  # pragma: no cover
    """One tree, node after node; a node is a run of rows."""
    np.random.seed(seed)  # noqa: NPY002 - compiled code has no other generator
    starts, ends, depths = [0], [len(records)], [0]
    order, counts, ones = np.arange(len(columns)), np.zeros((MOST_CODES, VALUES)), np.zeros((MOST_CODES, VALUES))
    sizes = np.array([int(records[:, k].max()) + 1 for k in range(MOST_CODES)])
    while len(starts) > 0:
        start, end, level = starts.pop(), ends.pop(), depths.pop()
        rows, total, positive = 0, 0.0, 0.0
        for i in range(start, end):
            drawn = records[i, DRAWN]
            rows += drawn > 0
            total += drawn
            positive += drawn * records[i, LABEL]
        feature, value, threshold = -1, ORDERED, 0.0
        if level < depth and rows > 1 and 0 < positive < total:
            feature, value, threshold = _best_split(records[start:end], columns, sizes, order, tries, counts, ones)
        if feature < 0:
            share = np.float32(positive / total)
            for i in range(start, end):
                number = records[i, NUMBER] + 256 * (
                    records[i, NUMBER + 1] + 256 * (records[i, NUMBER + 2] + 256 * np.int64(records[i, NUMBER + 3]))
                )
                said[number] = share
            continue
        middle = start + _part(records[start:end], feature, value, threshold)
        starts += [start, middle]
        ends += [middle, end]
        depths += [level + 1, level + 1]


@compiled
def _best_split(rows, columns, sizes, order, tries, counts, ones):  # pragma: no cover
    """(feature, value, threshold) of the least Gini impurity among random columns: so many, and more while none of them varies. Feature -1: none does."""
    counted, total, positive = np.zeros(MOST_CODES, np.bool_), 0.0, 0.0
    for i in range(len(rows)):
        total += rows[i, DRAWN]
        positive += rows[i, DRAWN] * rows[i, LABEL]
    best, feature, value, threshold, varied = -1.0, -1, ORDERED, 0.0, False
    for tried in range(len(order)):
        if tried >= tries and varied:
            break
        other = tried + int(np.random.random() * (len(order) - tried))  # noqa: NPY002
        order[tried], order[other] = order[other], order[tried]
        f, v = columns[order[tried]]
        if not counted[f]:
            counted[f] = True
            counts[f, : sizes[f]] = 0.0
            ones[f, : sizes[f]] = 0.0
            for i in range(len(rows)):
                drawn = rows[i, DRAWN]
                counts[f, rows[i, f]] += drawn
                ones[f, rows[i, f]] += drawn * rows[i, LABEL]
        if v != ORDERED:
            left, left_ones = counts[f, v], ones[f, v]
            if left == 0 or left == total:
                continue
            varied = True
            gain = _purity(left, left_ones, total, positive)
            if gain > best:
                best, feature, value = gain, f, v
            continue
        left, left_ones, last = 0.0, 0.0, -1
        for code in range(sizes[f]):
            if counts[f, code] == 0:
                continue
            if last >= 0:
                varied = True
                gain = _purity(left, left_ones, total, positive)
                if gain > best:
                    best, feature, value, threshold = gain, f, ORDERED, (last + code) / 2
            left += counts[f, code]
            left_ones += ones[f, code]
            last = code
    return feature, value, threshold


@compiled
def _purity(left, left_ones, total, positive):  # pragma: no cover
    """Σ over sides and labels of count² over the side's size: the larger, the smaller the Gini impurity."""
    right, right_ones = total - left, positive - left_ones
    return (left_ones**2 + (left - left_ones) ** 2) / left + (right_ones**2 + (right - right_ones) ** 2) / right


@compiled
def _part(rows, feature, value, threshold):  # pragma: no cover
    """Rows that go left come first; how many."""
    low, high = 0, len(rows) - 1
    while True:
        while low <= high and _goes_left(rows[low, feature], value, threshold):
            low += 1
        while low <= high and not _goes_left(rows[high, feature], value, threshold):
            high -= 1
        if low >= high:
            return low
        for k in range(RECORD):
            rows[low, k], rows[high, k] = rows[high, k], rows[low, k]


@compiled
def _goes_left(code, value, threshold):  # pragma: no cover
    return code != value if value != ORDERED else code <= threshold
