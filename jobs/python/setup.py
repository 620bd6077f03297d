# setup.py - what pyproject.toml cannot say: the schemas of the files, which stand elsewhere in the sources, go along; so
# does the licence, which setuptools before 77 takes in another form.
import shutil
from pathlib import Path

import setuptools
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
TREE = HERE.parents[1]


def copy_schemas(target):
    """Copy the schemas into a folder: from the sources, or from an sdist, which holds them where the wheel does."""
    files = [file for folder in ("src", "topo") for file in sorted((TREE / folder / "schema").glob("*.schema.json"))]
    files = files or sorted((HERE / "railgauge" / "schema").glob("*.schema.json"))
    if not files:
        raise SystemExit(f"no schemas in {TREE}/src/schema: build from the sources of railgauge")
    target.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copyfile(file, target / file.name)


class BuildWithSchemas(build_py):
    def run(self):
        super().run()
        copy_schemas(Path(self.build_lib, "railgauge", "schema"))


class SdistWithSchemas(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        copy_schemas(Path(base_dir, "railgauge", "schema"))
        licence = Path(base_dir, "LICENSE")
        licence.unlink()  # a link to a file that the sdist has not
        shutil.copyfile(HERE / "LICENSE", licence)


NEW = int(setuptools.__version__.split(".")[0]) >= 77
setuptools.setup(
    cmdclass={"build_py": BuildWithSchemas, "sdist": SdistWithSchemas},
    license_files=["LICENSE"],
    **{"license_expression" if NEW else "license": "BSD-3-Clause"},
)
