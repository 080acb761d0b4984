# . env.sh: adds mtplan's programs to PATH, and the folders of NVIDIA's
# libraries to LD_LIBRARY_PATH, first those of python3's wheels, then those of
# $CUDA_HOME or /usr/local/cuda. Folders that are already in LD_LIBRARY_PATH
# stay before them; the loader uses the first copy of a library.
#
# shellcheck shell=sh disable=SC3028
_mtplan_add() {
  case ":${LD_LIBRARY_PATH:-}:" in
  *":$1:"*) ;;
  *) LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$1 ;;
  esac
}

# Prints the folders of wheels, nvidia/*/lib below each folder of sys.path.
_mtplan_wheels() {
  command -v python3 >/dev/null || return 0
  python3 - <<'PYTHON' 2>/dev/null
import glob, sys
for place in sys.path:
    for folder in sorted(glob.glob(place + "/nvidia/*/lib")):
        if " " not in folder:
            print(folder)
PYTHON
}

_mtplan_root=$(cd "$(dirname "${BASH_SOURCE:-$0}")" && pwd)
case ":$PATH:" in
*":$_mtplan_root/bin:"*) ;;
*) PATH=$_mtplan_root/bin:$PATH ;;
esac
for _mtplan_folder in $(_mtplan_wheels) "${CUDA_HOME:-/usr/local/cuda}/lib64" \
  "${CUDA_HOME:-/usr/local/cuda}/lib"; do
  [ ! -e "$_mtplan_folder" ] || _mtplan_add "$_mtplan_folder"
done
export PATH LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}"
unset _mtplan_root _mtplan_folder
unset -f _mtplan_add _mtplan_wheels
