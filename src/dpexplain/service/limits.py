"""Rate limits: a token bucket for each caller, in memory."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv6Network, ip_address
from threading import Lock

IPV6_NETWORK = 64  # bits: the smallest network that a provider assigns to one customer
_MOST = 10_000  # callers stored; the least recently seen is removed first


class RateLimit:
    """At most `per_minute` requests a minute for each caller, in bursts of up to ten seconds' worth; 0 means no limit."""

    def __init__(self, per_minute: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = per_minute / 60, max(per_minute / 6, 1.0), clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = Lock()

    def wait(self, caller: str) -> float:
        """0 if the caller may ask now, which is counted; else the seconds until then."""
        if not self._rate:
            return 0.0
        with self._lock:
            now = self._clock()
            tokens, seen = self._buckets.pop(caller, (self._burst, now))
            tokens = min(tokens + (now - seen) * self._rate, self._burst)
            allowed = tokens >= 1
            self._buckets[caller] = (tokens - allowed, now)
            if len(self._buckets) > _MOST:
                self._buckets.popitem(last=False)
            return 0.0 if allowed else (1 - tokens) / self._rate


@lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """The caller that an address counts as: itself, or its /64 network with IPv6, where one caller has 2⁶⁴ addresses."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if found.version == 4:
        return str(found)
    mapped = found.ipv4_mapped
    return str(mapped) if mapped is not None else str(IPv6Network((found, IPV6_NETWORK), strict=False))
