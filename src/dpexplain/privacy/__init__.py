"""Privacy accounting: what is protected, what a release costs, and what may still be spent.

relation.py       who is protected: which data sets are neighbours   events.py           what was released, with which noise
gdp.py            Gaussian differential privacy and (ε, δ)           filter.py           admits spending within a budget
budget.py         budgets and guarantees                             person_guarantees.py  guarantees by where a person's records are
training.py       what explanations reveal about training data       model_card.py       how private the model's training was
expected_quality.py  what accuracy to expect of a budget             paper.py            the paper's own formulas
"""
