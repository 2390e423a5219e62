"""Builds the module against the torch that is installed, for that torch alone."""

import os

from setuptools import setup
from setuptools.command.build_py import build_py

try:
    import torch
    from torch.utils.cpp_extension import BuildExtension, CppExtension
except ImportError as error:
    raise SystemExit("tidepool-torch-native is built against the torch that is installed. Next: pip "
                     f"install --no-build-isolation, where torch is ({error})") from error


class WithTorch(build_py):
    """Says beside the module which torch it was built for, so that no other loads it."""

    def run(self):
        super().run()
        folder = os.path.join(self.build_lib, "tidepool_torch_native")
        self.mkpath(folder)
        with open(os.path.join(folder, "built_for.py"), "w", encoding="utf-8") as file:
            file.write(f"TORCH = {str(torch.__version__)!r}\n")


setup(
    ext_modules=[CppExtension(
        "tidepool_torch_native._native", ["module.cpp", "observer.cpp"],
        depends=["delegate.h", "observer.h"],
        extra_compile_args=["-DNDEBUG", "-O2", "-g0", "-fvisibility=hidden", "-Wall"])],
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=False), "build_py": WithTorch})
