"""Packets: every operation gives the same numbers as NumPy."""

import numpy as np
import primitives
import pytest
from primitives import Packet

X = np.array([0.3, -0.9, 1e-3, 4.0, 1e300, -1e-300, 7.5, -2.0])
Y = np.array([2.0, 0.1, -3.0, 1e-8, 5.0, 1e5, -0.7, 1.5])
OPERATIONS = {
    "x + y": lambda x, y: x + y,
    "x - y": lambda x, y: x - y,
    "x * y": lambda x, y: x * y,
    "x / y": lambda x, y: x / y,
    "-x": lambda x, _: -x,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation(name):
    operation = OPERATIONS[name]
    computed = operation(Packet.load(X), Packet.load(Y))
    expected = operation(X, Y)
    assert computed.eight() == expected.tolist()
    assert computed.six() == expected[:6].tolist()
    assert primitives.value(computed) == expected[0]


def test_square_roots():
    assert primitives.sqrt(Packet.load(abs(X))).eight() == np.sqrt(abs(X)).tolist()


def test_doubles_become_packets():
    assert Packet(0.7).eight() == [0.7] * 8
