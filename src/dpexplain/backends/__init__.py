"""The only code that computes on private rows. Every backend implements `Rows` of `mechanisms/ports.py` and agrees with `oracle.py`.

dense.py        rows in memory                          sparse.py       binary rows in memory: the words of texts
streaming.py    Parquet files, read for each question   distributed.py  rows in the memory of a Ray cluster's workers
oracle.py       plain NumPy, to compare with            summed.py       adds up the answers of several parts
parquet.py      which files were registered             encoded.py      batches of a file as encoded, labelled rows
_workers.py     threads of the kernels                  _kernels.py, _bit_kernels.py, _sparse_kernels.py, _tiles.py  compiled inner loops
"""
