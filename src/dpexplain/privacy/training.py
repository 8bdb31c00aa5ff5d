"""What explanations reveal about the model's *training* data (SPEC §8): a separate guarantee from that about explanation data.

Four statements (`proofs/training.md`):

    Amplified       an (ε̂, δ̂)-DP model stays (ε̂, γδ̂)-DP through its explanations, γ = 2Φ((k + ηc)/(ησ)) - 1 at the last noisy step;
    Post-processed  the model's own (ε̂, δ̂), whatever was computed from it;
    Unconditional   for any model, DP or not: 4m̄μ-GDP, because retraining may change every label of at most 2m̄ rows;
    Combined        for a person whose records are in the training set and in the explanation data as well.

For realistic sizes γ rounds to 1 in float64, so log10(1 - γ) is stored and reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, expm1, isfinite, log
from typing import Any

import scipy

from dpexplain.arguments import quote
from dpexplain.errors import ParameterError
from dpexplain.privacy import gdp
from dpexplain.privacy.budget import Guarantee, round_up

_NOTHING = -3.0  # log10(1 - γ) below which amplification is negligible
_UP = 1 + 1e-12


@dataclass(frozen=True, slots=True)
class LastStep:
    """The last noisy step of an explanation: φ ← Proj(φ - η(∇L + N(0, σ²I))), ‖φ‖ ≤ k and ‖∇L‖ ≤ c.

    `sigma` is the noise on the mean gradient, the smallest over columns where it is shaped. `last_step` and `sigma` of an answer's details are these.
    """

    step: float
    sigma: float
    radius: float = 1.0
    c: float = 1.0

    def __post_init__(self) -> None:
        for name in ("step", "sigma", "radius", "c"):
            value = getattr(self, name)
            if not (isfinite(value) and value > 0):
                raise ParameterError(f"{name} must be positive and finite, got {quote(value)}. Take it from the answer's details")

    @property
    def log_gap(self) -> float:
        """ln(1 - γ) = ln 2Φ(-(k + ηc)/(ησ)), accurate where 1 - γ is far below float64's smallest number."""
        reach = (self.radius + self.step * self.c) / (self.step * self.sigma)
        return log(2) + float(scipy.special.log_ndtr(-reach))


@dataclass(frozen=True, slots=True)
class AmplifiedGuarantee:
    """(ε̂, γ_h δ̂)-DP for the training set of an (ε̂, δ̂)-DP model, after h explanations: γ_h = 1 - (1 - γ)^h."""

    model_epsilon: float
    model_delta: float
    last: LastStep
    explanations: int = 1

    def __post_init__(self) -> None:
        _require_model(self.model_epsilon, self.model_delta)
        if self.explanations < 1:
            raise ParameterError(f"explanations must be at least 1, got {quote(self.explanations)}")

    @property
    def epsilon(self) -> float:
        return self.model_epsilon

    @property
    def log10_gap(self) -> float:
        """log10(1 - γ_h) = h·log10(1 - γ): 0 is perfect amplification, very negative is none."""
        return self.explanations * self.last.log_gap / log(10)

    @property
    def gamma(self) -> float:
        """γ_h in float64; 1.0 where it rounds to 1."""
        return min(-expm1(self.explanations * self.last.log_gap) * _UP, 1.0)

    @property
    def delta(self) -> float:
        return min(self.gamma * self.model_delta, self.model_delta)

    @property
    def worthless(self) -> bool:
        return self.log10_gap < _NOTHING

    def __str__(self) -> str:
        many = "This explanation is" if self.explanations == 1 else f"{self.explanations} explanations together are"
        claim = f"{many} (ε={self.epsilon:g}, δ={round_up(self.delta)})-differentially private for the model's training data"
        gap = f"1 - γ = 10^{self.log10_gap:.3g}"
        if self.worthless:
            return f"{claim}, which is the model's own guarantee: explanations take nothing from it, and amplify it by nothing ({gap})."
        return f"{claim}: the model's own δ={self.model_delta:g} times γ={self.gamma:.6g} ({gap})."

    def to_dict(self) -> dict[str, Any]:
        stated = {"epsilon": self.epsilon, "delta": self.delta, "gamma": self.gamma, "log10_gap": self.log10_gap}
        return {"kind": "amplified", **stated, "explanations": self.explanations, "statement": str(self)}


