"""All GPUs of a node multiply the same large matrices repeatedly, and each product is compared with the GPU's first one, bit by bit.

The same product by the same program on the same GPU has the same bits; if it differs, the GPU computes wrongly. The first products of all
GPUs are also compared, within rounding. The script needs PyTorch in the jail.
"""

import time

import output

_PIECE = 8


def burn(torch, seconds, size):
    """Return one row for each GPU: its index, model, Tflop/s, number of products, and number of wrong products."""
    gpus = [Gpu(torch, index, size) for index in range(torch.cuda.device_count())]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for gpu in gpus:
            gpu.start_round()
        for gpu in gpus:
            gpu.answer()
    middle = sorted(each.sum for each in gpus)[len(gpus) // 2]
    return [each.table(middle) for each in gpus]


class Gpu:
    """One GPU, its matrices, and its counts of products."""

    def __init__(self, torch, index, size):
        self._torch, self._index, self._size = torch, index, size
        self._device = f"cuda:{index}"
        made = torch.Generator().manual_seed(1)
        self._a = torch.randn(size, size, generator=made).to(self._device, torch.bfloat16)
        self._b = torch.randn(size, size, generator=made).to(self._device, torch.bfloat16)
        self._first = torch.matmul(self._a, self._b)
        self.sum = float(self._first.double().abs().sum())
        self._wrong, self._rounds, self._busy, self._best = 0, 0, None, 0.0

    def start_round(self):
        """Start some products without waiting; two events on the GPU measure their duration."""
        with self._torch.cuda.device(self._index):
            began, ended = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
            began.record()
            products = [self._torch.matmul(self._a, self._b) for _ in range(_PIECE)]
            ended.record()
        self._busy = (began, ended, products)

    def answer(self):
        """Wait for the products and compare them."""
        began, ended, products = self._busy
        ended.synchronize()
        self._best = max(self._best, 2.0 * self._size**3 * _PIECE / (began.elapsed_time(ended) / 1000) / 1e12)
        self._wrong += sum(not self._torch.equal(each, self._first) for each in products)
        self._rounds += _PIECE

    def table(self, middle):
        """Return the readings of a GPU; if its first product differs from those of the others, all its products count as wrong."""
        differs = abs(self.sum - middle) > 1e-3 * abs(middle)
        return {
            "part": f"GPU {self._index}",
            "model": self._torch.cuda.get_device_name(self._index),
            "tflops": round(self._best, 2),
            "rounds": self._rounds,
            "wrong": self._rounds if differs else self._wrong,
        }


def main():
    """Measure this node."""
    _, tasks, node = output.place()
    asked = output.given({"seconds": 60, "size": 8192})
    if tasks != 1:
        output.broken(f"it measures one node, and this step has {tasks} tasks")
    try:
        import torch
    except ImportError as error:
        output.broken(f"needs PyTorch in the jail: {error}")
    if not torch.cuda.is_available():
        output.broken("PyTorch sees no GPU")
    output.say([{"of": node, **each} for each in burn(torch, asked["seconds"], asked["size"])])


if __name__ == "__main__":
    main()
