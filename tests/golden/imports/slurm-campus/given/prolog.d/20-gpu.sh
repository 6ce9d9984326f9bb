#!/bin/bash
nvidia-smi -pm 1
