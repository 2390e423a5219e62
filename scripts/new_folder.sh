# For scripts that make a folder, which define `fail`: it is made beside its place and takes that when
# it is whole, so that what lies there is whole, and stays if the new one fails.
# shellcheck shell=bash disable=SC2034

# begin_folder FOLDER MARKER...: sets `folder`, the place, and `new`, the folder to fill. Refuses to
# replace what is not empty and has not all the files that tell the script's own folders.
begin_folder() {
  local marker
  [[ -n $1 ]] || fail "the folder has no name"
  folder=$(realpath -m -- "$1")
  shift
  [[ ! -e $folder || -d $folder ]] || fail "$folder is there and is no folder"
  if [[ -d $folder && -n $(ls -A "$folder") ]]; then
    for marker in "$@"; do
      [[ -f $folder/$marker ]] ||
        fail "$folder is not empty, and no $marker in it says that it was made here: it is left alone"
    done
  fi
  mkdir -p "$(dirname "$folder")"
  new=$(mktemp -d "$folder.XXXXXX")
  chmod 755 "$new"
  trap 'rm -rf "$new"' EXIT
}

# The new folder is whole.
end_folder() {
  local old=$new.old
  [[ ! -d $folder ]] || mv -T "$folder" "$old" || fail "could not replace $folder"
  if ! mv -T "$new" "$folder"; then
    [[ ! -d $old ]] || mv -T "$old" "$folder"
    fail "could not make $folder"
  fi
  rm -rf "$old"
}
