"""What is public about the data: features, their bounds, and the encoding of records as vectors."""

from dpexplain.domain.base import Block as Block
from dpexplain.domain.base import DomainLike as DomainLike
from dpexplain.domain.features import Binary as Binary
from dpexplain.domain.features import Categorical as Categorical
from dpexplain.domain.features import Numeric as Numeric
from dpexplain.domain.features import Ordinal as Ordinal
from dpexplain.domain.image import ImageDomain as ImageDomain
from dpexplain.domain.tabular import Domain as Domain
from dpexplain.domain.text import TextDomain as TextDomain
