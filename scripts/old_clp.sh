#!/usr/bin/env bash
# Makes a folder with Debian 11's Clp and the libraries under it, for the Python wheel: these run with
# the C library 2.31, and with the plain BLAS they take 15 MB. `include` has Clp's headers, `lib` the
# libraries, `licenses` what their packages say of copyright. Does nothing when the folder is there.
#
#   scripts/old_clp.sh FOLDER
set -euo pipefail

fail() {
  echo "old_clp.sh: $*" >&2
  exit 1
}

[[ $# -eq 1 ]] || fail "it takes FOLDER"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[[ -e $1/complete ]] && exit 0

# shellcheck source=scripts/new_folder.sh
. "$here/new_folder.sh"
begin_folder "$1" complete
libraries=(coinor-libclp1 coinor-libcoinutils3v5 liblapack3 libblas3 libgfortran5 libquadmath0 libbz2-1.0
  zlib1g)
"$here/debian_download.sh" bullseye main "$new/deb" coinor-libclp-dev coinor-libcoinutils-dev "${libraries[@]}"
for package in "$new"/deb/*.deb; do
  dpkg -x "$package" "$new/root"
done
mkdir -p "$new"/{include,lib,licenses}
mv "$new/root/usr/include/coin" "$new/include/coin"
# lapack and blas lie in folders of their own, for Debian's alternatives.
find "$new/root" -name 'lib*.so*' -exec mv -t "$new/lib" {} +
for package in "${libraries[@]}"; do
  copyright=$new/root/usr/share/doc/$package/copyright
  [[ ! -f $copyright || -L $copyright ]] || cp "$copyright" "$new/licenses/$package.txt"
done
rm -rf "${new:?}"/{deb,root}
touch "$new/complete"
end_folder
