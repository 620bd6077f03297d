# cells.py - NOTEBOOK: its cells as a plain program, in one namespace and order; with --kernel in a real kernel, by nbclient.
import json
import sys

path = sys.argv[-1]
with open(path, encoding="utf-8") as file:
    notebook = json.load(file)
assert notebook["nbformat"] == 4
if "--kernel" in sys.argv:
    import nbclient
    import nbformat

    done = nbclient.NotebookClient(nbformat.read(path, 4), timeout=300, kernel_name="python3").execute()
    for cell in done.cells:
        for output in cell.get("outputs", ()):
            print("".join(output.get("text", "")) or " ".join(output.get("data", output)), end="")
    print()
else:
    names = {"__name__": "__main__"}
    for i, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{path}, cell {i}", "exec"), names)
