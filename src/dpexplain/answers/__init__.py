"""Results: explanations, contributions, and batches of both. They never hold rows.

explanation.py      slopes at one record                   explanation_batch.py    many explanations
contributions.py    what each value adds to the answer     contributions_batch.py  contributions of many records
changes.py          what would change the answer           shared_effects.py       features that share their effects
expectation.py      the error to expect without error bars paid.py                 batches that a budget may end
stored.py, past.py  answers as a ledger stores them        json_text.py            answers as JSON text
baseline.py         what contributions are compared with
"""
