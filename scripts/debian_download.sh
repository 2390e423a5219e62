#!/usr/bin/env bash
# Downloads packages of another Debian release from the mirror this system uses, into a folder, and
# installs nothing. Their signatures are checked. TIDEPOOL_DEBIAN_MIRROR names another mirror.
#
#   scripts/debian_download.sh RELEASE COMPONENT FOLDER PACKAGE...
set -euo pipefail

fail() {
  echo "debian_download.sh: $*" >&2
  exit 1
}

[[ $# -ge 4 ]] || fail "it takes RELEASE COMPONENT FOLDER PACKAGE..."
release=$1
component=$2
folder=$3
shift 3
command -v apt-get > /dev/null || fail "this is not a Debian-like system"

mirror=${TIDEPOOL_DEBIAN_MIRROR:-}
if [[ -z $mirror ]]; then
  # shellcheck source=/dev/null
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  # shellcheck disable=SC2016
  mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    awk -v name="$codename" '($2 == name || $2 == "stable") && $3 == "main" { print $1; exit }')
fi
[[ -n $mirror ]] || fail "found no Debian mirror in apt's sources; name one in TIDEPOOL_DEBIAN_MIRROR"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[[ -f $keys ]] || fail "$keys is missing; install debian-archive-keyring"

# An apt of its own, which knows nothing of this system.
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
apt=$(mktemp -d)
trap 'rm -rf "$apt"' EXIT
mkdir -p "$apt"/{lists,cache,sources}
echo "deb [signed-by=$keys arch=amd64] $mirror $release $component" > "$apt/sources/one.list"
: > "$apt/status"
options=(
  --quiet
  --option Dir::Etc::SourceList=/dev/null
  --option Dir::Etc::SourceParts="$apt/sources"
  --option Dir::State::Lists="$apt/lists"
  --option Dir::State::Status="$apt/status"
  --option Dir::Cache="$apt/cache"
  --option APT::Architecture=amd64
  --option APT::Architectures=amd64
  --option APT::Sandbox::User=
)
apt-get "${options[@]}" update >&2 || fail "no list of the packages of $release"
(cd "$folder" && apt-get "${options[@]}" download "$@" >&2) ||
  fail "could not download from $release: $*"
