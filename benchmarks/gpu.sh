#!/usr/bin/env bash
# What only a GPU can measure, in fifteen minutes: speed of pre-training against a plain loop, with and without torch.compile, then
# NER-BERT's table with a base encoder: five domains, all sentences and ten, three seeds, both sides fine-tuned to the end.
#   benchmarks/gpu.sh CORPUS ENCODER SETS OUT [--dry-run]     --dry-run prints the commands
# CORPUS is a folder of nerbert corpus, ENCODER one such as all-mpnet-base-v2, SETS the folder of the named sets.
set -euo pipefail
corpus=$1 encoder=$2 sets=$3 out=$4 dry=${5-}
run() { echo "+ $*"; [ "$dry" = --dry-run ] || "$@"; }
mkdir -p "$out"
export PYTHONPATH=$PWD HF_HUB_OFFLINE=1
for compile in true false; do
  run python -m benchmarks.pretrain --corpus "$corpus" --base-model "$encoder" --torch-compile "$compile" --json "$out/speed-compile-$compile.json"
done
run python -m nerbert pretrain --corpus "$corpus" --base-model "$encoder" --batch-size 64 --learning-rate 1e-4 --num-train-epochs 2 --output "$out/ner"
run python -m nerbert evaluate --models "$encoder" "$out/ner" --data 'crossner/*' --data-root "$sets" --shots 10 all --seeds 3 \
  --learning-rate 5e-5 --epochs 20 --least-steps 320 --bf16 --output "$out/table"
