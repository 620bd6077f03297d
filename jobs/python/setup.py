# setup.py - what pyproject.toml cannot say: the schemas of the files, which stand elsewhere in the sources, go along.
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

TREE = Path(__file__).resolve().parents[2]


class BuildWithSchemas(build_py):
    def run(self):
        super().run()
        schemas = [file for folder in ("src", "topo") for file in sorted((TREE / folder / "schema").glob("*.schema.json"))]
        if not schemas:
            raise SystemExit(f"no schemas in {TREE}/src/schema: build from the sources of railgauge")
        target = Path(self.build_lib, "railgauge", "schema")
        self.mkpath(str(target))
        for file in schemas:
            self.copy_file(str(file), str(target / file.name))


setup(cmdclass={"build_py": BuildWithSchemas})
