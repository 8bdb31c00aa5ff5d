"""How good is a private explanation? Everything here reads private rows for free: offline only, never behind a service."""

from dpexplain.evaluation.agreement import Agreement as Agreement
from dpexplain.evaluation.agreement import agreement as agreement
from dpexplain.evaluation.comparison import Comparison as Comparison
from dpexplain.evaluation.comparison import baselines as baselines
from dpexplain.evaluation.fidelity import Score as Score
from dpexplain.evaluation.fidelity import compare as compare
from dpexplain.evaluation.fidelity import local_moments as local_moments
from dpexplain.evaluation.fidelity import local_moments_of as local_moments_of
from dpexplain.evaluation.fidelity import optimum as optimum
from dpexplain.evaluation.fidelity import score as score
from dpexplain.evaluation.lime import lime as lime
from dpexplain.evaluation.memory import remember as remember
from dpexplain.evaluation.metrics import Curve as Curve
from dpexplain.evaluation.metrics import at_points as at_points
from dpexplain.evaluation.metrics import deletion as deletion
from dpexplain.evaluation.metrics import infidelity as infidelity
from dpexplain.evaluation.metrics import insertion as insertion
from dpexplain.evaluation.metrics import lipschitz as lipschitz
from dpexplain.evaluation.metrics import max_sensitivity as max_sensitivity
from dpexplain.evaluation.metrics import pgi as pgi
from dpexplain.evaluation.metrics import pgu as pgu
from dpexplain.evaluation.mim import mim as mim
from dpexplain.evaluation.perturbing import Nearby as Nearby
from dpexplain.evaluation.shap import shap_values as shap_values
