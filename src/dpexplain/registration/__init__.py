"""From an owner's rows and a model's answers to registered rows, each row by itself.

options.py      what an owner declares              registered.py     what registration hands over
in_memory.py    rows given as a table               scanning.py       rows that stay in Parquet files
tables.py       tables on disk, declared types      memory_limit.py   whether rows fit into memory
labels.py       how a model's answers are read      label_column.py   labels in a column of the table
label_file.py   labels on disk                      cached_labels.py  labels from a model, cached for its owner
model_sources.py  models from files, without pickle kserve.py         models behind HTTP
sources.py      an owner's description of rows and labels, as the command line and the service read it
"""
