#!/usr/bin/env bash
# Makes a tagger as the shipped ones: a corpus of all English slices, the open head on an encoder, its difference from the encoder.
#   benchmarks/open_tagger.sh DATA MPNET WORK open-en-base           two runs, one after the other, 110 minutes of a core each
#   benchmarks/open_tagger.sh DATA MINILM WORK open-en MPNET         an hour of two cores; open-en-base teaches
# The shipped ones were made on a corpus without the titles of pages without a class, and went on with them, and with posts; see docs/pretraining.md.
# The same command goes on after a stop. DATA is a folder with dumps/, leads/, dbpedia/, wikidata/ and ner/crossner/, MPNET and MINILM are folders with
# sentence-transformers/all-mpnet-base-v2 and all-MiniLM-L6-v2. STEPS in the environment: other than 960 or 2,500 steps.
set -euo pipefail
data=$1 encoder=$2 work=$3 name=$4
case $name in
  open-en) base=all-MiniLM-L6-v2 steps=${STEPS-2500} rate=3e-4 scored=60 rank=96 teaches=${5?give the encoder of open-en-base, which teaches, too} ;;
  open-en-base) base=all-mpnet-base-v2 steps=${STEPS-960} rate=1e-4 scored=300 rank=64 ;;
  *) echo "$name: give open-en or open-en-base" >&2; exit 2 ;;
esac
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
  --learning-rate "$rate" --bf16 --validation-examples "$scored" --per-device-train-batch-size 32)
export OMP_NUM_THREADS=1  # a process for each core: threads of one process gain less
taggers=("$work/$name-1" "$work/$name-2")
if [ "$name" = open-en ]; then
  teacher=$(python -c 'import sys; from finetune.tagger.shipped import checkpoint_of; print(checkpoint_of("open-en-base", sys.argv[1]))' "$teaches")
  flags+=(--teacher "$teacher")
  trap 'kill $(jobs -p) 2> /dev/null || true' EXIT
  nerbert pretrain "${flags[@]}" --data-seed 7 --output "${taggers[0]}" &
  nerbert pretrain "${flags[@]}" --data-seed 8 --output "${taggers[1]}"
  wait $!
else
  # The first one was made before recipe open kept the last checkpoint.
  nerbert pretrain "${flags[@]}" --load-best-model-at-end True --output "${taggers[0]}"
  nerbert pretrain "${flags[@]}" --data-seed 8 --output "${taggers[1]}"
fi
python -m finetune.tagger.shipped --encoder "$encoder" --name "sentence-transformers/$base" --rank "$rank" --tagger "${taggers[@]}" --output "$work/$name"
