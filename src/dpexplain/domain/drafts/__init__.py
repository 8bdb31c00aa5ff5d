"""Domains from the metadata of a model or a schema, with a list of what is still to be declared. No row is ever read."""

from dpexplain.domain.drafts.draft import Draft as Draft
from dpexplain.domain.drafts.draft import DraftFeature as DraftFeature
from dpexplain.domain.drafts.model_drafts import draft_of_model as draft_of_model
from dpexplain.domain.drafts.schemas import draft_of_schema as draft_of_schema
