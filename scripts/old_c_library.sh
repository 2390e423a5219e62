#!/usr/bin/env bash
# Makes a folder with Debian 11's C library (2.31) for the linker, and its unwinder, which asks for
# nothing newer (TIDEPOOL_PORTABLE in cmake/portable.cmake). Does nothing when the folder is there.
#
#   scripts/old_c_library.sh FOLDER
set -euo pipefail

folder=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[[ -e $folder/complete ]] && exit 0

rm -rf "$folder"
mkdir -p "$folder/unwinder"
"$here/debian_download.sh" bullseye main "$folder" libc6 libc6-dev libgcc-10-dev
for package in "$folder"/libc6*.deb; do
  dpkg -x "$package" "$folder"
done
# Links to /lib would lead to this system's.
find "$folder" -type l -lname '/*' | while read -r link; do
  ln -sfr "$folder$(readlink "$link")" "$link"
done
dpkg --fsys-tarfile "$folder"/libgcc-10-dev*.deb |
  tar -x -C "$folder/unwinder" --wildcards --strip-components=6 '*/libgcc_eh.a'
rm -rf "$folder"/*.deb "${folder:?}"/usr/{include,share}
touch "$folder/complete"
