#!/usr/bin/env bash
# Check and measure this project on a GPU: scripts/check_gpu.sh FOLDER [key=value …]
#
# Attention on the GPU against attention in NumPy; training with cuDNN's kernel and with the definition, loss by loss;
# kills and resumes, with deterministic operations (the same bits) and without (how far apart); training steps of three
# models, two of them next to PyTorch's; attention by length; configs/tatoeba-base.yaml for eight minutes and its BLEU;
# decoding.
#
# Every command is printed and has a time limit. Its output goes to FOLDER/NAME.log, and its figures to JSON beside it.
# If one fails, the others still run. Runs are in FOLDER/runs, which can take gigabytes. key=value, such as
# data.root=PATH, applies to every training of tatoeba-base. Activate .venv first; it needs the extras cuda and bench.
set -u
cd "$(dirname "$0")/.."
folder=$(realpath -m "${1:?name a folder for logs and figures}")
shift
mkdir -p "$folder/tuned"

run() {  # NAME MINUTES COMMAND
    local name=$1 minutes=$2
    shift 2
    echo "$name: $*" | tee -a "$folder/$name.log"
    timeout -k 10 "${minutes}m" env "$@" >> "$folder/$name.log" 2>&1
    echo "$name: ended with $? after $SECONDS s in all" | tee -a "$folder/$name.log"
}

base="configs/tatoeba-base.yaml $*"
bfloat16="model.dtype=bfloat16 model.matmul_dtype=bfloat16"
fast="decoding.beam_size=1 decoding.max_length_factor=1 decoding.batch_sentences=500"

run kernels 5 JAX_PLATFORMS=cuda,cpu python -m pytest -q -n 8 -p no:cacheprovider tests/attention

for kernel in cudnn definition; do
    run agreement 4 python train.py $base $fast training.steps=200 training.profile=[21,30] training.log_every=5 \
        model.kernel=$kernel run_dir="$folder/runs/by-$kernel"
done
run agreement 3 python scripts/replay.py "$folder/runs/by-cudnn" "$folder/runs/by-definition"

proof="configs/quickstart.yaml $bfloat16 $fast training.steps=1000 training.eval_every=1000 training.save_every=100"
kills="--seed 3 --faults 2 --scenarios train --kinds SIGKILL"
run resume 6 XLA_FLAGS=--xla_gpu_deterministic_ops=true python -m tests.faults.prove $proof $kills \
    run_dir="$folder/runs/deterministic"
run resume 6 python -m tests.faults.prove $proof $kills run_dir="$folder/runs/as-it-is"
# Only runs that differ are kept. If there is none, the pattern stays as it is, and replay.py reports that.
for killed in "$folder"/runs/as-it-is/fault-[0-9]*/run; do
    run resume 3 python scripts/replay.py "$folder/runs/as-it-is/train/run" "$killed"
done

# The programs share autotuning results, so compile times are shorter than in a first run.
tuned="XLA_FLAGS=--xla_gpu_per_fusion_autotune_cache_dir=$folder/tuned"
for model in transformer-big:128 transformer-base:192 tatoeba-base:128; do
    name=${model%:*}
    train="python scripts/benchmark.py train configs/$name.yaml --rows ${model#*:} --minutes=3 --gpu"
    run training 5 $tuned $train --kernels cudnn,definition --json "$folder/training-$name.json"
    [ $name = tatoeba-base ] && continue  # PyTorch's model has no rotary positions
    run training 5 $tuned $train --sentences=1 --kernels=auto --peer torch --json "$folder/training-$name-torch.json"
done

run attention 8 python scripts/benchmark.py attention --gpu --kernels=definition,chunked,cudnn --minutes=5 \
    --json "$folder/attention.json"

run quality 12 python train.py $base training.minutes=8 run_dir="$folder/runs/quality"
run quality 3 python eval.py "$folder/runs/quality" --output "$folder/eval"

run decoding 8 python scripts/benchmark.py decode --gpu --json "$folder/decoding.json"
