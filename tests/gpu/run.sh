#!/usr/bin/env bash
# Run the experiments of this folder on a machine with an NVIDIA GPU, torch and no network:
#     bash run.sh WHEELS OUT [PLAN] [OPTION ...]           make gpu WHEELS=... OUT=... PLAN=... does the same
# WHEELS is the folder that wheelhouse.sh filled; OUT gets results (*.jsonl) and a log. PLAN is one of first (default),
# second, third, promises, last, park, tests, all, or experiments of one program: facts:NAME,NAME or product:NAME,NAME. Options: --dry,
# --seconds N (for all together; 540), --scale X (of all limits).
set -uo pipefail

main() {
    [ $# -ge 2 ] || { sed -n 2,6p "$0"; exit 2; }
    here=$(cd "$(dirname "$0")" && pwd)
    wheels=$(cd "$1" && pwd) || exit 2
    mkdir -p "$2" && out=$(cd "$2" && pwd) || exit 2
    shift 2
    local plan=first seconds=540
    if [ $# -gt 0 ] && [ "${1#--}" = "$1" ]; then plan=$1; shift; fi
    options=()
    while [ $# -gt 0 ]; do
        case $1 in
            --seconds) seconds=$2; shift 2 ;;
            *) options+=("$1"); shift ;;
        esac
    done
    end=$((SECONDS + seconds))
    image=${PYTHON:-python3}
    env=${KIT_ENV:-/tmp/kit-env}
    export KIT_CHECKOUT=${KIT_CHECKOUT:-$PWD} PYTHONUNBUFFERED=1 PIP_DISABLE_PIP_VERSION_CHECK=1
    export PYTHONPATH=$here${PYTHONPATH:+:$PYTHONPATH}
    install || { echo "the packages could not be installed"; exit 1; }
    echo "installed after $SECONDS s: $python"
    versions
    cd "$out" || exit 1  # Python would find the package of a checkout first
    case $plan in
        first | second | third | promises | last | park) "$plan" ;;
        tests) lane product product tests ;;
        all) first; second; third ;;
        facts:* | product:*) IFS=, read -r -a names <<< "${plan#*:}"; lane "${plan%%:*}" "${plan%%:*}" "${names[@]}" ;;
        *) echo "there is no plan $plan"; exit 2 ;;
    esac
    "$python" -m kit.report "$out" > "$out/report.txt"
    tail -c 3000 "$out/report.txt"
    echo "over after $SECONDS s"
    exit 0
}

install() {
    if [ -x "$env/bin/python" ] && "$env/bin/python" -c 'import torch, jupyter_dist' 2> /dev/null; then
        python=$env/bin/python
    elif make_env; then
        python=$env/bin/python
    else
        echo "no virtual environment: packages go to a folder"
        make_target && python=$image
    fi
}

# An environment over that of the image: its own packages first, then the image's, torch among them. The lines of .pth
# files hold in every process of its Python, whatever environment variables that is started with.
make_env() {
    rm -rf "$env"
    "$image" -m venv --without-pip "$env" || return 1
    local site
    site=$("$env/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))') || return 1
    "$image" -m pip --python "$env/bin/python" install --quiet --no-index --no-deps --no-compile --no-cache-dir \
        "$wheels"/*.whl || return 1
    "$image" -c 'import site, sys, sysconfig
found = dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()])
found.update(dict.fromkeys(path for path in sys.path if path.endswith(("site-packages", "dist-packages"))))
print("\n".join(found))' > "$site/zz_image.pth"
    "$env/bin/python" -c 'import torch, jupyter_dist, jupyter_server'
}

# Where no virtual environment can be made: a folder on PYTHONPATH.
make_target() {
    env=$env-target
    "$image" -m pip install --quiet --no-index --no-deps --no-compile --no-cache-dir --upgrade --target "$env" \
        "$wheels"/*.whl || return 1
    export PYTHONPATH=$env${PYTHONPATH:+:$PYTHONPATH}
    "$image" -c 'import torch, jupyter_dist, jupyter_server'
}

versions() {
    "$python" - <<'PY'
import importlib.metadata as metadata, platform
names = "jupyter_dist torch triton numpy ipython jupyter_server pyzmq psutil nvidia-ml-py nvidia-nccl-cu13 pytest".split()
def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "-"
print(platform.python_version(), platform.machine(), *(f"{name} {version(name)}" for name in names), sep=", ")
PY
    if command -v nvidia-smi > /dev/null; then
        nvidia-smi --query-gpu=name,driver_version,memory.used,memory.total --format=csv,noheader
    fi
}

# A lane runs its experiments one after the other; lanes run at the same time, on one device too. A device whose time is
# shared is slower, so seconds are upper bounds; what needs the device for itself comes first in a lane of its own.
lane() {  # NAME PROGRAM EXPERIMENTS...
    local name=$1 program=$2 left=$((end - SECONDS))
    shift 2
    [ $left -gt 10 ] || { echo "$name: no time is left"; return; }
    timeout --kill-after=10 $((left + 15)) "$python" -m "$program" --out "$out/$name.jsonl" --log "$out/log.txt" \
        --seconds $left ${options[@]+"${options[@]}"} "$@" 2>&1 | sed -u "s/^/[$name] /"
}

first() {
    lane facts facts names two_recorders one_gpu hang_warm hang_cold peer_killed two_comms eager abort_healthy sticky_error &
    lane product product start hang ways_of_waiting start_many hang_cold eager models &
    { lane slow facts watchdog fork_safety graphs mismatch mixed_backends visible
      lane slow product killed healthy broken_device; } &
    wait
}

second() {
    lane facts facts memory ras
    lane product product out_of_memory
    lane facts facts checkpoint hang_ten profile other_nccl &
    lane product product objects hang_ten subgroups gloo_on_device nodes &
    lane slow product late two_groups graphs &
    wait
}

# What jupyter_dist promises on a GPU, in one run of four minutes: at most five lanes on a device. The tests look for a
# device that idles, so they run alone, after the lanes; the plan `third` has them without the rest.
promises() {
    end=$((end - 90))
    lane a product hang hang_ten models start_many &
    { lane b product hang_cold eager subgroups
      lane b facts stale ras xid staging; } &
    lane c product gloo_on_device &
    lane d product ways_of_waiting healthy broken_device graphs killed objects &
    lane e product recovery late &
    wait
    end=$((end + 90))
    lane f product tests
}

# What was changed last, most important first, alone on the device: 200 s.
last() {
    lane facts facts driver_locks
    lane product product busy_driver broken_device old_connections hang objects
}

park() { lane park product park park_for_another; }

third() { lane product product tests; }

main "$@"
