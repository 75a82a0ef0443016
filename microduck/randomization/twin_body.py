"""A twin in MuJoCo, stepped by hand."""

from __future__ import annotations

import torch

from microduck.randomization.model_fields import FIELDS, ModelFields
from microduck.randomization.parameters import named
from microduck.randomization.twin import Twin
from microduck.virtual_body import STEP_S, BodyOptions, VirtualBody


def twin_body(twin: Twin) -> VirtualBody:
    """Return a body with the masses, friction and servos of a twin; its sensors are `TwinSenses`."""
    options = BodyOptions(
        actuator="xl330",
        voltage=twin.voltage,
        sag=twin.sag,
        delay=STEP_S * round(twin.delay / STEP_S),  # as in training: a simulated servo looks once in a step
        friction_scale=twin.servo_friction_scale,
        gain_scale=twin.p_gain_scale,
    )
    body = VirtualBody(options)
    values = named(torch.tensor([twin.numbers()], dtype=torch.float64))
    ModelFields(body.fields, FIELDS).write(torch.tensor([0]), values)
    return body
