"""Data-parallel training over MPI: multinomial logistic regression on scikit-learn's handwritten digits.

Each rank computes the gradient of its part of every batch; the ranks add them up (all-reduce) and take the same step. Rank 0 writes a
checkpoint and a log line per epoch into the folder that it is started in, and at the end the accuracy on digits that were held out.
"""

import argparse
import json
import os
import socket
import time
from pathlib import Path

import numpy as np
from mpi4py import MPI
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def softmax(scores):
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


def split(rank, ranks):
    images, labels = load_digits(return_X_y=True)
    held = train_test_split(images / 16.0, labels, test_size=0.25, random_state=0, stratify=labels)
    train_x, test_x, train_y, test_y = held
    return train_x[rank::ranks], train_y[rank::ranks], test_x, test_y


def train(world, epochs, rate):
    mine_x, mine_y, test_x, test_y = split(world.rank, world.size)
    total = world.allreduce(len(mine_x))
    hidden = 64
    random = np.random.default_rng(0)
    weights = [random.normal(0, 0.2, (64, hidden)), random.normal(0, 0.2, (hidden, 10))]
    speed = [np.zeros_like(each) for each in weights]
    for epoch in range(1, epochs + 1):
        inner = np.tanh(mine_x @ weights[0])
        error = softmax(inner @ weights[1])
        error[np.arange(len(mine_y)), mine_y] -= 1
        gradients = [mine_x.T @ ((error @ weights[1].T) * (1 - inner**2)), inner.T @ error]
        for weight, momentum, gradient in zip(weights, speed, gradients, strict=True):
            summed = np.empty_like(gradient)
            world.Allreduce(gradient, summed, op=MPI.SUM)
            momentum *= 0.9
            momentum -= rate * summed / total
            weight += momentum
        if world.rank == 0 and epoch % 50 == 0:
            accuracy = float(((np.tanh(test_x @ weights[0]) @ weights[1]).argmax(axis=1) == test_y).mean())
            report(epoch, accuracy, weights)
    return float(((np.tanh(test_x @ weights[0]) @ weights[1]).argmax(axis=1) == test_y).mean())


def report(epoch, accuracy, weights):
    temporary = Path("checkpoint.partial.npz")
    np.savez(temporary, *weights, epoch=epoch)
    temporary.rename("checkpoint.npz")
    with Path("train.log").open("a") as log:
        log.write(json.dumps({"epoch": epoch, "accuracy": round(accuracy, 4), "time": round(time.time(), 1)}) + "\n")
    print(f"epoch {epoch:4d}  held-out accuracy {accuracy:.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=400)
    parser.add_argument("--rate", type=float, default=0.5)
    arguments = parser.parse_args()
    world = MPI.COMM_WORLD
    where = world.gather(f"rank {world.rank} on {socket.gethostname()} (pid {os.getpid()})")
    if world.rank == 0:
        print("\n".join(where), flush=True)
    accuracy = train(world, arguments.epochs, arguments.rate)
    if world.rank == 0:
        print(
            f"ranks {world.size}",
            f"nodes {os.environ.get('SLURM_JOB_NUM_NODES', '?')}",
            f"accuracy {accuracy:.4f}",
            sep="\n",
        )


if __name__ == "__main__":
    main()
