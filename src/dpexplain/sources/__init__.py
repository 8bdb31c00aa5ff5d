"""An owner's own files: a table, its labels or a model, and how they become `PrivateData`. Used by the command line and the service.

tables.py   Parquet with declared types           labels.py    one label a row, from a column, a model or a cache
models.py   black boxes without pickle            kserve.py    black boxes behind HTTP
memory.py   whether rows fit, or stay in files
"""

from dpexplain.sources.labels import Progress as Progress
from dpexplain.sources.models import ModelSource as ModelSource
from dpexplain.sources.registration import DataSource as DataSource
from dpexplain.sources.registration import decided as decided
from dpexplain.sources.registration import register as register
