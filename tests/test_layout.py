"""The layout of MuJoCo's structs fits the installed release, or an error names the field."""

import ctypes
import dataclasses

import mujoco
import numpy as np
import pytest
from mujoco.introspect import ast_nodes, structs

from mujacobian import _core
from mujacobian import _layout as layout


def change_field(monkeypatch, struct, old, **changes):
    declaration = structs.STRUCTS[struct]
    fields = tuple(
        dataclasses.replace(field, **changes) if field.name == old else field
        for field in declaration.fields
    )
    changed = dataclasses.replace(declaration, fields=fields)
    monkeypatch.setitem(structs.STRUCTS, struct, changed)


def test_a_missing_field_is_named(monkeypatch):
    change_field(monkeypatch, "mjModel", "dof_parentid", name="dof_ancestorid")
    with pytest.raises(ImportError, match=r"mjModel\.dof_parentid is gone"):
        layout.find_places()


def test_a_field_of_another_type_is_named(monkeypatch):
    floats = ast_nodes.PointerType(ast_nodes.ValueType("float"))
    change_field(monkeypatch, "mjData", "qacc", type=floats)
    with pytest.raises(ImportError, match=r"mjData\.qacc has become 'float \*'"):
        layout.find_places()


def test_a_renamed_field_is_found_under_both_names(monkeypatch):
    places = layout.find_places()
    renamed = [
        (*field[:4], "dof_ancestorid" if field[1] == "dof_parentid" else None)
        for field in _core.fields()
    ]
    monkeypatch.setattr(_core, "fields", lambda: renamed)
    assert layout.find_places() == places
    change_field(monkeypatch, "mjModel", "dof_parentid", name="dof_ancestorid")
    assert layout.find_places() == places


def test_an_optional_field_may_be_missing(monkeypatch):
    optional = [field[:2] for field in _core.fields() if field[3]]
    assert optional
    for struct, name in optional:
        if any(field.name == name for field in structs.STRUCTS[struct].fields):
            change_field(monkeypatch, struct, name, name="renamed")
    places = dict(zip([field[:2] for field in _core.fields()], layout.find_places(), strict=True))
    assert all(places[key] == (-1, 0) for key in optional)


def test_pointers_of_live_objects_are_where_the_layout_says():
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><joint/><geom size='1'/></body></worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    live = {"mjModel": model, "mjData": data}
    checked = 0
    for (struct, name, kind, *_), (offset, _) in zip(
        _core.fields(), layout.find_places(), strict=True
    ):
        if struct not in live or kind not in ("NUMS", "INTS") or offset < 0:
            continue
        array = np.asarray(getattr(live[struct], name))
        address = ctypes.c_void_p.from_address(live[struct]._address + offset).value
        if array.size and address:  # MuJoCo has no array of this kind
            assert address == array.ctypes.data, f"{struct}.{name}"
            checked += 1
    assert checked > 60


@pytest.mark.parametrize(
    "library",
    [
        "site-packages/mujoco/libmujoco.so.4.0.0",
        "site-packages/mujoco/libmujoco.4.0.0.dylib",
        "site-packages/mujoco/mujoco.dll",
        "lib/libmujoco.so.4.0.0",
        "lib/libmujoco.dylib",
        "Library/bin/mujoco.dll",
    ],
)
def test_the_library_is_found_where_wheels_and_conda_have_it(library, monkeypatch, tmp_path):
    monkeypatch.setattr(mujoco, "__file__", str(tmp_path / "site-packages/mujoco/__init__.py"))
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    with pytest.raises(ImportError, match=r"its library is in none of .*mujoco"):
        layout._library_path()
    path = tmp_path / library
    path.parent.mkdir(parents=True)
    path.touch()
    assert layout._library_path() == str(path)
