#!/usr/bin/env bats
# pages.bats - docs/: what pages say of the sources is there, and the site is made without a warning.

bats_require_minimum_version 1.5.0

@test "each message of the page of errors is one that is printed, and each constant of the step model has a value" {
    python3 - <<-'END'
	import json, re
	from pathlib import Path

	literal = r'"((?:[^"\\]|\\.)*)"'
	printed = "\n".join("".join(re.findall(literal, chain[0]))
	                    for folder in ("src", "topo", "kernels") for file in Path(folder).rglob("*.c")
	                    for chain in re.finditer(literal + r'(?:\s*' + literal + r')*', file.read_text()))
	rows = re.findall(r"^\| `([^`]+)` \|", Path("docs/questions.md").read_text(), re.M)
	lacking = [row for row in rows if row not in printed]
	assert len(rows) >= 10 and not lacking, lacking

	names = [c["name"] for c in json.load(open("jobs/training/constants.json"))["constants"]]
	said = re.findall(r"`((?:exposed|overlap|optimizer|launch|pointwise|power|scan|flash|fixed)\.[a-z0-9_.]+)`", Path("docs/step-model.md").read_text())
	lacking = [name for name in said if not any(have == name or have.startswith(name + ".") for have in names)]
	assert len(said) >= 15 and not lacking, lacking
	END
}

# bats test_tags=nightly
@test "make site: no warning, a page of each command, nothing loaded from elsewhere" {
    python=$(tests/venv.sh site sphinx furo myst-parser latex2mathml) || skip "$python"
    make -s site BUILD="$RG_BUILD"
    html=$RG_BUILD/site/html
    for command in $(railgauge --help | sed -nE 's/^  ([a-z-]+) .*/\1/p'); do
        grep -q -- '<code class="docutils literal notranslate"><span class="pre">-' "$html/commands/railgauge-$command.html"
    done
    grep -q '<math' "$html/docs/step-model.html"
    [ -f "$html/_images/heat.png" ]
    run grep -rhoE '<(script|link|img)[^>]*(src|href)="https?:[^"]*"' "$html" --include='*.html'
    echo "$output"
    [ -z "$output" ]
}
