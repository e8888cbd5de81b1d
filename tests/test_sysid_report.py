"""Figures and the HTML report of an identification."""

import base64
import re
import subprocess
import sys
from html.parser import HTMLParser

import mujoco
import numpy as np
import pytest

import mujacobian
from examples import identify_arm
from mujacobian.errors import ArgumentError
from mujacobian.sysid import Calibration, Identification, Log, identify

pytest.importorskip("matplotlib")

pytestmark = pytest.mark.filterwarnings("ignore::mujacobian.sysid.IdentificationWarning")

STEPS = 90
ROUNDING = 1e-12


def problem(fields=("body_mass", "dof_damping")):
    model = mujoco.MjModel.from_xml_string(identify_arm.ARM)
    parameters = mujacobian.Parameters(model, fields)
    return parameters, [identify_arm.record(model, seed, STEPS) for seed in range(2)]


@pytest.fixture(scope="module")
def found():
    parameters, logs = problem()
    return identify(parameters, logs, window=40)


def test_fits_are_the_simulations_of_the_identified_model():
    parameters, logs = problem()
    found = identify(parameters, logs)
    for k, (log, fit) in enumerate(zip(logs, found.fits, strict=True)):
        made = mujacobian.rollout(found.model, found.first_states[k][0], log.controls)
        there = ~np.isnan(log.sensordata)
        assert there.any()
        assert np.array_equal(fit.measured, log.sensordata, equal_nan=True)
        scale = np.abs(made.sensordata).max()
        assert np.abs(fit.predicted - made.sensordata)[there].max() < ROUNDING * scale
        assert np.allclose(fit.residuals[there], found.residuals[k][: there.sum()])
        assert np.array_equal(fit.times, parameters.model.opt.timestep * np.arange(STEPS))


def test_fits_keep_time_stamps_and_leave_out_unused_readings():
    """Readings within the longest delay after the first state are not used."""
    parameters, (log, _) = problem()
    model = parameters.model
    h = model.opt.timestep
    times = h * np.array([0.5, 20.25, 41, 75.75])
    rows = np.array(log.sensordata)[[0, 20, 41, 75]]
    stamped = Log(log.state, log.controls, rows, sensor_times=times)
    calibration = Calibration(model, [("sensor_delay", 0)], longest_delay=10 * h)
    for window in (None, 40):
        (fit,) = identify(
            parameters, [stamped], calibration=calibration, window=window, initial_states="given"
        ).fits
        assert np.allclose(fit.times, times, rtol=1e-15)
        unused = np.isnan(fit.measured[:, 0])
        assert unused.tolist() == [True, False, window is not None, False]
        assert np.array_equal(np.isnan(fit.predicted), np.isnan(fit.measured))


def test_missing_readings_and_logs_of_states():
    parameters, (log, _) = problem()
    made = mujacobian.rollout(parameters.model, log.state, log.controls)
    sparse = np.array(made.sensordata)
    sparse[::2] = sparse[:, 1] = np.nan
    logs = [
        Log(log.state, log.controls, sparse),
        Log(log.state, log.controls, states=made.states),
    ]
    found = identify(parameters, logs, start=1.1 * parameters.values)
    first, second = found.fits
    assert np.isnan(first.predicted[::2]).all()
    assert np.isnan(second.measured).all()
    columns = (~np.isnan(sparse)).any(axis=0).sum()
    assert len(found.plot_fit(0).axes) == columns == sparse.shape[1] - 1
    with pytest.raises(ArgumentError, match="log 1 has no readings of sensors"):
        found.plot_fit(1)
    with pytest.raises(ArgumentError, match="log must be from 0 to 1, got 2"):
        found.plot_fit(2)


def test_figures_show_the_numbers(found):
    figure = found.plot_fit(1)
    measured, predicted = figure.axes[0].get_lines()
    assert np.array_equal(measured.get_ydata(), found.fits[1].measured[:, 0])
    assert np.array_equal(predicted.get_ydata(), found.fits[1].predicted[:, 0])
    assert figure.axes[0].get_ylabel() == found.fits[1].names[0]

    over_time, histogram = found.plot_residuals().axes
    shown = np.concatenate([line.get_ydata() for line in over_time.get_lines()[:2]])
    assert np.allclose(np.sort(shown), np.sort(np.concatenate(found.residuals)))
    assert len(histogram.patches) == 40

    figure = found.plot_intervals(0.9)
    assert len(figure.axes) == len(found.values)
    interval, value, initial = figure.axes[1].get_lines()
    assert np.array_equal(interval.get_xdata(), found.intervals(0.9)[1])
    assert value.get_xdata()[0] == found.values[1]
    assert initial.get_xdata()[0] == found.history[0].values[1]


class Page(HTMLParser):
    """Collects the tags, the sources of images and the text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.sources, self.text = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.sources += [value for name, value in attributes if name in ("src", "href")]

    def handle_data(self, data):
        self.text += data


def test_the_report_is_one_file(tmp_path):
    parameters, logs = problem(["body_mass", "dof_damping", "geom_friction"])
    bounds = {"body_mass": (0.1, 5), "dof_damping": (0, 2), "geom_friction": (0, 2)}
    found = identify(parameters, logs, starts=2, bounds=bounds)
    assert found.warnings
    assert np.isinf(found.standard_errors).any()
    found.report(tmp_path / "report.html", title="Arm <1>")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert "script" not in page.tags
    assert page.tags.count("img") == 2 + len(logs)
    for source in page.sources:
        kind, data = source.split(",")
        assert kind == "data:image/png;base64"
        assert base64.b64decode(data).startswith(b"\x89PNG")
    assert "Arm <1>" in page.text
    for sentence in (*found.warnings, *found.identifiability, *found.names, *found.undetermined):
        assert sentence in page.text
    assert "Starts" in page.text
    assert not re.search("https?://", text)


def test_a_loaded_result_has_the_same_report(found, tmp_path):
    found.save(tmp_path / "found.json")
    again = Identification.load(tmp_path / "found.json", problem()[0])
    for name, each in (("one", found), ("two", again)):
        each.report(tmp_path / f"{name}.html")
    assert (tmp_path / "one.html").read_text() == (tmp_path / "two.html").read_text()


def test_matplotlib_is_imported_by_figures_only():
    code = (
        "import sys; sys.modules['matplotlib.figure'] = None\n"
        "from mujacobian.sysid import plot\n"
        "try: plot._figure(1)\n"
        "except ImportError as error: print(error)\n"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert made.stdout.strip() == "figures need matplotlib: pip install 'mujacobian[plot]'"
