"""Builds the module against the torch that is installed, for that torch alone."""

import os

import setuptools

# pip asks for no version with --no-build-isolation, and setup.py for none at all.
if int(setuptools.__version__.partition(".")[0]) < 61:
    raise SystemExit("the native module is built by setuptools 61 or newer, and this is "
                     f"{setuptools.__version__}. Next: pip install --upgrade setuptools")

from setuptools.command.build_py import build_py  # noqa: E402

try:
    import torch
    from torch.utils.cpp_extension import BuildExtension, CppExtension
except ImportError as error:
    raise SystemExit("the native module is built against the torch that is installed. Next: pip install "
                     "--no-index --no-build-isolation and this folder, where torch is "
                     f"({error})") from error


class WithTorch(build_py):
    """Says beside the module which torch it was built for, so that no other loads it."""

    def run(self):
        super().run()
        folder = os.path.join(self.build_lib, "tidepool_torch_native")
        self.mkpath(folder)
        with open(os.path.join(folder, "built_for.py"), "w", encoding="utf-8") as file:
            file.write(f"TORCH = {str(torch.__version__)!r}\n")


setuptools.setup(
    ext_modules=[CppExtension(
        "tidepool_torch_native._native", ["module.cpp", "observer.cpp"],
        depends=["delegate.h", "observer.h"],
        extra_compile_args=["-DNDEBUG", "-O2", "-g0", "-fvisibility=hidden", "-Wall"])],
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=False), "build_py": WithTorch})
