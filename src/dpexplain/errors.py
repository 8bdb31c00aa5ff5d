"""Everything dpexplain raises, in one tree. Each message says what is wrong and what to do about it.

    DpexplainError
    ├── InputError (also a ValueError): what you passed cannot be used; nothing was spent
    │   ├── ParameterError: ε, δ, steps, radius, weights, …
    │   ├── DomainError: the public description of the features
    │   │   └── Undeclared: a model or a schema does not say everything that a domain needs
    │   ├── DataError: the private rows, their labels or the model, found when the owner registers them
    │   ├── QueryError: the record to be explained
    │   └── RequestIdInUse: a request id that stands for another question
    ├── ReservationExceeded: a plan asked for more than was reserved for it; refused before the noise was drawn
    ├── BudgetExhausted: the answer would pass the budget; nothing was spent
    │   └── PaperBudgetExhausted: the paper's own stopping rule ended a stream of queries (reproduction only)
    ├── NotPrivateError: something for offline reproduction was used where privacy is promised
    ├── IntegrityError: stored bytes are not what was written
    │   ├── LedgerCorrupt
    │   └── ReleaseCorrupt
    ├── RowsUnavailable: private rows on disk or on a cluster cannot be read, or are no longer those registered; nothing was released
    ├── LedgerMismatch: a ledger was opened with parameters that differ from those it was made with
    ├── LedgerUnavailable: the ledger could not be read or written; nothing was released
    │   ├── LedgerBusy: other writers held it for too long
    │   └── LedgerMissing: there is no ledger, or no account in it, where one must be
    └── ServiceError: a service refused a request or did not answer

No message quotes a private row. Messages about queries may quote the query, which is public.
"""

from __future__ import annotations

from typing import Any


class DpexplainError(Exception):
    """The root: catch this to catch everything dpexplain raises on purpose."""


class InputError(DpexplainError, ValueError):
    """What was passed cannot be used."""


class ParameterError(InputError):
    """A number or an option has a value that is not allowed."""


class DomainError(InputError):
    """The public description of the features is inconsistent."""


class Undeclared(DomainError):
    """A model or a schema does not contain everything that a domain needs; `draft` holds what it contains and what is missing."""

    def __init__(self, message: str, *, draft: Any) -> None:
        super().__init__(message)
        self.draft = draft


class DataError(InputError):
    """The private data cannot be registered. The message is for their owner, and never quotes a row."""


class QueryError(InputError):
    """The record to be explained does not fit the domain."""


class RequestIdInUse(InputError):
    """A request id was used for another question before: choose a new id for a new question."""


class ReservationExceeded(DpexplainError):
    """A plan asked its door for more than was reserved for it. Raised before the extra noise is drawn: a bug in the plan, not in its use."""


class BudgetExhausted(DpexplainError):
    """Refused before a row was read: the answer would cost more than is left.

    `requested` and `remaining` are Guarantee objects, so a caller can show or log both.
    """

    def __init__(self, message: str, *, requested: Any, remaining: Any) -> None:
        super().__init__(message)
        self.requested = requested
        self.remaining = remaining


class PaperBudgetExhausted(BudgetExhausted):
    """Algorithm 2's own test ended a stream of queries (`stop_at=`, for reproduction only): the answer that it ended at is not reported.

    `spent` is {"epsilon": …, "delta": …} by the paper's bookkeeping, that answer included; `requested` and `remaining` are by exact accounting, and
    what was `requested` is spent.
    """

    def __init__(self, message: str, *, requested: Any, remaining: Any, spent: dict[str, float]) -> None:
        super().__init__(message, requested=requested, remaining=remaining)
        self.spent = spent


class NotPrivateError(DpexplainError):
    """A reproduction-only setting was used where a privacy promise is made."""


class IntegrityError(DpexplainError):
    """Stored bytes are damaged, foreign or were changed."""


class LedgerCorrupt(IntegrityError):
    """The ledger's entries do not form the chain that was written."""


class ReleaseCorrupt(IntegrityError):
    """The release file is damaged or is not a release."""


class RowsUnavailable(DpexplainError):
    """Private rows that are not in this process's memory could not be read, or have changed. The message has nothing of their content."""


class LedgerMismatch(DpexplainError):
    """The ledger belongs to other data, another domain or another budget."""


class LedgerUnavailable(DpexplainError):
    """The ledger could not be reached, read or written."""


class LedgerBusy(LedgerUnavailable):
    """The ledger's write lock was not free in time; nothing was written."""


class LedgerMissing(LedgerUnavailable):
    """The ledger or account is missing, and it may not be created again: that would forget what was spent."""


class ServiceError(DpexplainError):
    """A service refused a request or did not answer. `status` is the HTTP status, `problem` the whole RFC 9457 document."""

    def __init__(self, message: str, *, status: int, problem: dict[str, Any]) -> None:
        super().__init__(message)
        self.status, self.problem = status, problem


class WeakBudget(UserWarning):
    """A budget that promises little to the people in the data: a very large ε, or a δ above one over the row count."""


class UnaskedModel(UserWarning):
    """A registered model cannot answer about synthetic records, so that what it could have improved at no cost is left as it is."""
