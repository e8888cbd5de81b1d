"""The memory layout of the installed MuJoCo.

The core is compiled without MuJoCo's headers. It lists the fields that it reads by name and kind.
`mujoco.introspect` declares every struct of the installed release, and natural C alignment gives
the offsets. A few offsets are compared with live objects before the core uses any of them.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from mujoco.introspect import ast_nodes, enums, structs

from mujacobian import _core
from mujacobian._arguments import require_data
from mujacobian._notices import notice
from mujacobian._versions import NEWEST_TESTED, OLDEST_TESTED
from mujacobian.errors import (
    ArgumentError,
    ArgumentTypeError,
    DomainError,
    MujacobianError,
    UnsupportedFeatureError,
    UnusableError,
)

# size, which is also the alignment, of C types, by the name that introspect prints
_SCALARS = {
    "char": 1,
    "mjtByte": 1,
    "mjtBool": 1,
    "uint8_t": 1,
    "unsigned char": 1,
    "bool": 1,
    "int": 4,
    "unsigned int": 4,
    "float": 4,
    "uint32_t": 4,
    "double": 8,
    "mjtNum": 8,
    "mjtSize": 8,
    "int64_t": 8,
    "uint64_t": 8,
    "size_t": 8,
    "uintptr_t": 8,
}

# the C types that each kind of field of the core can be read from
_KINDS = {
    "SIZE": {"int", "mjtSize"},
    "INT": {"int"},
    "NUM": {"mjtNum", "double"},
    "FLAG": {"mjtByte", "mjtBool"},
    "WORD": {"uint64_t", "size_t", "uintptr_t", "mjtSize"},
    "NUMS": {"mjtNum *", "double *"},
    "INTS": {"int *"},
    "FLAGS": {"mjtByte *", "mjtBool *"},
    "VOID": {"mjContact *", "const char *", "char *", "void *"},
    "VEC3": {"mjtNum [3]", "double [3]"},
    "FLOATS": {"float *"},
    "NUM2": {"mjtNum [2]", "double [2]"},
    "NUM5": {"mjtNum [5]", "double [5]"},
    "NUM9": {"mjtNum [9]", "double [9]"},
    "INT2": {"int [2]"},
    "INT20": {"int [20]"},
    "STATISTIC": {"mjStatistic"},
    "WARNINGS": {"mjWarningStat [7]"},
    "TEXT": {"char [1024]"},
}


def _refuse(what: str) -> UnusableError:
    releases = f"{OLDEST_TESTED} to {NEWEST_TESTED}"
    return UnusableError(
        f"mujacobian cannot read MuJoCo {mujoco.__version__}: {what}. "
        f"Install a supported release ({releases}), or a newer mujacobian."
    )


def _measure(declared: object) -> tuple[int, int]:
    """Return the size and alignment of a declared C type."""
    if isinstance(declared, ast_nodes.PointerType):
        return 8, 8
    if isinstance(declared, ast_nodes.ArrayType):
        size, align = _measure(declared.inner_type)
        return size * math.prod(declared.extents), align
    if isinstance(declared, ast_nodes.AnonymousStructDecl):
        return _end(declared.fields)
    name = getattr(declared, "name", "")
    if name in _SCALARS:
        return _SCALARS[name], _SCALARS[name]
    if name in structs.STRUCTS:
        return _end(structs.STRUCTS[name].fields)
    if name in enums.ENUMS:
        return 4, 4
    raise _refuse(f"it uses the unknown type {declared}")


def _place(fields: Iterable[Any]) -> Iterator[tuple[Any, int, int]]:
    """Yield (field, offset, alignment) under natural C alignment."""
    offset = 0
    for field in fields:
        size, align = _measure(field.type)
        offset = -(-offset // align) * align
        yield field, offset, align
        offset += size


def _end(fields: Iterable[Any]) -> tuple[int, int]:
    """Return the size and alignment of a struct."""
    widest, end = 1, 0
    for field, offset, align in _place(fields):
        widest = max(widest, align)
        end = offset + _measure(field.type)[0]
    return -(-end // widest) * widest, widest


def _table(struct: str) -> dict[str, tuple[Any, int]]:
    """Return the type and offset of every field of a struct."""
    if struct not in structs.STRUCTS:
        raise _refuse(f"it has no struct {struct}")
    fields = structs.STRUCTS[struct].fields
    return {field.name: (field.type, offset) for field, offset, _ in _place(fields)}


def offset_of(struct: str, name: str) -> int:
    """Return the offset of a field in a struct, in bytes."""
    _, offset = _table(struct)[name]
    return offset


def struct_size(struct: str) -> int:
    """Return the size of one of MuJoCo's structs in bytes."""
    return _end(structs.STRUCTS[struct].fields)[0]


