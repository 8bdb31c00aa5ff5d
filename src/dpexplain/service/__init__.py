"""Explanations over HTTP, for callers without access to the data: a page for browsers, and a JSON API.

    config.py    service.toml, checked           app.py       endpoints and their shapes
    backend.py   a release, or rows and a ledger  guard.py     every request: size, headers, log, no traceback
    keys.py      who may ask                      problems.py  errors as RFC 9457 problem details
    limits.py    how often                        prometheus_metrics.py  numbers for Prometheus
    service_page.py  what `/` shows               run.py       one process or several
    connections.py   deadlines and limits         fair_loop.py workers share connections

Needs the extra `[service]`; this package itself imports nothing but the standard library.
"""
