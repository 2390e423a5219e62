#!/usr/bin/env python3
"""Tests of the scripts that make folders (gpu_bundle.sh, cuda12_toolkit.sh, old_c_library.sh), with
shell scripts that stand in for CMake, dpkg, pip and the download."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent

def nvcc(major):
    return f'#!/bin/sh\necho "Cuda compilation tools, release {major}.4, V{major}.4.131"\n'


# Without nvcc it fails as CMake does; a build makes four programs.
CMAKE = """
if [ "$1" = --build ]; then
  [ -z "$BUILD_FAILS" ] || exit 1
  mkdir -p "$2/cli" "$2/tests" "$2/bench"
  for p in cli/tidepool_gpu tests/device_cuda_test tests/nn_cuda_test bench/bench_cuda; do
    echo "$p" > "$2/$p"
  done
  exit 0
fi
for a; do case $a in CMAKE_CUDA_COMPILER=*) nvcc=${a#*=} ;; build/gpu-*) build=$a ;; esac; done
: "${nvcc:=$NVCC}"
[ -n "$nvcc" ] || { echo "TIDEPOOL_CUDA is ON, but not found: nvcc" >&2; exit 1; }
mkdir -p "$build/CMakeFiles/3.25.1" "$build/CMakeFiles/3.31.6"
for version in 3.25.1 3.31.6; do
  echo 'set(CMAKE_CUDA_COMPILER_VERSION "13.0.48")' > "$build/CMakeFiles/$version/CMakeCUDACompiler.cmake"
done
echo "CMAKE_CUDA_COMPILER:FILEPATH=$nvcc" > "$build/CMakeCache.txt"
"""
# Release, components and folder, then packages.
DOWNLOAD = """
for p in $4 $5 $6 $7; do
  case $p in nvidia-cuda-toolkit) p=${p}_12.4.deb ;; *) p=${p}_1.deb ;; esac
  [ -e "$3/$p" ] || { echo "$p" >> "$DOWNLOADED"; echo package > "$3/$p"; }
done
[ -z "$DOWNLOAD_FAILS" ]
"""
DPKG = """
case $1 in
  -x) mkdir -p "$3/usr/include" "$3/usr/share" "$3/lib" ;;
  *) tar -c -C "$CONTENT" ./usr ;;
