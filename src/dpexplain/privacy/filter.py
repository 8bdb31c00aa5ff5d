"""The GDP filter: admits adaptive spending as long as the sum of μ² stays within the budget's μ².

Gaussian releases may be chosen one after another from earlier *outputs*, sensitivities and noise included, and the whole
transcript is μ_B-GDP as long as every step is admitted by this filter (Smith & Thakurta 2022, arXiv 2210.17520; see
`proofs/filter.md`). General f-DP or PLD curves have no such filter, so none is offered.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpexplain.errors import BudgetExhausted
from dpexplain.privacy.budget import Budget, Guarantee, round_down, round_up
from dpexplain.privacy.events import PrivacyEvent, price
from dpexplain.privacy.relation import Neighbours


@dataclass(frozen=True, slots=True)
class Filter:
    """What has been spent of a budget. Immutable: spending returns the next filter, a refusal leaves this one as it was.

    `uses` is what guarantees have to mention beside the price, such as noise from a seed, as a ledger stores it.
    """

    budget: Budget
    neighbours: Neighbours
    spent_quanta: int = 0
    uses: tuple[str, ...] = ()

    @property
    def spent(self) -> Guarantee:
        return Guarantee.of_quanta(self.spent_quanta, self.budget.delta, self.neighbours).qualify(self.uses)

    @property
    def remaining(self) -> Guarantee:
        left = max(self.budget.quanta - self.spent_quanta, 0)
        return Guarantee.of_quanta(left, self.budget.delta, self.neighbours, subject="What may still be released")

    def spend(self, events: tuple[PrivacyEvent, ...]) -> Filter:
        """The filter after these events, or BudgetExhausted with nothing changed."""
        return self.spend_quanta(price(events))

    def spend_quanta(self, quanta: int) -> Filter:
        return replace(self, spent_quanta=self.total_with(quanta))

    def total_with(self, quanta: int) -> int:
        """What will be spent in all once this is paid, or BudgetExhausted."""
        if not self.fits(quanta):
            raise self.refusal(quanta)
        return self.spent_quanta + quanta

    def fits(self, quanta: int) -> bool:
        """Whether this can be paid."""
        return quanta >= 0 and self.spent_quanta + quanta <= self.budget.quanta

    def refusal(self, quanta: int, name: str = "the budget") -> BudgetExhausted:
        """The error with what was asked, what is left of `name`, and the remedy."""
        asked = Guarantee.of_quanta(max(quanta, 0), self.budget.delta, self.neighbours, subject="This answer")
        left = self.remaining
        # Quanta are rounded down, so a budget of which nothing was spent would be shown as a little less than it is.
        shown = round_down(left.epsilon) if self.spent_quanta else f"{self.budget.epsilon:g}"
        return BudgetExhausted(
            f"{name} (ε={self.budget.epsilon:g}, δ={self.budget.delta:g}) cannot pay for this answer: by itself it costs "
            f"ε={round_up(asked.epsilon)}, and ε={shown} is left. Nothing was spent. Ask for a cheaper answer "
            "(a smaller epsilon for each query), or use what was released already, which is free. What is left is not the difference of "
            f"two ε, because losses add as squares: of μ²={self.budget.mu**2:.4g}, {left.mu**2:.4g} is left and {asked.mu**2:.4g} is asked.",
            requested=asked,
            remaining=left,
        )
