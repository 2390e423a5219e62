#!/usr/bin/env bash
# Makes a folder with Debian 11's C library (2.31) for the linker, and its unwinder, which asks for
# nothing newer (TIDEPOOL_PORTABLE in cmake/portable.cmake). Does nothing when the folder is there.
#
#   scripts/old_c_library.sh FOLDER
set -euo pipefail

fail() {
  echo "old_c_library.sh: $*" >&2
  exit 1
}

[[ $# -eq 1 ]] || fail "it takes FOLDER"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[[ -e $1/complete ]] && exit 0

# shellcheck source=scripts/new_folder.sh
. "$here/new_folder.sh"
begin_folder "$1" complete
mkdir "$new/unwinder"
"$here/debian_download.sh" bullseye main "$new" libc6 libc6-dev libgcc-10-dev
for package in "$new"/libc6*.deb; do
  dpkg -x "$package" "$new"
done
# Links to /lib would lead to this system's.
find "$new" -type l -lname '/*' | while read -r link; do
  ln -sfr "$new$(readlink "$link")" "$link"
done
dpkg --fsys-tarfile "$new"/libgcc-10-dev*.deb |
  tar -x -C "$new/unwinder" --wildcards --strip-components=6 '*/libgcc_eh.a'
rm -rf "$new"/*.deb "${new:?}"/usr/{include,share}
touch "$new/complete"
end_folder