esac
"""


class GpuBundle(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        self.tree = self.root / "tree"
        shutil.copytree(SCRIPTS, self.tree / "scripts")
        (self.tree / "LICENSE").write_text("license\n")
        self.bundle = self.root / "place/bundle"
        self.downloaded = self.root / "downloaded"
        content = self.root / "content"
        usr = content / "usr"
        for name in ("cudafe++", "fatbinary", "nvlink", "ptxas"):
            self.file(usr / "bin" / name)
        for name in ("nvcc", "crt", "cicc"):
            self.file(usr / "lib/nvidia-cuda-toolkit/bin" / name)
        self.script(usr / "lib/nvidia-cuda-toolkit/bin/nvcc", nvcc(12))
        self.file(usr / "lib/nvidia-cuda-toolkit/libdevice/device.bc")
        for name in ("libcudart_static.a", "libcudadevrt.a", "libculibos.a"):
            self.file(usr / "lib/x86_64-linux-gnu" / name)
        self.file(usr / "lib/gcc/x86_64-linux-gnu/10/libgcc_eh.a")
        self.file(usr / "include/cublas_v2.h")
        self.file(self.root / "cuda/include/cudnn.h")
        (self.root / "cuda/include/cudnn_version.h").write_text("#define CUDNN_MAJOR 9\n")
        self.script(self.root / "nvcc", nvcc(13))
        self.script(self.tree / "scripts/debian_download.sh", f"#!/bin/sh\n{DOWNLOAD}")
        self.script(self.tree / "scripts/check_symbols.sh", '#!/bin/sh\n[ -z "$SYMBOLS_FAIL" ]\n')
        for name, text in (("cmake", CMAKE), ("dpkg", DPKG), ("strip", 'cp "$3" "$2"\n'),
                           ("git", "exit 128\n")):
            self.script(self.root / "path" / name, f"#!/bin/sh\n{text}")
        self.environment = {"PATH": f"{self.root / 'path'}:{os.environ['PATH']}",
                            "CUDA_HOME": str(self.root / "cuda"), "CONTENT": str(content),
                            "NVCC": str(self.root / "nvcc"), "DOWNLOADED": str(self.downloaded)}

    def file(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("content\n")

    def script(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def run_script(self, name, *arguments, **environment):
        return subprocess.run([self.tree / "scripts" / name, *arguments], text=True, timeout=1000,
                              capture_output=True, env={**self.environment, **environment})

    def make(self, *toolkits, **environment):
        return self.run_script("gpu_bundle.sh", self.bundle, *(toolkits or ["installed"]), **environment)

    def beside(self):
        return sorted(path.name for path in self.bundle.parent.iterdir())

    def test_both_toolkits(self):
        done = self.make("12", "installed")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(path.name for path in self.bundle.iterdir()),
                         ["LICENSE", "VERSION", "bin", "cuda12", "cuda13", "gpu_check.sh",
                          "gpu_environment.sh"])
        self.assertEqual(self.bundle.stat().st_mode & 0o777, 0o755)
        self.assertEqual(self.beside(), ["bundle"])
        # Nothing is fetched twice.
        first = self.downloaded.read_text()
        self.assertEqual(self.make("12", "installed").returncode, 0)
        self.assertEqual(self.downloaded.read_text(), first)

    def test_folders_of_others_are_left_alone(self):
        for script, more in (("gpu_bundle.sh", ["12"]), ("cuda12_toolkit.sh", []),
                             ("old_c_library.sh", [])):
            precious = self.root / "precious"
            self.file(precious / "thesis.txt")
            self.file(precious / "VERSION")
            done = self.run_script(script, precious, *more)
            self.assertNotEqual(done.returncode, 0, script)
            self.assertIn("left alone", done.stderr)
            self.assertEqual((precious / "thesis.txt").read_text(), "content\n")
            self.assertFalse(self.downloaded.exists())
            empty = self.root / f"empty-{script}"
            empty.mkdir()
            self.assertEqual(self.run_script(script, empty, *more).returncode, 0, script)
            self.downloaded.unlink()

    def test_a_failed_bundle_leaves_the_old_one(self):
        self.assertEqual(self.make().returncode, 0)
        self.file(self.bundle / "old")
        for fails in ("BUILD_FAILS", "SYMBOLS_FAIL"):
            self.assertNotEqual(self.make(**{fails: "1"}).returncode, 0)
            self.assertTrue((self.bundle / "old").exists())
            self.assertTrue((self.bundle / "cuda13/tidepool").exists())
            self.assertEqual(self.beside(), ["bundle"])
        self.assertEqual(self.make().returncode, 0)
        self.assertFalse((self.bundle / "old").exists())
        self.assertEqual(self.beside(), ["bundle"])

    def test_a_failed_first_bundle_leaves_nothing(self):
        self.assertNotEqual(self.make(SYMBOLS_FAIL="1").returncode, 0)
        self.assertEqual(self.beside(), [])

    def test_a_missing_toolkit_is_said_before_anything_is_fetched(self):
        done = self.make("12", "installed", NVCC="")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("not found: nvcc", done.stderr)
        self.assertIn("CUDA=12", done.stderr)
        self.assertNotIn("nvidia-cuda-toolkit", self.downloaded.read_text())

    @unittest.skipIf(any(Path("/usr/include").glob("**/cudnn_version.h")), "cuDNN is installed")
    def test_a_missing_pip_is_said_before_anything_is_fetched(self):
        self.script(self.root / "path/python3", "#!/bin/sh\nexit 1\n")
        done = self.run_script("cuda12_toolkit.sh", self.root / "cuda-12", CUDA_HOME="/nowhere")
        self.assertIn("install python3-pip", done.stderr)
        self.assertFalse(self.downloaded.exists())

    def test_a_failed_toolkit_keeps_what_it_downloaded(self):
        folder = self.root / "cuda-12"
        self.assertNotEqual(
            self.run_script("cuda12_toolkit.sh", folder, DOWNLOAD_FAILS="1").returncode, 0)
        self.assertFalse(folder.exists())
        first = self.downloaded.read_text()
        done = self.run_script("cuda12_toolkit.sh", folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.downloaded.read_text(), first)
        self.assertTrue((folder / "include/cudnn.h").exists())
        self.assertFalse((self.root / "cuda-12.packages").exists())

    def test_the_version_says_what_is_known(self):
        self.make()
        self.assertEqual((self.bundle / "VERSION").read_text(), "commit unknown: built outside git\n")
        git = 'case $2 in --show-toplevel) echo "$TOP" ;; HEAD) echo abc ;; *) echo "$CHANGES" ;; esac\n'
        self.script(self.root / "path/git", f"#!/bin/sh\n{git}")
        for top, changes, version in ((self.tree, "", "commit abc\n"),
                                      (self.tree, " M a", "commit abc\nwith uncommitted changes\n"),
                                      (self.root, "", "commit unknown: built outside git\n")):
            self.make(TOP=str(top), CHANGES=changes)
            self.assertEqual((self.bundle / "VERSION").read_text(), version)

    def test_missing_arguments(self):
        for script, word in (("gpu_bundle.sh", "BUNDLE_FOLDER"), ("old_c_library.sh", "FOLDER"),
                             ("cuda12_toolkit.sh", "FOLDER")):
            done = self.run_script(script)
            self.assertNotEqual(done.returncode, 0, script)
            self.assertIn(word, done.stderr)
            self.assertNotIn("unbound", done.stderr)
        done = subprocess.run([SCRIPTS / "check_symbols.sh"], text=True, capture_output=True)
        self.assertIn("it takes FOLDER LIMIT", done.stderr)
        for script in ("old_c_library.sh", "cuda12_toolkit.sh"):
            self.assertIn("no name", self.run_script(script, "").stderr)


if __name__ == "__main__":
    unittest.main()
