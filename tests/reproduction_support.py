"""Made-up people, reviews and faces: a few hundred of each, so that the paper's experiments run in a second."""

from __future__ import annotations

import numpy as np
import pandas as pd
from experiments.datasets import BlackBox, Labelled
from experiments.face_data import Faces
from experiments.paper._study import Inputs, Reviews
from sklearn.tree import DecisionTreeClassifier

import dpexplain as dpx

PEOPLE, TEXTS, FACES = 600, 240, 90
WORDS = [f"w{i}" for i in range(12)]


class MadeUp(Inputs):
    """The data sets in miniature; files are not asked for."""

    def __init__(self, output):
        rng = np.random.default_rng(5)
        super().__init__(output, output, seeds=2)
        self.acs, self.reviews, self.faces = people(rng), reviews(rng), faces(rng)
        self.face_model = lambda images: np.where(images[:, 4:, :].mean(axis=(1, 2)) > 127, 1.0, -1.0)

    def require(self, study):
        pass


def people(rng):
    domain = dpx.Domain([dpx.Numeric("AGEP", 0, 1), dpx.Numeric("WKHP", 0, 1), dpx.Categorical("RAC1P", values=[1, 2, 3, 4, 5])])
    frame = pd.DataFrame({"AGEP": rng.random(PEOPLE), "WKHP": rng.random(PEOPLE), "RAC1P": rng.integers(1, 6, PEOPLE)})
    frame["PINCP"] = frame.AGEP + rng.normal(0, 0.2, PEOPLE) > 0.5
    encoded = domain.encode(frame)
    model = BlackBox(DecisionTreeClassifier(max_depth=3, random_state=0).fit(encoded, frame.PINCP), domain)
    return Labelled("made up", domain, frame, encoded, model.vectors(encoded), model)


def reviews(rng):
    has = rng.random((TEXTS, len(WORDS))) < 0.6
    texts = [" ".join(np.array(WORDS)[row]) or WORDS[0] for row in has]
    return Reviews(dpx.TextDomain(WORDS), texts, np.where(has[:, 0] ^ (has[:, 1] & has[:, 2]), 1.0, -1.0), paper_rows=10 * TEXTS)


def faces(rng):
    images = rng.integers(0, 256, (FACES, 12, 12), dtype=np.uint8)
    happy = images[:, 6:, :].mean(axis=(1, 2)) > 127
    return Faces(images[20:], happy[20:], images[:20], happy[:20])
