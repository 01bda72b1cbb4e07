#!/usr/bin/env bash
# Makes a shipped tagger again: a corpus of all English slices, the open head on an encoder, its difference from the encoder.
#   benchmarks/open_tagger.sh DATA ENCODER WORK [NAME [STEPS]]     an hour of two cores for open-en, 110 minutes of one for open-en-base
# The same command goes on after a stop. DATA is a folder with dumps/, leads/, dbpedia/, wikidata/ and ner/crossner/, ENCODER one with the encoder of NAME:
# sentence-transformers/all-MiniLM-L6-v2 for open-en, sentence-transformers/all-mpnet-base-v2 for open-en-base.
set -euo pipefail
data=$1 encoder=$2 work=$3 name=${4-open-en}
case $name in
  open-en) base=all-MiniLM-L6-v2 steps=${5-2500} rate=3e-4 ;;
  open-en-base) base=all-mpnet-base-v2 steps=${5-960} rate=1e-4 ;;
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
  --learning-rate "$rate" --bf16 --validation-examples 300 --load-best-model-at-end True)  # as the shipped ones were; recipe open keeps the last
export OMP_NUM_THREADS=1  # a process for each core: threads of one process gain less
one=(nerbert pretrain "${flags[@]}" --per-device-train-batch-size 32)
if [ "$name" = open-en ]; then
  taggers=("$work/$name-7" "$work/$name-8")
  trap 'kill $(jobs -p) 2> /dev/null || true' EXIT
  "${one[@]}" --data-seed 7 --output "${taggers[0]}" &
  "${one[@]}" --data-seed 8 --output "${taggers[1]}"
  wait $!
else
  taggers=("$work/$name-1")
  "${one[@]}" --output "${taggers[0]}"
fi
python -m finetune.tagger.shipped --encoder "$encoder" --name "sentence-transformers/$base" --tagger "${taggers[@]}" --output "$work/$name"
