#!/usr/bin/env python3
"""Installs a build into a temporary folder and builds consumers of it: the example in each public
header and those of examples/ that know nothing else, in C and C++, by find_package and by pkg-config;
and configures a project that adds Tidepool as a subdirectory. The arguments are the source folder, the
build folder and the C++ compiler."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE, BUILD, COMPILER = sys.argv[1:4]

# What stands before an example that goes on with another header's.
NEEDS = {"plan": ["program", "machine"]}
# Of examples/, with what they have to print; they are there with session.h.
SESSION_EXAMPLES = {"session_trainer.cpp": "bit for bit", "session.c": "should be 98316"}
LIBRARY = {"train": "train", "session": "session"}
PREFACE = {"plan": "const tp::Machine& machine = known;\n"}
CXX = """#include <tidepool/{name}.h>

#include <fstream>
#include <iostream>
#include <vector>

int main() {{
  using namespace std::chrono_literals;
  try {{
{body}
  }} catch (const tp::Error& error) {{
    std::cerr << error.what() << '\\n';
    return 1;
  }}
  return 0;
}}
"""
C = """#include <tidepool/tidepool.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {{
  static char json[1 << 20];
  FILE* file = fopen(argv[argc - 1], "rb");
  if (file == NULL) return 2;
  json[fread(json, 1, sizeof json - 1, file)] = 0;
  fclose(file);
{body}
  if (plan == NULL) {{
    tp_error_info error = TP_INIT(tp_error_info);
    tp_error(&error);
    fprintf(stderr, "%s\\n", error.message);
    return 1;
  }}
  tp_plan_free(plan);
  tp_machine_free(machine);
  tp_program_free(program);
  return tp_abi() == TP_ABI ? 0 : 3;
}}
"""
LISTS = """cmake_minimum_required(VERSION 3.20)
project(consumers C CXX)
find_package(Tidepool 0.1 REQUIRED)
add_compile_options(-Wall -Wextra -Wpedantic -Werror)
"""
SUBPROJECT = f"""cmake_minimum_required(VERSION 3.25)
project(parent CXX)
add_subdirectory({SOURCE} tidepool)
if(NOT TARGET Tidepool::tidepool OR TARGET api_test OR TARGET all_tests)
  message(FATAL_ERROR "the library is there, tests are not")
endif()
"""


def run(*command, **more):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def example(name, mark):
    """The indented lines of the comment at a header's beginning."""
    lines = []
    text = (pathlib.Path(SOURCE) / "include/tidepool" / f"{name}.h").read_text(encoding="utf-8")
    for line in text.splitlines():
        if not line.startswith(mark):
            break
        if line.startswith(mark + "   "):
            lines.append(line[len(mark):])
    if not lines:
        sys.exit(f"{name}.h has no example")
    return "\n".join(lines)


def c_example():
    text = (pathlib.Path(SOURCE) / "include/tidepool/tidepool.h").read_text(encoding="utf-8")
    head = text[:text.index("#ifndef")].splitlines()
    return "\n".join(line[2:] for line in head if line.startswith(" *   "))


def sources(folder, names):
    for name in names:
        body = "\n".join(example(n, "//") for n in NEEDS.get(name, []))
        body += "\n" + PREFACE.get(name, "") + example(name, "//")
        (folder / f"{name}.cpp").write_text(CXX.format(name=name, body=body), encoding="utf-8")
    (folder / "in_c.c").write_text(C.format(body=c_example()), encoding="utf-8")


