#!/usr/bin/env python3
"""Whether `make install` on a clone without a build builds all that it installs: what the install
scripts of a new build folder take from it is there, or made by the target `install_parts`. The
arguments are the source folder and the C++ compiler."""

import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE, COMPILER = sys.argv[1:3]


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def taken_from(build):
    """Files of the build folder that the install scripts name, but for symbolic links to others."""
    scripts = [path.read_text(encoding="utf-8") for path in build.rglob("cmake_install.cmake")]
    found = set(re.findall(rf'"({re.escape(str(build))}/[^"$]+)"', "\n".join(scripts)))
    return {name for name in found if not name.endswith((".cmake", ".so", "install_manifest.txt"))
            or "/lib/tidepool/" in name}


def main():
    makefile = (pathlib.Path(SOURCE) / "Makefile").read_text(encoding="utf-8")
    recipe = makefile.split("\ninstall:\n", 1)[1].split("\n\n", 1)[0]
    if "install_parts" not in recipe.split("cmake --install")[0]:
        sys.exit("`make install` installs before it builds:\n" + recipe)
    with tempfile.TemporaryDirectory() as temporary:
        build = pathlib.Path(temporary).resolve() / "build"
        run("cmake", "--preset", "release", "-S", SOURCE, "-B", build, "-DTIDEPOOL_CUDA=OFF",
            f"-DCMAKE_CXX_COMPILER={COMPILER}")
        commands = run("ninja", "-C", build, "-t", "commands", "install_parts")
        made = {str(build / word) for word in commands.split()}
        taken = taken_from(build)
        missing = [name for name in sorted(taken)
                   if name not in made and not pathlib.Path(name).exists()]
        if missing:
            sys.exit("installed, and not built by `install_parts`:\n" + "\n".join(missing))
        built = [name for name in taken if name in made]
        print(f"{len(built)} of {len(taken)} are built")
        if not any("libtidepool.so" in name for name in built):
            sys.exit("the library is not among them")


if __name__ == "__main__":
    main()
