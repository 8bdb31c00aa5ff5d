"""dpexplain: explain black-box models to anyone without exposing anyone in the data."""

from dpexplain import privacy as privacy
from dpexplain.client import Client as Client
from dpexplain.core import weights as weights
from dpexplain.data import PrivateData as PrivateData
from dpexplain.domain import Binary as Binary
from dpexplain.domain import Categorical as Categorical
from dpexplain.domain import Domain as Domain
from dpexplain.domain import ImageDomain as ImageDomain
from dpexplain.domain import Numeric as Numeric
from dpexplain.domain import Ordinal as Ordinal
from dpexplain.domain import TextDomain as TextDomain
from dpexplain.errors import BudgetExhausted as BudgetExhausted
from dpexplain.errors import DpexplainError as DpexplainError
from dpexplain.explainer import Explainer as Explainer
from dpexplain.explanation import Explanation as Explanation
from dpexplain.mechanisms.adaptive import Adaptive as Adaptive
from dpexplain.mechanisms.basic import Basic as Basic
from dpexplain.mechanisms.enhanced import Enhanced as Enhanced
from dpexplain.mechanisms.influence import Influence as Influence
from dpexplain.mechanisms.shapley import Shapley as Shapley
from dpexplain.noninteractive import NonInteractive as NonInteractive
from dpexplain.privacy.budget import Budget as Budget
from dpexplain.privacy.budget import Guarantee as Guarantee
from dpexplain.release import Release as Release
from dpexplain.release import load as load
from dpexplain.release import release as release

__version__ = "0.1.0"
