#!/usr/bin/env python3
"""Learns to balance a pole on a cart, with the standard library alone.

The physics are those of Barto, Sutton and Anderson (1983), written out; the learner is tabular
Q-learning over a coarse grid of states. It is a small, real training: it takes a while, it
gets better, and after a crash it goes on from its checkpoint.

  python3 train_cartpole.py --episodes 400 --lr 0.1 --seed 1

Under Tenure it keeps its checkpoint in $TENURE_CHECKPOINT_DIR, which survives attempts. Its last
line is `FINAL_REWARD:<mean steps of the last block>`, which Tenure takes as the task's result.
"""

import argparse
import json
import math
import os
import random
import sys
import time

GRAVITY = 9.8
CART_MASS = 1.0
POLE_MASS = 0.1
TOTAL_MASS = CART_MASS + POLE_MASS
HALF_POLE = 0.5
FORCE = 10.0
STEP_SECONDS = 0.02
MAX_ANGLE = 12 * math.pi / 180
MAX_POSITION = 2.4
MAX_STEPS = 500

# Bounds and number of cells for position, speed, angle and angular speed. Position hardly matters.
GRID = ((-2.4, 2.4, 1), (-2.0, 2.0, 3), (-MAX_ANGLE, MAX_ANGLE, 8), (-2.5, 2.5, 8))
DISCOUNT = 0.99


def push(state, action):
    """The state one step after pushing the cart left (0) or right (1)."""
    position, speed, angle, spin = state
    force = FORCE if action == 1 else -FORCE
    sine, cosine = math.sin(angle), math.cos(angle)
    common = (force + POLE_MASS * HALF_POLE * spin * spin * sine) / TOTAL_MASS
    turn = (GRAVITY * sine - cosine * common) / (
        HALF_POLE * (4.0 / 3.0 - POLE_MASS * cosine * cosine / TOTAL_MASS)
    )
    pull = common - POLE_MASS * HALF_POLE * turn * cosine / TOTAL_MASS
    return (
        position + STEP_SECONDS * speed,
        speed + STEP_SECONDS * pull,
        angle + STEP_SECONDS * spin,
        spin + STEP_SECONDS * turn,
    )


def has_fallen(state):
    return abs(state[0]) > MAX_POSITION or abs(state[2]) > MAX_ANGLE


def cell(state):
    """The number of the grid cell that the state lies in."""
    number = 0
    for value, (low, high, cells) in zip(state, GRID):
        place = int((value - low) / (high - low) * cells)
        number = number * cells + min(max(place, 0), cells - 1)
    return number


class Learner:
    """Q-learning with a learning rate and an exploration rate that both fall."""

    def __init__(self, rate, seed):
        cells = math.prod(cells for _, _, cells in GRID)
        self.values = [[0.0, 0.0] for _ in range(cells)]
        self.rate = rate
        self.random = random.Random(seed)
        self.episode = 0

    def choose(self, where, explore):
        if self.random.random() < explore:
            return self.random.randrange(2)
        left, right = self.values[where]
        return 0 if left > right else 1

    def run_episode(self):
        """Plays and learns one episode; returns how many steps the pole stood."""
        explore = max(0.01, 0.5 * 0.97**self.episode)
        rate = max(0.05, self.rate * 5 * 0.995**self.episode)
        state = tuple(self.random.uniform(-0.05, 0.05) for _ in range(4))
        where = cell(state)
        for step in range(1, MAX_STEPS + 1):
            action = self.choose(where, explore)
            state = push(state, action)
            fallen = has_fallen(state)
            there = cell(state)
            future = 0.0 if fallen else DISCOUNT * max(self.values[there])
            reward = -10.0 if fallen else 1.0
            self.values[where][action] += rate * (reward + future - self.values[where][action])
            where = there
            if fallen:
                break
        self.episode += 1
        return step


def save(learner, path):
    """Writes the checkpoint whole or not at all."""
    state = learner.random.getstate()
    content = {
        "episode": learner.episode,
        "values": learner.values,
        "random": [state[0], list(state[1]), state[2]],
    }
    temporary = path + ".new"
    with open(temporary, "w", encoding="ascii") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def load(learner, path):
    """Takes up a checkpoint, if there is one."""
    try:
        with open(path, encoding="ascii") as file:
            content = json.load(file)
    except FileNotFoundError:
        return False
    learner.episode = content["episode"]
    learner.values = content["values"]
    version, numbers, gauss = content["random"]
    learner.random.setstate((version, tuple(numbers), gauss))
    return True


def say(line):
    print(line, flush=True)


def train(arguments):
    learner = Learner(arguments.lr, arguments.seed)
    directory = arguments.checkpoint_dir
    path = directory and os.path.join(directory, "cartpole.json")
    if path and load(learner, path):
        say(f"resumed at episode {learner.episode}")
    say(f"training episodes {learner.episode}..{arguments.episodes} first_episode={learner.episode}")
    mean = 0.0
    while learner.episode < arguments.episodes:
        first = learner.episode
        count = min(arguments.block, arguments.episodes - first)
        mean = sum(learner.run_episode() for _ in range(count)) / count
        if path:
            save(learner, path)
        say(f"episodes {first}..{learner.episode}: mean steps {mean:.1f}")
        say(f"progress {learner.episode}/{arguments.episodes}")
        time.sleep(arguments.pause)
    say(f"FINAL_REWARD:{mean:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--episodes", type=int, default=400)
    parser.add_argument("--lr", type=float, default=0.1, help="learning rate at the end")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--block", type=int, default=20, help="episodes a line and a checkpoint")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds to rest after a block")
    parser.add_argument(
        "--checkpoint-dir", default=os.environ.get("TENURE_CHECKPOINT_DIR"), help="where to keep it"
    )
    arguments = parser.parse_args()
    if arguments.episodes < 1 or arguments.block < 1:
        parser.error("--episodes and --block must be at least 1")
    train(arguments)


if __name__ == "__main__":
    sys.exit(main())
