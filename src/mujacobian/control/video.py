"""Videos of a trajectory, rendered by MuJoCo.

The renderer runs in a separate process for each GL backend to try. MuJoCo selects its backend when
it is imported, and a faulty driver may crash the process.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import mujoco
import numpy as np

from mujacobian._arguments import Array
from mujacobian.errors import MujacobianError

WIDTH, HEIGHT, FRAMES_PER_SECOND = 640, 480, 30
PATIENCE = 600  # time limit of one backend, s
MODEL, TRAJECTORY = "model.mjb", "trajectory.npz"


class NoRendererError(MujacobianError):
    """No GL backend works on this machine."""


def require_writer() -> None:
    """Raise an error with the install command if the video writer is not installed."""
    if importlib.util.find_spec("imageio_ffmpeg") is None:
        raise MujacobianError("--video needs imageio-ffmpeg: pip install 'mujacobian[video]'")


def write(model: mujoco.MjModel, times: Array, states: Array, path: Path) -> None:
    """Write a video of states `(n, nq + ...)` from the first camera of the model.

    If no backend works, raises `NoRendererError` with the message of each backend.
    """
    require_writer()
    reasons = []
    with tempfile.TemporaryDirectory() as folder:
        mujoco.mj_saveModel(model, str(Path(folder, MODEL)))
        np.savez(Path(folder, TRAJECTORY), times=times, qpos=states[:, : model.nq])
        for backend in _backends():
            command = [sys.executable, "-m", "mujacobian.control.video", folder, str(path)]
            environment = {**os.environ, "MUJOCO_GL": backend}
            try:
                made = subprocess.run(
                    command, env=environment, capture_output=True, text=True, timeout=PATIENCE
                )
            except subprocess.TimeoutExpired:
                reasons.append(f"{backend}: took more than {PATIENCE} s")
                continue
            if made.returncode == 0:
                return
            said = made.stderr.strip().splitlines() or [f"exit status {made.returncode}"]
            reasons.append(f"{backend}: {said[-1]}")
    raise NoRendererError("no GL backend can render (" + "; ".join(reasons) + ")")


def _backends() -> list[str]:
    """Return the backends to try: `MUJOCO_GL`, or all backends of MuJoCo."""
    chosen = os.environ.get("MUJOCO_GL")
    return [chosen] if chosen else ["egl", "osmesa", "glfw"]


def _render(folder: Path, path: str) -> None:
    """Render the model and trajectory that `write` saved in a folder."""
    import imageio_ffmpeg

    model = mujoco.MjModel.from_binary_path(str(folder / MODEL))
    data = mujoco.MjData(model)
    camera = 0 if model.ncam else -1
    trajectory = np.load(folder / TRAJECTORY)
    times, qpos = trajectory["times"], trajectory["qpos"]
    frames = np.arange(times[0], times[-1], 1 / FRAMES_PER_SECOND)
    with mujoco.Renderer(model, HEIGHT, WIDTH) as renderer:
        video = imageio_ffmpeg.write_frames(path, (WIDTH, HEIGHT), fps=FRAMES_PER_SECOND)
        video.send(None)
        for k in np.searchsorted(times, frames):
            data.qpos[:] = qpos[k]
            mujoco.mj_forward(model, data)
            renderer.update_scene(data, camera)
            video.send(renderer.render())
        video.close()


if __name__ == "__main__":
    _render(Path(sys.argv[1]), sys.argv[2])
