#!/usr/bin/env bash
# Makes the shipped tagger open-en again: a corpus of all English slices, the open head on MiniLM, its difference from the encoder.
#   benchmarks/open_tagger.sh DATA ENCODER WORK [STEPS]     80 minutes of two cores; the same command goes on after a stop
# DATA is a folder with dumps/, leads/, dbpedia/, wikidata/ and ner/crossner/, ENCODER one with sentence-transformers/all-MiniLM-L6-v2.
set -euo pipefail
data=$1 encoder=$2 work=$3 steps=${4-2500}
mkdir -p "$work"
shopt -s nullglob
dumps=("$data"/dumps/enwiki-2*.bz2 "$data"/dumps/enwiki-latest*.bz2 "$data"/dumps/more/enwiki-*.bz2 "$data"/leads/enwiki-*.bz2)
types=("$data"/dbpedia/instance_types_en_*.bz2)
# The slices link many pages that they do not have; of a whole dump these would have descriptions.
pages=$work/enwiki-descriptions.xml
[ -f "$pages" ] || { python -m benchmarks.description_pages --entities "$data/wikidata/fb15k-entity2wikidata.json.xz" --dumps "${dumps[@]}" \
  --output "$pages.part" && mv "$pages.part" "$pages"; }
nerbert corpus --dump "${dumps[@]}" "$pages" --types "${types[@]}" --recipe open --output "$work/corpus" \
  --exclude "$data"/ner/crossner/*/dev.txt.xz "$data"/ner/crossner/*/test.txt.xz
flags=(--corpus "$work/corpus/corpus" --types "${types[@]}" --recipe open --base-model "$encoder" --max-steps "$steps" --batch-size 32
  --learning-rate 3e-4 --bf16 --validation-examples 300)
export OMP_NUM_THREADS=1  # a process for each core: threads of one process gain less
torchrun --nproc-per-node 2 -m pretrain.launch "${flags[@]}" --per-device-train-batch-size 16 --output "$work/tagger"
nerbert pretrain "${flags[@]}" --per-device-train-batch-size 32 --data-seed 7 --output "$work/tagger-7"
python -m finetune.tagger.shipped --encoder "$encoder" --tagger "$work/tagger" "$work/tagger-7" --output "$work/open-en"
