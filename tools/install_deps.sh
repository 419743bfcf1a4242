#!/bin/bash
# Installs the Debian packages that are missing: tools/install_deps.sh GROUP... (groups of
# tools/debian_packages.txt). Never fails: where nothing can be installed it says what is missing and leaves
# the verdict to the build. Says nothing when nothing is missing, or where there is no dpkg to ask.
set -uo pipefail
list=$(dirname "$0")/debian_packages.txt

command -v dpkg-query >/dev/null || exit 0
installed=" $(dpkg-query -W -f '${db:Status-Status}:${Package} ' 2>/dev/null) "

missing=()
while read -r group choices; do
  [[ -z $group || $group == \#* || " $* " != *" $group "* ]] && continue
  found=no
  for package in ${choices//|/ }; do
    [[ $installed == *" installed:$package "* ]] && found=yes
  done
  [[ $found == no ]] && missing+=("$choices")
done <"$list"
[[ ${#missing[@]} -eq 0 ]] && exit 0

give_up() {
  echo "vitrail: missing packages: ${missing[*]}" >&2
  echo "vitrail: $1; going on with what is there" >&2
  exit 0
}

command -v apt-get >/dev/null || give_up "there is no apt-get here"
as_root=()
if [[ $(id -u) -ne 0 ]]; then
  command -v sudo >/dev/null || give_up "not root, and there is no sudo"
  as_root=(sudo)
  [[ -t 0 ]] || as_root=(sudo -n)
fi
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Acquire::Retries=1 \
    -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 -o DPkg::Lock::Timeout=60 "$@" </dev/null
}

echo "vitrail: installing ${missing[*]}" >&2
apt update >&2 || echo "vitrail: the package lists could not be refreshed" >&2
wanted=()
unknown=()
for choices in "${missing[@]}"; do
  chosen=
  for package in ${choices//|/ }; do
    [[ -z $chosen ]] && apt-cache show "$package" >/dev/null 2>&1 && chosen=$package
  done
  if [[ -n $chosen ]]; then wanted+=("$chosen"); else unknown+=("$choices"); fi
done
if [[ ${#wanted[@]} -gt 0 ]]; then
  apt install --no-install-recommends "${wanted[@]}" >&2 || give_up "apt-get could not install them"
fi
missing=("${unknown[@]}")
[[ ${#missing[@]} -eq 0 ]] || give_up "this release has no such package"
