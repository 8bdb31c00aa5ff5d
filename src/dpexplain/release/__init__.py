"""A private release: it is paid for once and answers any number of queries from one portable file.

Making one:        making.py (checks, plans and pays), plan_for_data.py (what it asks of private rows), all_classes.py (every class for the price of
                   one), reference_building.py (synthetic records from noisy counts), announced.py (progress bars)
The release:       release.py (its questions), batch.py (many explanations at once), release_planes.py (planes from noisy moments), compiled.py
                   (compiled planes), answer_dicts.py (the JSON of many answers), contents.py and file.py (what a file holds, and its
                   format), named.py (several models in one file)
Questions that     model_questions.py (all of them), reference_data.py (synthetic records for any tool), reference_shapley.py, text_shapley.py,
need a model:      image_shapley.py (SHAP), tree_model.py and tree_readers.py (SHAP of trees), independent.py (LIME), summary.py (the model as a
                   whole), surrogates.py (a surrogate of it), relabelling.py (the same records, another model)
Handing it out:    page.py and page_targets.py (the published page), card_section.py (for a model card), mlflow.py (as an artefact)
"""
