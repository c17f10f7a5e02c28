#!/usr/bin/env bash
# Everything that needs a GPU, in one call of at most ten minutes: the tests marked gpu, the digest's throughput, a golden
# candidate and a check against it, what fingerprints cost, a first look at what determinism costs, and the CPU's golden
# on this machine. All figures go to one file, and the table at the end says what held.
#
#     benchmarks/on_gpu.sh [--out FOLDER] [--pipeline nemotron-h200] [SECTION…]
#
# Sections: facts tests digest golden fingerprints overhead cpu. Without any, all of them, in this order. A section that
# fails or takes too long is named, and the others still run while there is time. Exit status: 0 where all held.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

# Seconds for all sections together.
TOTAL=${TOTAL:-580}

out=runs/on-gpu-$(date -u +%Y%m%dT%H%M%SZ)
pipeline=nemotron-h200
sections=()
while (($#)); do
    case $1 in
        --out) out=$2; shift 2 ;;
        --pipeline) pipeline=$2; shift 2 ;;
        facts | tests | digest | golden | fingerprints | overhead | cpu) sections+=("$1"); shift ;;
        *) sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
((${#sections[@]})) || sections=(facts tests digest golden fingerprints overhead cpu)

python=${PYTHON:-.venv/bin/python}
mkdir -p "$out"
: >"$out/sections.tsv"
failed=0

# run NAME SECONDS COMMAND…: the command with a time limit; its output goes to a log and its end to the screen.
run() {
    local name=$1 limit=$2 status=0 begun=$SECONDS
    shift 2
    ((limit > TOTAL - SECONDS)) && limit=$((TOTAL - SECONDS))
    echo "== $name"
    if ((limit < 5)); then
        echo "No time is left."
        failed=1
        printf '%s\t%s\t%s\n' "$name" 124 0 >>"$out/sections.tsv"
        return
    fi
    timeout --kill-after=20 "$limit" "$@" >"$out/$name.log" 2>&1 || status=$?
    tail -n 12 "$out/$name.log"
    ((status)) && failed=1
    printf '%s\t%s\t%s\n' "$name" "$status" "$((SECONDS - begun))" >>"$out/sections.tsv"
}

for section in "${sections[@]}"; do
    case $section in
        facts) run facts 60 "$python" benchmarks/gpu/facts.py --json "$out/facts.json" ;;
        tests) run tests 120 "$python" -m pytest -q -m gpu tests/gpu/test_digest.py --durations=5 ;;
        digest) run digest 90 "$python" benchmarks/gpu/digest_throughput.py --json "$out/digest.json" ;;
        golden)
            run golden-record 300 "$python" -m validator golden record "$pipeline" --golden "$out/golden" \
                --out "$out/record" --approver 'on_gpu.sh' --reason 'golden candidate of this machine'
            run golden-check 300 "$python" -m validator check "$pipeline" --golden "$out/golden" --out "$out/check" \
                --json "$out/check.json"
            ;;
        fingerprints)
            run fingerprints 240 "$python" benchmarks/fingerprint_overhead.py --pipeline "$pipeline" --pairs 2 --steps 12 \
                --target 0.01 --json "$out/fingerprints.json"
            ;;
        overhead)
            run overhead 240 "$python" -m validator overhead "$pipeline" --quick --out "$out/overhead" \
                --json "$out/overhead.json"
            ;;
        cpu) run cpu 180 "$python" -m validator check nemotron-cpu --out "$out/cpu" --json "$out/cpu.json" ;;
    esac
done
"$python" benchmarks/gpu/figures.py "$out" "$pipeline"
exit "$failed"
