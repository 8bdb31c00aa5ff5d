"""The paper's non-interactive phase for several histories about the same points: they differ in their answers alone, so that each query is solved once.

Algorithm 4 weighs the points of past queries around the new one, and takes for labels what past planes answer at their own points. It is
`dpx.NonInteractive(history, "labels")`, with the planes through 0 and inside the ball of radius 1 that the paper has.
"""

from __future__ import annotations

import numpy as np

from dpexplain import weights
from experiments.paper._exact import optima


class LabelsOfHistories:
    """`answers(point)` by each history, one a row."""

    def __init__(self, histories):
        self.points = np.array([one.point for one in next(iter(histories))])
        self.labels = np.array([[one.values @ one.point for one in history] for history in histories])
        self.weight = weights.Stable()

    def answers(self, point):
        offsets = self.points - point
        heavy = self.weight(np.linalg.norm(offsets, axis=1))
        return optima((offsets * heavy[:, None]).T @ offsets, (self.labels * heavy) @ offsets)
