"""What is public about the data: features, their bounds, and the encoding of records as vectors."""

from dpexplain.domain.any_query import read_queries as read_queries
from dpexplain.domain.any_query import read_query as read_query
from dpexplain.domain.dates import Date as Date
from dpexplain.domain.dates import Datetime as Datetime
from dpexplain.domain.features import Binary as Binary
from dpexplain.domain.features import Categorical as Categorical
from dpexplain.domain.features import Numeric as Numeric
from dpexplain.domain.features import Ordinal as Ordinal
from dpexplain.domain.image import ImageDomain as ImageDomain
from dpexplain.domain.interface import Block as Block
from dpexplain.domain.interface import DomainLike as DomainLike
from dpexplain.domain.queries import Queries as Queries
from dpexplain.domain.queries import QueryRules as QueryRules
from dpexplain.domain.queries import Skipped as Skipped
from dpexplain.domain.tabular import Domain as Domain
from dpexplain.domain.text import TextDomain as TextDomain