@dataclass(frozen=True, slots=True)
class PostProcessedGuarantee:
    """(ε̂, δ̂)-DP for the training set of an (ε̂, δ̂)-DP model: explanations are computed from the model and do not weaken its guarantee."""

    model_epsilon: float
    model_delta: float

    def __post_init__(self) -> None:
        _require_model(self.model_epsilon, self.model_delta)

    @property
    def epsilon(self) -> float:
        return self.model_epsilon

    @property
    def delta(self) -> float:
        return self.model_delta

    def __str__(self) -> str:
        claim = f"(ε={self.epsilon:g}, δ={self.delta:g})-differentially private for the model's training data"
        return f"Explanations are {claim}, which is the model's own guarantee: they take nothing from it."

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "post-processed", "epsilon": self.epsilon, "delta": self.delta, "statement": str(self)}


@dataclass(frozen=True, slots=True)
class Unconditional:
    """4m̄μ-GDP for any training process: one training record may flip the labels of all rows, at most 2m̄, each moving a sum as two records would.

    It holds for noisy sums over rows only. Where the model's own answers were published (anchored explanations, starts from its plane,
    labelled reference data), it is refused: they depend on the training data without any noise.
    """

    explained: Guarantee  # about the explanation data, whatever was released
    rows: int  # public number of rows m̄

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise ParameterError(f"rows must be at least 1, got {quote(self.rows)}. Pass the public size of the explanation data")
        if self.explained.model_answers:
            raise ParameterError(
                "the model's own answers were published (anchored explanations, starts from its plane, labelled reference data): without a model "
                "that was trained with differential privacy nothing can be promised about its training data. Pass model_epsilon= if it was"
            )

    @property
    def mu(self) -> float:
        return 4 * self.rows * self.explained.mu

    @property
    def delta(self) -> float:
        return self.explained.delta

    @property
    def epsilon(self) -> float:
        return gdp.epsilon(self.mu, self.delta)

    @property
    def worthless(self) -> bool:
        """Whether the statement guarantees practically nothing."""
        return self.epsilon > 20

    def __str__(self) -> str:
        claim = (
            f"Whatever the model, explanations so far are (ε={round_up(self.epsilon)}, δ={self.delta:g})-differentially private"
        )
        claim += " for one record of its training data"
        return f"{claim}: a number too large to protect anyone." if self.worthless else f"{claim}."

    def to_dict(self) -> dict[str, Any]:
        stated = {"epsilon": self.epsilon, "delta": self.delta, "mu": self.mu}
        return {"kind": "unconditional", **stated, "statement": str(self)}


@dataclass(frozen=True, slots=True)
class CombinedGuarantee:
    """For a person in both sets: (ε̂ + ε, δ), the smallest δ of composition and of the two chains through one changed set."""

    training: PostProcessedGuarantee | AmplifiedGuarantee | Unconditional
    explained: Guarantee

    @property
    def epsilon(self) -> float:
        return (self.training.epsilon + self.explained.epsilon) * _UP

    @property
    def delta(self) -> float:
        own, other = self.explained.delta, self.training.delta
        chains = exp(min(self.training.epsilon, 700)) * own + other, own + exp(min(self.explained.epsilon, 700)) * other
        composed = [own + self.training.model_delta] if not isinstance(self.training, Unconditional) else []
        return min(*chains, *composed, 1.0)

    def __str__(self) -> str:
        people = "a person whose records are both in the training data and in the explanation data"
        return f"For {people}: (ε={round_up(self.epsilon)}, δ={round_up(self.delta)})-differential privacy in total."

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "combined", "epsilon": self.epsilon, "delta": self.delta, "statement": str(self)}


def guarantee(
    explained: Guarantee,
    rows: int,
    *,
    model_epsilon: float | None = None,
    model_delta: float = 0.0,
    last: LastStep | None = None,
    explanations: int = 1,
) -> PostProcessedGuarantee | AmplifiedGuarantee | Unconditional:
    """The best available statement about training data: the one with the smaller ε.

    `explained` is what was spent on the explanation data (`data.spent`), `rows` their public size. Pass the model's own (ε̂, δ̂) if it was
    trained with differential privacy, and the last noisy step of an explanation.
    """
    if model_epsilon is None:
        return Unconditional(explained, rows)
    from_model: PostProcessedGuarantee | AmplifiedGuarantee = PostProcessedGuarantee(model_epsilon, model_delta)
    if last is not None and not explained.model_answers:
        from_model = AmplifiedGuarantee(model_epsilon, model_delta, last, explanations)
    if explained.model_answers:
        return from_model
    always = Unconditional(explained, rows)
    return from_model if from_model.epsilon <= always.epsilon else always


def _require_model(epsilon: float, delta: float) -> None:
    if not (isfinite(epsilon) and epsilon >= 0 and 0 <= delta < 1):
        raise ParameterError("the model's guarantee needs epsilon ≥ 0 and 0 ≤ delta < 1. Ask whoever trained it")
