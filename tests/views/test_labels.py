"""Owners' colours can be told apart by everyone: with each of the three common deficiencies, and by letter without any.

The simulation matrices are those of Machado, Oliveira and Fernandes (2009) for a complete deficiency, on linear RGB.
Distances are CIE76: about 2 can just be seen side by side.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from views.memory_map.labels import PALETTE

Vector = NDArray[np.float64]
SEEN_BY = {
    "everyone": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.9505, 1.0, 1.089])
CLEARLY_APART = 15


def linear(colour: str) -> Vector:
    channels = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(rgb: Vector) -> Vector:
    ratio = XYZ @ np.clip(rgb, 0, 1) / WHITE
    f = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("eyes", SEEN_BY)
def test_any_two_owner_colours_are_distinguishable(eyes: str) -> None:
    seen = {colour: lab(SEEN_BY[eyes] @ linear(colour)) for colour in PALETTE}
    close = {pair: round(float(np.linalg.norm(seen[pair[0]] - seen[pair[1]])), 1) for pair in combinations(PALETTE, 2)}
    assert {pair: distance for pair, distance in close.items() if distance < CLEARLY_APART} == {}


def test_the_colour_distance_models_colour_blindness() -> None:
    red, green = linear("#A05030"), linear("#6B6B20")
    apart = np.linalg.norm(lab(red) - lab(green))
    deutan = SEEN_BY["deuteranopia"]
    assert apart > 40
    assert np.linalg.norm(lab(deutan @ red) - lab(deutan @ green)) < CLEARLY_APART