def by_package(folder, prefix, names):
    lists = LISTS + "add_executable(in_c in_c.c)\ntarget_link_libraries(in_c Tidepool::tidepool)\n"
    lists += "set_target_properties(in_c PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF)\n"
    for name in names:
        lists += f"add_executable({name} {name}.cpp)\n"
        lists += f"target_link_libraries({name} Tidepool::{LIBRARY.get(name, 'tidepool')})\n"
    if "session" in names:
        lists += "find_package(Tidepool 0.1 REQUIRED COMPONENTS session)\n"
        for example_file in SESSION_EXAMPLES:
            target = f"example_{pathlib.Path(example_file).stem}"
            lists += f"add_executable({target} {SOURCE}/examples/{example_file})\n"
            lists += f"target_link_libraries({target} Tidepool::session)\n"
            lists += f"target_compile_options({target} PRIVATE -O2)\n"  # it computes itself
            lists += f"set_target_properties({target} PROPERTIES C_STANDARD 99)\n"
    (folder / "CMakeLists.txt").write_text(lists, encoding="utf-8")
    run("cmake", "-G", "Ninja", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_COMPILER={COMPILER}")
    run("cmake", "--build", folder / "build")
    return folder / "build"


def by_pkg_config(folder, libraries):
    environment = dict(os.environ, PKG_CONFIG_PATH=str(libraries / "pkgconfig"))
    flags = run("pkg-config", "--cflags", "--libs", "tidepool", env=environment).split()
    link = [*flags, f"-Wl,-rpath,{libraries}"]
    run("cc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", folder / "in_c.c", "-o",
        folder / "pc_c", *link)
    run(COMPILER, "-std=c++20", "-Wall", "-Wextra", "-Werror", folder / "machine.cpp", "-o",
        folder / "pc_cpp", *link)
    run(folder / "pc_cpp", cwd=folder)
    return folder / "pc_c"


def session_examples(built, libraries):
    """Those by find_package, and the C one by pkg-config too."""
    for example_file, expected in SESSION_EXAMPLES.items():
        printed = run(built / f"example_{pathlib.Path(example_file).stem}")
        if expected not in printed:
            sys.exit(f"{example_file} prints\n{printed}")
    environment = dict(os.environ, PKG_CONFIG_PATH=str(libraries / "pkgconfig"))
    flags = run("pkg-config", "--cflags", "--libs", "tidepool_session", env=environment).split()
    run("cc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
        pathlib.Path(SOURCE) / "examples/session.c", "-o", built / "pc_session", *flags,
        f"-Wl,-rpath,{libraries}")
    run(built / "pc_session")


def main():
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        prefix = folder / "installed"
        run("cmake", "--install", BUILD, "--prefix", prefix)
        libraries = next(prefix.glob("lib*/**/libtidepool.so.1")).parent
        names = ["program", "machine", "plan", "pack"]
        if (prefix / "include/tidepool/train.h").exists():
            names.append("train")
        if (prefix / "include/tidepool/session.h").exists():
            names.append("session")
        consumers = folder / "consumers"
        consumers.mkdir()
        sources(consumers, names)
        built = by_package(consumers, prefix, names)
        for name in names:
            print(name, run(built / name, cwd=folder))
        if "session" in names:
            session_examples(built, libraries)
        program = folder / "program.json"
        tool = prefix / "share/tidepool/network_program.py"
        run(sys.executable, tool, "--help")
        run(prefix / "bin/tidepool", "plan", "tiny-vgg", "--machine", "gtx1080ti", "--budget", "60%",
            "--no-cache", "--evaluations", "5", "-o", folder / "plan.json")
        plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
        program.write_text(json.dumps(plan["program"]), encoding="utf-8")
        for consumer in (built / "in_c", by_pkg_config(consumers, libraries)):
            run(consumer, program)
        loads_clp(folder, prefix)
        parent = folder / "parent"
        parent.mkdir()
        (parent / "CMakeLists.txt").write_text(SUBPROJECT, encoding="utf-8")
        run("cmake", "-G", "Ninja", "-S", parent, "-B", parent / "build", "-DTIDEPOOL_CUDA=OFF",
            "-DBUILD_TESTING=ON", f"-DCMAKE_CXX_COMPILER={COMPILER}")


def loads_clp(folder, prefix):
    """The part that knows lower bounds is found beside the program."""
    maps = run("sh", "-c", f"LD_DEBUG=files {prefix}/bin/tidepool bound tiny-vgg --machine gtx1080ti "
               f"--budget 60% --time-limit 5s 2>&1 | grep -c {prefix}/.*tidepool_clp.so"
               " || true", cwd=folder)
    if int(maps.strip().splitlines()[-1]) == 0:
        sys.exit("the installed program does not load its own tidepool_clp.so: " + maps)


if __name__ == "__main__":
    main()
