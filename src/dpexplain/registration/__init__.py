"""From an owner's rows and a model's answers to registered rows, each row by itself.

What is declared:    options.py (all options), declared_answers.py (what answers mean), sources.py (rows and labels as the command line and the
                     service name them), registered.py (what registration hands over)
Where rows are:      in_memory.py (any table), tables.py and declared_tables.py (files read into memory), scanning.py (Parquet files that are
                     streamed), memory_limit.py (which of the two), owners.py (who owns a row)
Asking the model:    model_sources.py and kserve.py (where it is), model_columns.py (its columns), labels.py (its labels), made_up.py and
                     declaration_check.py (trying it on made-up records first)
What it is shown:    presentation.py (any table), entry_kinds.py and row_groups.py (which rows are shown together), shown_columns.py (columns of
                     pandas and NumPy), typed_frames.py (those of polars and Arrow), nested_nulls.py (values inside values), missing_marks.py
                     (missing yes/no entries)
Labels elsewhere:    label_column.py (a column of the table), label_file.py (on disk), cached_labels.py (of a model, for its owner)
Before a domain:     raw_columns.py (columns without one), misfitting_rows.py (how many rows a domain does not fit)
"""
