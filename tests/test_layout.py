"""The layout of MuJoCo's structs fits the installed release, or an error names the field."""

import ctypes
import dataclasses

import mujoco
import numpy as np
import pytest
from mujoco.introspect import ast_nodes, structs

import mujacobian
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


def chain(links, length):
    """Return a model of hinges in a row. The sizes of the model depend only on their number."""
    body = f'<body pos="0 0 {length}"><joint axis="0 1 0"/><geom size=".1" pos="{length} 0 0"/>'
    xml = f"<mujoco><worldbody>{body * links}{'</body>' * links}</worldbody></mujoco>"
    return mujoco.MjModel.from_xml_string(xml)


def slope_of_gravity(model):
    """Return dv'/dq of the first hinge, which depends on sizes, arrays and options."""
    data = mujoco.MjData(model)
    data.qpos[:] = 0.3
    return mujacobian.linearize(model, data).A[model.nv, 0]


def test_views_follow_models_that_take_the_place_of_others():
    """Models die and are replaced, often at the same address, by others of the same sizes."""
    kinds = [(links, length) for links in (1, 2, 3) for length in (0.3, 0.6)]
    expected = {}
    for kind in kinds:  # all alive at the same time
        model = chain(*kind)
        expected[kind] = model, slope_of_gravity(model)
    addresses = set()
    for kind in [*kinds, *reversed(kinds)] * 5:
        model = chain(*kind)
        addresses.add(model._address)
        assert slope_of_gravity(model) == expected[kind][1]
        del model
    assert len(addresses) < 60  # some were used again
    assert len({slope for _, slope in expected.values()}) == len(kinds)


def test_views_follow_options_and_arrays():
    model = chain(2, 0.4)
    first = slope_of_gravity(model)
    model.opt.timestep *= 2
    np.testing.assert_allclose(slope_of_gravity(model), 2 * first, rtol=1e-12)
    model.opt.timestep /= 2
    model.opt.gravity[2] *= 3
    np.testing.assert_allclose(slope_of_gravity(model), 3 * first, rtol=1e-12)
    model.opt.gravity[2] /= 3
    model.dof_armature[:] = 1e3
    assert abs(slope_of_gravity(model)) < 0.1 * abs(first)
