"""The files of a calibration: proved before anything moves, kept as it grows, and written at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile, gettempdir

from firmware_bridge.calibrate.dialogue import Console, StoppedError, Task
from firmware_bridge.calibrate.draft import Draft
from firmware_bridge.cli.tables import aligned
from hardware.calibration import (
    MAX_FILE_BYTES,
    Calibration,
    load_calibration,
    load_measured,
    save_calibration,
    save_measured,
)
from hardware.errors import CalibrationError, ConfigError
from hardware.files import followed


def old_calibration(*places: Path | None) -> Calibration:
    """Return the first calibration that there is.

    Raises:
        ConfigError: it is not valid; nothing else is taken in its place.
    """
    found = next((place for place in places if place and place.exists()), None)
    try:
        return load_calibration(found) if found else Calibration()
    except ConfigError as error:
        raise ConfigError(f"{error}; it is not written over: correct it, or move it away") from error


def check_place(output: Path) -> None:
    """Make the folder of a file, and prove that it takes one, so that the end of all the work does not fail.

    Raises:
        ConfigError: it does not.
    """
    if output.exists() and not output.is_file():
        raise ConfigError(f"cannot write {output}: it is no file; name one, which need not exist yet")
    folder = followed(output).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"cannot make the folder {folder}: {error.strerror}; choose another --output"
        ) from error
    try:
        with TemporaryFile(dir=folder) as trial:
            trial.write(bytes(MAX_FILE_BYTES))
            trial.flush()
    except OSError as error:
        raise ConfigError(f"cannot write into {folder}: {error.strerror}; choose another --output") from error


class Outcome:
    """Where a calibration goes.

    Each value that is kept is at once in a file beside that of the calibration, which holds those alone, so
    that a closed terminal, an empty battery or a lost bus costs no more than the step at hand;
    `duck calibrate --resume` goes on there.

    Args:
        output: the calibration's file; `check_place` is content with it.
        draft: what was measured.
        console: where the person is.

    Attributes:
        output: where it is written.
        written: whether it is.
    """

    def __init__(self, output: Path, draft: Draft, console: Console) -> None:
        self.output, self.written = output, False
        self._draft, self._console = draft, console
        self._unfinished = output.with_name(f"{output.stem}.unfinished{output.suffix}")
        self._kept = self._safe = False  # whether it holds something, and all of it
        self._elsewhere = _elsewhere(output.name)

    def begin(self, resume: bool) -> None:
        """Take over what an earlier run measured, or say that there is something.

        Raises:
            ConfigError: there is nothing, or it is not valid.
        """
        try:
            there = self._unfinished.exists()
        except OSError as error:
            raise ConfigError(
                f"cannot use {self._unfinished}: {error.strerror}; choose another --output"
            ) from error
        if self._unfinished.is_symlink():
            raise ConfigError(f"{self._unfinished} is a link, and what it leads to would be lost; remove it")
        if resume:
            if not there:
                raise ConfigError(f"there is no {self._unfinished} to go on with; leave --resume out")
            self._draft.take(load_measured(self._unfinished))
            self._kept = self._safe = True
        elif there:
            self._console.tell(
                f"{self._unfinished} holds what an earlier run measured. --resume goes on with it; the first "
                "value you keep now replaces it."
            )

    def remembered(self, task: Task) -> Task:
        """Return a task whose value is in a file as soon as it is kept, and no longer once it is skipped."""

        def noted(action: Callable[[], None]) -> Callable[[], None]:
            def act() -> None:
                action()
                self._note()

            return act

        return replace(task, keep=noted(task.keep), skip=noted(task.skip))

    def _note(self) -> None:
        """Bring the unfinished file up to date."""
        if self._draft.empty and not self._kept:
            return
        try:
            if self._draft.empty:
                self._unfinished.unlink(missing_ok=True)
            else:
                save_measured(self._draft.measured, self._unfinished)
            self._kept, self._safe = not self._draft.empty, True
        except (ConfigError, OSError) as error:
            self._safe = False
            self._console.tell(f"  not safe from a power cut yet: {error}")

    def tell_unfinished(self, options: str) -> None:
        """Say how to go on where something was kept that is not in the calibration's file.

        Args:
            options: those of the command line that say what was calibrated, and into which file.
        """
        if self._kept and not self.written:
            what = "what you kept" if self._safe else "what you kept, but for the last of it,"
            command = f"duck calibrate --resume{options}"
            self._console.tell(f"{what} is in {self._unfinished}; `{command}` goes on from there")

    def task(self) -> Task:
        """Return the last step, which writes the file, and stays open where that does not work."""
        return Task(
            begin=self._show,
            measure=str,
            keep=self._write,
            skip=self._leave,
            keys={"o": self._choose_elsewhere},
            help="Enter writes | o to another place",
            ready=True,
        )

    def _show(self) -> str:
        if self._draft.empty:
            return "\nNothing was measured. Enter or q ends; b goes back."
        lines = [*aligned(self._draft.rows(), right=(1, 2)), *self._draft.remarks()]
        return "\n".join(["", *lines, self._offer()])

    def _offer(self) -> str:
        return f"Enter writes {self.output} | b back | q quit, writing nothing"

    def _write(self) -> None:
        if self._draft.empty:
            raise StoppedError("there is nothing to write")
        try:
            save_calibration(self._draft.calibration(), self.output)
        except ConfigError as error:
            raise CalibrationError(
                f"{error}. Nothing is lost: Enter tries again | o another place | q quit"
            ) from error
        self.written = True
        with suppress(OSError):  # it holds nothing that the calibration does not
            if self._kept:
                self._unfinished.unlink()

    def _choose_elsewhere(self) -> None:
        place = next(self._elsewhere, None)
        if place is None:
            raise CalibrationError("there is no other place; make room at one of them, and press Enter")
        self.output = place
        self._console.tell(f"  {self._offer()}")

    @staticmethod
    def _leave() -> None:
        raise StoppedError("you left the old file as it is")


def _elsewhere(name: str) -> Iterator[Path]:
    """Yield other places where a file of this name can be written and none is."""
    for folder in (Path.home, Path.cwd, lambda: Path(gettempdir()), lambda: Path("/dev/shm")):
        with suppress(ConfigError, OSError, RuntimeError):  # of these, nobody has a home
            place = folder() / name
            if place.parent.is_dir() and not place.exists():
                check_place(place)
                yield place
