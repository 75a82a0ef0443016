"""How physics is stepped, whichever backend steps it."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

from hardware.contract import CONTROL_PERIOD_S
from hardware.errors import ConfigError
from microduck.checks import check_flag, check_whole
from microduck.physics.threads import usable_cpus

ACTUATORS = ("position", "xl330")
"""Servos: linearised at one voltage, as in TorchRL, or with motor, supply and gearbox; see docs/servo.md."""
INTEGRATORS = ("Euler", "RK4", "implicit", "implicitfast")
"""MuJoCo's integrators by their MJCF names."""


@dataclass(frozen=True)
class PhysicsOptions:
    """How physics is stepped. None leaves what the scene says.

    Attributes:
        actuator: one of `ACTUATORS`.
        timestep: length of a physics step [s]; a whole number of them makes one control period of 20 ms.
        substeps: physics steps in one control period; another way to say `timestep`.
        integrator: one of `INTEGRATORS`.
        iterations: most iterations of the constraint solver.
        threads: worker threads of the CPU backend; None for the CPUs this process may use.
        body_contacts: whether parts other than the soles of the built-in duck meet the floor. Off, as in
            the upstream model for walking: a duck that could rest on its battery or beak would learn that.
        low_cost_collisions: put fitted boxes in place of the collision meshes of a foreign scene.

    Raises:
        ConfigError: a value is out of range, or `timestep` and `substeps` disagree.
    """

    actuator: str = "position"
    timestep: float | None = None
    substeps: int | None = None
    integrator: str | None = None
    iterations: int | None = None
    threads: int | None = None
    body_contacts: bool = False
    low_cost_collisions: bool = True

    def __post_init__(self) -> None:
        for name in ("substeps", "iterations", "threads"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), least=1, bits=31)
        for name in ("body_contacts", "low_cost_collisions"):
            check_flag(name, getattr(self, name))
        if self.actuator not in ACTUATORS:
            raise ConfigError(f"actuator is {self.actuator!r}; choose one of {list(ACTUATORS)}")
        if self.integrator is not None and self.integrator not in INTEGRATORS:
            raise ConfigError(f"integrator is {self.integrator!r}; choose one of {list(INTEGRATORS)}")
        if self.timestep is not None:
            if not isinstance(self.timestep, Real):
                raise ConfigError(f"timestep is {self.timestep!r}; it must be a number of seconds")
            steps = steps_in_period(self.timestep)
            if self.substeps not in (None, steps):
                raise ConfigError(
                    f"timestep {self.timestep:g} s makes {steps} steps of a control period, but substeps is "
                    f"{self.substeps}; give one of the two"
                )

    def substeps_for(self, timestep: float) -> int:
        """Return the physics steps in one control period for a scene with its own `timestep` [s]."""
        return self.substeps or steps_in_period(self.timestep or timestep)

    def worker_threads(self) -> int:
        """Return the number of threads to start: by default never more than the CPUs this process may use."""
        return self.threads or usable_cpus()


def steps_in_period(timestep: float) -> int:
    """Return how many steps of `timestep` [s] make one control period.

    Raises:
        ConfigError: they are not a whole number.
    """
    steps = round(CONTROL_PERIOD_S / timestep) if 0 < timestep <= CONTROL_PERIOD_S else 0
    if steps < 1 or abs(steps * timestep - CONTROL_PERIOD_S) > 1e-9:
        raise ConfigError(
            f"timestep is {timestep} s; a whole number of steps must make the control period of "
            f"{CONTROL_PERIOD_S} s, for example 0.002, 0.0025, 0.004 or 0.005"
        )
    return steps
