"""Run the Python examples of a document with the installed package: `python tests/smoke.py README.md`. Needs nothing but the wheel."""

import os
import re
import sys
import tempfile
import time
from pathlib import Path

source = Path(sys.argv[1]).resolve().read_text(encoding="utf-8")
code = "".join(re.findall(r"```python\n(.*?)```", source, re.DOTALL))
os.chdir(tempfile.mkdtemp())
started = time.perf_counter()
exec(compile(code, sys.argv[1], "exec"), {})
print(f"{len(code.splitlines())} lines ran in {time.perf_counter() - started:.1f} s")
