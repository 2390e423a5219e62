#!/usr/bin/env bash
# Prints the newest version of glibc, libstdc++ and libgcc that the programs and libraries in a
# folder ask for. Fails when one asks for a glibc after LIMIT, for any version of libstdc++ or
# libgcc, or for a library that is neither in the folder nor part of the C library.
#
#   scripts/check_symbols.sh FOLDER LIMIT        for instance 2.31
set -euo pipefail

[[ $# -eq 2 ]] || { echo "check_symbols.sh: it takes FOLDER LIMIT" >&2; exit 1; }
folder=$1
limit=$2
own='^(libc\.so\.6|libm\.so\.6|libdl\.so\.2|librt\.so\.1|libpthread\.so\.0|ld-linux-x86-64\.so\.2)$'

newest() { grep -oE "\b$1_[0-9]+(\.[0-9]+)*" <<< "$2" | sort -uV | tail -n 1 || true; }

bad=0
count=0
while IFS= read -r file; do
  [[ $(head -c 4 "$file" | tail -c 3) == ELF ]] || continue
  count=$((count + 1))
  asked=$(objdump -T "$file" | grep -F '*UND*'; objdump -p "$file" | sed -n '/^Version References/,$p')
  glibc=$(newest GLIBC "$asked")
  line="${file#"$folder"/}: ${glibc:-no GLIBC}"
  if [[ -n $glibc && $(printf '%s\n' "GLIBC_$limit" "$glibc" | sort -V | tail -n 1) != "GLIBC_$limit" ]]; then
    line+=" (after $limit)"
    bad=1
  fi
  for kind in GLIBCXX CXXABI GCC; do
    version=$(newest $kind "$asked")
    [[ -z $version ]] && continue
    line+=", $version"
    bad=1
  done
  for library in $(objdump -p "$file" | awk '$1 == "NEEDED" { print $2 }'); do
    [[ $library =~ $own || -n $(find "$folder" -name "$library" -print -quit) ]] && continue
    line+=", needs $library"
    bad=1
  done
  echo "  $line"
done < <(find "$folder" -type f | sort)
[[ $count -gt 0 ]] || { echo "check_symbols.sh: no programs in $folder" >&2; exit 1; }
[[ $bad -eq 0 ]] || { echo "check_symbols.sh: $folder asks for more than glibc $limit" >&2; exit 1; }
