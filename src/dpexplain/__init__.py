"""dpexplain: explain black-box models to anyone without exposing anyone in the data."""

from dpexplain import privacy as privacy
from dpexplain.answers.contributions import Contributions as Contributions
from dpexplain.answers.explanation import Explanation as Explanation
from dpexplain.core import weights as weights
from dpexplain.core.answer_scale import AnswerScale as AnswerScale
from dpexplain.data import PrivateData as PrivateData
from dpexplain.domain import Binary as Binary
from dpexplain.domain import Categorical as Categorical
from dpexplain.domain import Date as Date
from dpexplain.domain import Datetime as Datetime
from dpexplain.domain import Domain as Domain
from dpexplain.domain import ImageDomain as ImageDomain
from dpexplain.domain import Numeric as Numeric
from dpexplain.domain import Ordinal as Ordinal
from dpexplain.domain import TextDomain as TextDomain
from dpexplain.errors import BudgetExhausted as BudgetExhausted
from dpexplain.errors import DpexplainError as DpexplainError
from dpexplain.explainer import Explainer as Explainer
from dpexplain.mechanisms.registry import Adaptive as Adaptive
from dpexplain.mechanisms.registry import Basic as Basic
from dpexplain.mechanisms.registry import Enhanced as Enhanced
from dpexplain.mechanisms.registry import Influence as Influence
from dpexplain.mechanisms.registry import Shapley as Shapley
from dpexplain.noninteractive import NonInteractive as NonInteractive
from dpexplain.onboarding.checks import check as check
from dpexplain.onboarding.discovery import count_misfits as count_misfits
from dpexplain.onboarding.discovery import discover as discover
from dpexplain.onboarding.model_release import release_model as release_model
from dpexplain.privacy.budget import Budget as Budget
from dpexplain.privacy.budget import Guarantee as Guarantee
from dpexplain.privacy.model_card import ModelCard as ModelCard
from dpexplain.release.making import release as release
from dpexplain.release.release import Release as Release
from dpexplain.release.release import load as load
from dpexplain.service.client import Client as Client
from dpexplain.version import __version__ as __version__

__all__ = [
    "Adaptive",
    "AnswerScale",
    "Basic",
    "Binary",
    "Budget",
    "BudgetExhausted",
    "Categorical",
    "Client",
    "Contributions",
    "Date",
    "Datetime",
    "Domain",
    "DpexplainError",
    "Enhanced",
    "Explainer",
    "Explanation",
    "Guarantee",
    "ImageDomain",
    "Influence",
    "ModelCard",
    "NonInteractive",
    "Numeric",
    "Ordinal",
    "PrivateData",
    "Release",
    "Shapley",
    "TextDomain",
    "__version__",
    "check",
    "count_misfits",
    "discover",
    "load",
    "privacy",
    "release",
    "release_model",
    "weights",
]
