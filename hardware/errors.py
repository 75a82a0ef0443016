"""One exception tree for every package.

Each class also derives from the built-in it stands for, so callers may catch either.
A message names the bad value, what is valid, and the next step.
"""


class DuckError(Exception):
    """Base of every error this toolkit raises on purpose."""


class ConfigError(DuckError, ValueError):
    """A setting or a user's file holds a value that is not valid."""


class ContractError(DuckError, ValueError):
    """Something was made for another contract: layout, clock, joints or action map."""


class BundleError(DuckError, ValueError):
    """A skill bundle is missing, damaged or not runnable on this robot."""


class ArchiveError(DuckError, ValueError):
    """A `.tdz` archive is damaged or holds something it must not."""


class TaskError(DuckError, ValueError):
    """A task row or library is not valid."""


class TermNotRegisteredError(TaskError):
    """A row weighs a reward term whose function nobody has registered in this process."""


class RewardError(TaskError):
    """A reward term returned a value that is not finite."""


class TaskTypeError(TaskError, TypeError):
    """Something that is no task row was given as one."""


class TaskNameError(TaskError, KeyError):
    """A library has no task of that name."""

    __str__ = Exception.__str__  # KeyError would show the message in quotes


class FeatureError(DuckError, KeyError):
    """A reward feature is read that was not computed in its step."""

    __str__ = Exception.__str__  # KeyError would show the message in quotes


class CalibrationError(DuckError, ValueError):
    """A measurement cannot be used: something moved, or a pose is not the one that was asked for."""


class CommandError(DuckError, ValueError):
    """A command is not finite or lies outside its box."""


class ControlError(DuckError, ConnectionError):
    """The control socket of a drive is not there, or its other end does not keep to the protocol."""


class TrainingError(DuckError, RuntimeError):
    """Training cannot go on."""


class ExportError(DuckError, RuntimeError):
    """A policy could not be turned into an artefact that passes its proofs."""


class SceneError(DuckError, FileNotFoundError):
    """The model of the duck that was asked for is not on this machine, cannot be fetched, or was changed."""


class RenderError(DuckError, RuntimeError):
    """No picture can be made on this machine."""


class BusError(DuckError, OSError):
    """The servo bus does not work as it must."""


class PortError(BusError):
    """The serial port is absent, busy or cannot be set up."""


class BusTimeoutError(BusError, TimeoutError):
    """One or more devices did not answer in time."""


class DeviceError(BusError):
    """A device on the bus is missing, doubled, of another model, or reports a fault."""


class ImuError(BusError):
    """The IMU is silent or its orientation filter has not started."""


class SafetyError(DuckError, RuntimeError):
    """A value that must never reach a servo was about to."""
