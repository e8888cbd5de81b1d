"""Distinct models: files that MuJoCo loads, compared by the bytes of the compiled model."""

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

from benchmarks.zoo.sources import Source
from mujacobian import reference


@dataclass(frozen=True)
class File:
    """A file of a source that may hold a model."""

    label: str
    source: str
    path: Path


def files(sources: list[Source], *, only: str = "", seed: int | None = None) -> list[File]:
    """Return the files whose label contains `only`, in random order if there is a seed."""
    found = [
        File(source.label(path), source.name, path) for source in sources for path in source.files
    ]
    found = [file for file in found if only in file.label]
    if seed is not None:
        random.Random(seed).shuffle(found)
    return found


def load(path: Path) -> mujoco.MjModel:
    """Return the model of a file; raise ValueError or mujoco.FatalError if it does not load."""
    with reference.quiet():
        return mujoco.MjModel.from_xml_path(str(path))


def fingerprint(model: mujoco.MjModel) -> str:
    """Return a hash of the compiled model."""
    size = mujoco.mj_sizeModel(model)
    saved = np.empty(size, np.uint8)
    mujoco.mj_saveModel(model, None, saved)
    return hashlib.sha1(saved.tobytes()).hexdigest()


def models(
    sources: list[Source], *, only: str = "", seed: int | None = None
) -> Iterator[tuple[File, mujoco.MjModel]]:
    """Yield every distinct model that loads and has a degree of freedom, with its file.

    The models are loaded in this process, so a crash of MuJoCo's loader ends it. The sweep itself
    loads them in separate processes.
    """
    seen = set()
    for file in files(sources, only=only, seed=seed):
        try:
            model = load(file.path)
        except (ValueError, mujoco.FatalError):
            continue
        known = fingerprint(model)
        if model.nv and known not in seen:
            seen.add(known)
            yield file, model