def find_places() -> list[tuple[int, int]]:
    """Return the offset (-1 if absent) and size of every field, in the order of the core."""
    tables = {struct: _table(struct) for struct in {field[0] for field in _core.fields()}}
    places = []
    for struct, new_name, kind, optional, old_name in _core.fields():
        table = tables[struct]
        name = old_name if new_name not in table and old_name in table else new_name
        if name not in table:
            if not optional:
                raise _refuse(f"the field {struct}.{name} is gone")
            places.append((-1, 0))
            continue
        declared, offset = table[name]
        if str(declared) not in _KINDS[kind]:
            raise _refuse(f"the field {struct}.{name} has become '{declared}'")
        places.append((offset, _measure(declared)[0]))
    return places


def _check_enumerators() -> None:
    for enum, name, value in _core.enumerators():
        actual = getattr(getattr(mujoco, enum), name, None)
        if actual is None or int(actual) != value:
            raise _refuse(f"the enumerator {enum}.{name} is no longer {value}")
    extents = {
        "mjNDYN": 10,
        "mjNGAIN": 10,
        "mjNBIAS": 10,
        "mjNPOLY": 2,
        "mjNFLUID": 12,
        "mjNSENS": 3,
        "mjMAXCONPAIR": 50,
    }
    for name, value in extents.items():
        if getattr(mujoco, name) != value:
            raise _refuse(f"the constant {name} is no longer {value}")


def _check_structs() -> None:
    if _table("mjStatistic")["meaninertia"][1] != 0:
        raise _refuse("mjStatistic.meaninertia is no longer its first member")
    found = {name: offset for name, (_, offset) in _table("mjPreContact").items()}
    if found != {"dist": 0, "pos": 8, "normal": 32, "tangent": 56}:
        raise _refuse("mjPreContact has other members")


def _check_live() -> None:
    """Compare the offsets of a few sizes and arrays with a live model and its data."""
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><freejoint/><geom size='1'/><body><joint/><geom size='1'/>"
        "</body></body></worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    for struct, live, sizes, arrays in (
        ("mjModel", model, ("nq", "nv", "nbody"), ("body_mass", "dof_parentid", "M_rowadr")),
        ("mjData", data, ("ncon", "nefc"), ("qpos", "cdof", "M", "qacc", "xfrc_applied")),
    ):
        table, base = _table(struct), live._address
        for name in sizes:
            declared, offset = table[name]
            kind = ctypes.c_int64 if _measure(declared)[0] == 8 else ctypes.c_int32
            if kind.from_address(base + offset).value != getattr(live, name):
                raise _refuse(f"the size {struct}.{name} is not where introspect puts it")
        for name in arrays:
            address = ctypes.c_void_p.from_address(base + table[name][1]).value
            if address != np.asarray(getattr(live, name)).ctypes.data:
                raise _refuse(f"the array {struct}.{name} is not where introspect puts it")


def _addresses() -> dict[str, int]:
    """Return the addresses of the functions and callback variables that the core uses."""
    library = ctypes.CDLL(_library_path())
    found = {}
    for name, is_function, optional in _core.symbols():
        try:
            if is_function:
                found[name] = ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
            else:
                found[name] = ctypes.addressof(ctypes.c_void_p.in_dll(library, name))
        except (AttributeError, ValueError):
            if not optional:
                raise _refuse(f"its library does not export {name}") from None
            found[name] = 0
    return found


def _library_path() -> str:
    """Return the path of MuJoCo's library, which `import mujoco` has loaded.

    Wheels have it in the package, conda has it in the folder of libraries of the environment.
    """
    prefix = Path(sys.prefix)
    folders = (Path(mujoco.__file__).parent, prefix / "lib", prefix / "Library" / "bin")
    for folder in folders:
        for pattern in ("libmujoco.so*", "libmujoco*.dylib", "mujoco.dll"):
            for path in sorted(folder.glob(pattern)):
                return str(path)
    raise _refuse(f"its library is in none of {', '.join(map(str, folders))}")


def layout() -> dict[str, Any]:
    """Return the places, sizes and addresses in the installed MuJoCo that the core needs."""
    return {
        "places": find_places(),
        "option_offset": _table("mjModel")["opt"][1],
        "contact_size": struct_size("mjContact"),
        "model_size": struct_size("mjModel"),
        "addresses": _addresses(),
        "constants": {
            "mjSTATE_FULLPHYSICS": int(mujoco.mjtState.mjSTATE_FULLPHYSICS),
            "mjSTATE_INTEGRATION": int(mujoco.mjtState.mjSTATE_INTEGRATION),
            "mjLOG_ERROR": int(mujoco.mjtLogLevel.mjLOG_ERROR),
            "mjNEQDATA": mujoco.mjNEQDATA,
            "version": mujoco.mj_version(),
        },
    }


def install() -> None:
    """Pass the layout of the installed MuJoCo to the core; raise if something is not readable."""
    _check_enumerators()
    _check_structs()
    _check_live()
    _core.configure(
        **layout(),
        model_type=mujoco.MjModel,
        data_type=mujoco.MjData,
        error=MujacobianError,
        unsupported_error=UnsupportedFeatureError,
        argument_error=ArgumentError,
        argument_type_error=ArgumentTypeError,
        domain_error=DomainError,
        require_data=require_data,
        notice=notice,
    )
