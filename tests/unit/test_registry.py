"""One registry of mechanisms: the library, the service's configuration, the command line and audits know the same ones."""

from dataclasses import fields

import pytest

import dpexplain as dpx
from dpexplain.cli.audit import NAMES
from dpexplain.mechanisms.ports import Mechanism
from dpexplain.mechanisms.registry import MECHANISMS
from dpexplain.mechanisms.setting import AuditSetup
from dpexplain.service.config import mechanism_of


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism_is_known_everywhere_by_its_name(name):
    kind = MECHANISMS[name]
    made: Mechanism = kind()
    assert made.to_dict()["mechanism"] == name
    assert getattr(dpx, kind.__name__) is kind
    assert mechanism_of({"kind": name, "epsilon": 0.5}) == kind(epsilon=0.5)
    assert name in NAMES
    assert {"epsilon", "delta"} <= {field.name for field in fields(kind)}
    assert isinstance(getattr(made, "audit_setup", AuditSetup()), AuditSetup)
