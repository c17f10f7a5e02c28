#!/usr/bin/env bash
# Everything that needs a GPU, in one call of at most ten minutes. All figures go to one file, and the table at the end
# says what held. Exit status: 0 where everything that was asked for held.
#
#     benchmarks/on_gpu.sh [--out FOLDER] [--pipeline nemotron-h200] [SECTION…]
#
# Sections: facts digest tests golden check default-mode cpu fingerprints overhead. Without any, all of them. What
# failed or did not get time runs in a further call, by its name; golden and check belong together in one call.
#
#     facts         what is here, and whether a launch's Python finds torch and Megatron by itself: if not, nothing runs
#     digest        throughput on 1 GB, against a copy on the device, torch.hash_tensor, and SHA-256 on the host
#     tests         the digest's tests (the other tests that need a GPU: make test-gpu)
#     golden        a golden candidate: two launches that agree
#     check         a third launch against that golden, and the chain of resumes; names what upstream breaks
#     default-mode  two launches of the fastest default mode: where they part, and in which module
#     cpu           nemotron-cpu on this machine's CPU, against the golden that is shipped
#     fingerprints  what they cost at every step, in two pairs of launches
#     overhead      what determinism costs, in two pairs of launches, and by operator
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

# Seconds for all sections together.
TOTAL=${TOTAL:-580}

# Seconds that are expected where a launch takes 30 (nobody has measured it yet; 25 to 35 is the guess for one H200):
#     facts 25, digest 30; then golden 60 (2 launches) and check 110 (4, three of them cut short), beside tests 60,
#     default-mode 70 (2, with traces) and cpu 25 (1); then fingerprints 120 (4) and overhead 180 (6).
# That is 525 together. What is timed has the machine to itself. The overhead leaves its two profiled launches out where
# they do not fit any more; a section for which fewer seconds are left than its second number below is not begun.
names=(facts digest tests golden check default-mode cpu fingerprints overhead)
python=${PYTHON:-.venv/bin/python}
out=runs/on-gpu-$(date -u +%Y%m%dT%H%M%SZ)
pipeline=nemotron-h200
sections=()
while (($#)); do
    case $1 in
        --out) out=$2; shift 2 ;;
        --pipeline) pipeline=$2; shift 2 ;;
        *)
            [[ " ${names[*]} " == *" $1 "* ]] || { sed -n '2,18s/^# \{0,1\}//p' "$0" >&2; exit 2; }
            sections+=("$1"); shift
            ;;
    esac
done
((${#sections[@]})) || sections=("${names[@]}")

# Scripts and commands find the package here, installed or not. Launches do not see this variable.
export PYTHONPATH=$PWD${PYTHONPATH:+:$PYTHONPATH}

mkdir -p "$out/golden" || exit 2
: >"$out/sections.tsv"
child='' lane=''
# shellcheck disable=SC2329 # the trap calls it
stop() { for each in $child $lane; do kill "$each" 2>/dev/null; done; exit 143; }
trap stop INT TERM

chosen() { [[ " ${sections[*]} " == *" $1 "* ]]; }

# note NAME STATUS SECONDS: one line of the table. The status of a section that was not begun is empty.
note() { printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>"$out/sections.tsv"; }

# run NAME LIMIT LEAST COMMAND…: the section's command, if it is chosen, for at most LIMIT seconds and only where LEAST
# are left. Its output goes to a log, and the end of that to the screen.
run() {
    local name=$1 limit=$2 least=$3 status=0 begun=$SECONDS
    shift 3
    chosen "$name" || return 0
    ((limit > TOTAL - SECONDS)) && limit=$((TOTAL - SECONDS))
    if ((limit < least)); then
        printf '== %s\nNot run: %s seconds are left.\n' "$name" "$((limit > 0 ? limit : 0))"
        note "$name" '' 0
        return 0
    fi
    SECONDS_LEFT=$limit timeout --kill-after=20 "$limit" "$@" >"$out/$name.log" 2>&1 &
    child=$!
    wait "$child" || status=$?
    child=''
    printf '== %s\n%s\n' "$name" "$(tail -n 12 "$out/$name.log")"
    note "$name" "$status" "$((SECONDS - begun))"
}

# What a launch imports, without the caller's PYTHONPATH, as a launch is started; names the first that is missing.
by_itself() {
    timeout 120 "$python" -I -c '
import importlib, importlib.util, sys
for name in ("torch", "megatron.core"):
    try:
        importlib.import_module(name)
    except Exception as error:
        sys.exit(f"{name} ({type(error).__name__}: {error})".splitlines()[0])
for name in ("megatron.training", "numpy", "einops", "psutil"):
    if importlib.util.find_spec(name) is None:
        sys.exit(name)
' 2>&1
}

finish() { "$python" benchmarks/gpu/figures.py "$out" "$pipeline"; exit $?; }

if chosen facts && ! lacking=$(by_itself); then
    lacking=${lacking##*$'\n'}
    sentence="$python cannot import ${lacking:-torch in 120 s} by itself, and launches do not see PYTHONPATH: install"
    sentence+=" what is missing into it, or make a virtual environment with --system-site-packages around it, and give"
    sentence+=" that environment's bin/python as PYTHON."
    printf '== facts\n%s\n' "$sentence" | tee "$out/facts.log"
    note facts 3 "$SECONDS"
    for name in "${names[@]:1}"; do chosen "$name" && note "$name" '' 0; done
    finish
fi
run facts 60 5 "$python" benchmarks/gpu/facts.py --json "$out/facts.json"
run digest 90 20 "$python" benchmarks/gpu/digest_throughput.py --json "$out/digest.json"

# Nothing is timed in these: two launches at a time.
# shellcheck disable=SC2016 # the inner shell expands
{
    trap stop INT TERM
    run tests 150 20 "$python" -m pytest -q -m gpu tests/gpu/test_digest.py --durations=5
    run default-mode 240 60 "$python" benchmarks/gpu/default_mode.py "$pipeline" --out "$out/default-mode" \
        --json "$out/default-mode.json"
    run cpu 180 30 bash -c '
        sed "s/resume: required}/resume: off}/" pipelines/nemotron-cpu.yaml >"$1/nemotron-cpu.yaml" &&
        exec "$0" -m validator check "$1/nemotron-cpu.yaml" --out "$1/cpu" --json "$1/cpu.json"
        ' "$python" "$out"
} &
lane=$!
run golden 180 60 "$python" benchmarks/gpu/golden.py "$pipeline" --golden "$out/golden" --out "$out/record" \
    --json "$out/golden.json"
# shellcheck disable=SC2016 # the inner shell expands
run check 300 90 bash -c '
    "$0" -m validator check "$1" --golden "$2/golden" --overhead off --out "$2/check" --json "$2/check.json"
    exec "$0" benchmarks/gpu/candidate.py "$2/check.json" --pipeline "$1" --out "$2" --json "$2/candidate.json"
    ' "$python" "$pipeline" "$out"
wait "$lane"
lane=''

run fingerprints 200 90 "$python" benchmarks/fingerprint_overhead.py --pipeline "$pipeline" --pairs 2 --steps 12 \
    --target 0.01 --json "$out/fingerprints.json"
run overhead 280 100 "$python" benchmarks/gpu/first_look.py "$pipeline" --out "$out/overhead" \
    --json "$out/overhead.json"
finish
