"""A private release: it is paid for once and answers any number of queries from one portable file.

making.py              checks, plans and pays for a release  plan_for_data.py       what it asks of private rows
release.py             the release and its questions         batch.py               many explanations at once
release_planes.py      planes from noisy moments             contents.py, file.py   what a file holds, and its format
reference_building.py  synthetic records from noisy counts   reference_data.py      synthetic records for any tool
model_questions.py     questions that need a model           reference_shapley.py   SHAP over synthetic records
summary.py             a model as a whole                    surrogates.py          a surrogate of a model
relabelling.py         the same records, another model       named.py               several models in one file
all_classes.py         every class for the price of one      tree_model.py          sums of trees, taken apart
page.py                the published page                    mlflow.py, announced.py  MLflow artefacts, progress
"""
