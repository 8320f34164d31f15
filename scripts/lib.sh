# Shared by the scripts here: find what is missing, ask, install.

# need PROGRAM PACKAGE: remembers the package if the program is not there.
missing=()
need() {
  command -v "$1" >/dev/null 2>&1 || missing+=("$2")
}

# Installs what was found missing with Debian's package manager; asks first unless CI=true.
install_missing() {
  [ "${#missing[@]}" -eq 0 ] && return 0
  if [ "${CI:-}" != true ]; then
    if [ ! -t 0 ]; then
      echo "missing: ${missing[*]}; install them, or set CI=true to let this script do it" >&2
      return 1
    fi
    read -r -p "Install ${missing[*]} with apt-get? [y/N] " answer
    case "$answer" in [yY]*) ;; *) echo "not installed; install ${missing[*]} yourself" >&2; return 1 ;; esac
  fi
  local sudo=""
  [ "$(id -u)" -eq 0 ] || sudo=sudo
  $sudo apt-get update -qq && $sudo apt-get install -y -qq "${missing[@]}"
}
