"""Measuring two things in turn, so that whatever else the machine does meets both alike."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.figures import Figure

Step = Callable[[], tuple[float, float] | None]  # does it once; gives (cpu, wall) if it has measured itself

WARM_UP = 3
SETTLE_SECONDS = 0.03  # threads that a call has left spinning are part of its cost


@dataclass(slots=True)
class Samples:
    """Seconds of processor and of the clock on the wall, one pair per round."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    def figures(self) -> dict[str, float]:
        return {
            "cpu_median": median(self.cpu),
            "cpu_min": min(self.cpu),
            "wall_median": median(self.wall),
            "wall_min": min(self.wall),
        }


@dataclass(slots=True)
class Compared:
    """A floor and what stands on it, measured in turn."""

    name: str
    floor: Samples
    subject: Samples
    goal: float | None = None  # the most that the ratio may be

    @property
    def ratio(self) -> float:
        return median(self.subject.cpu) / median(self.floor.cpu)

    @property
    def best_ratio(self) -> float:
        return min(self.subject.cpu) / min(self.floor.cpu)

    @property
    def wall_ratio(self) -> float:
        return median(self.subject.wall) / median(self.floor.wall)

    def figure(self) -> Figure:
        """Milliseconds of processor, medians."""
        floor, subject = (1_000 * median(samples.cpu) for samples in (self.floor, self.subject))
        return Figure(name=self.name, value=subject, floor=floor, goal_times=self.goal)

    def figures(self) -> dict[str, Any]:
        return {
            "rounds": len(self.floor.cpu),
            "floor": self.floor.figures(),
            "scrubjay": self.subject.figures(),
            "ratio": self.ratio,
            "ratio_of_minima": self.best_ratio,
            "wall_ratio": self.wall_ratio,
            "goal": self.goal,
            "met": None if self.goal is None else self.ratio <= self.goal,
        }


def in_turn(name: str, floor: Step, subject: Step, *, rounds: int, goal: float | None = None) -> Compared:
    """Floor, subject, floor, subject … and every other round the other way about, after a warm-up of both."""
    compared = Compared(name, Samples(), Samples(), goal)
    for turn in range(-WARM_UP, rounds):
        pair = [(floor, compared.floor), (subject, compared.subject)]
        for step, samples in pair if turn % 2 else reversed(pair):
            cpu, wall = once(step)
            if turn >= 0:
                samples.cpu.append(cpu)
                samples.wall.append(wall)
    return compared


def once(step: Step) -> tuple[float, float]:
    """Run it: seconds of processor, of all threads of this process and a little beyond the end, and of wall."""
    wall, cpu = time.perf_counter(), time.process_time()
    measured = step()
    wall = time.perf_counter() - wall
    if measured:
        return measured
    time.sleep(SETTLE_SECONDS)
    return time.process_time() - cpu, wall
