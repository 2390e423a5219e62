"""The trainings of results.jsonl as a table for people."""

import json
import os

_HEAD = ("| training | how | bytes asked | reserved | allocated | ms a step | of plain | bits | retries |\n"
         "|---|---|---|---|---|---|---|---|---|\n")


def _rows(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _gib(size):
    return "" if size is None else f"{size / (1 << 30):.3f} GiB"


def write(folder):
    path = os.path.join(folder, "results.jsonl")
    if not os.path.exists(path):
        return
    rows = _rows(path)
    plain = {}
    lines = []
    for row in rows:
        if "ms" not in row or "how" not in row:
            continue
        base = plain.setdefault(row["stage"], row) if row["how"] == "plain" else plain.get(row["stage"])
        same = "" if base is None else "same" if row["bits"] == base["bits"] else "other"
        ratio = "" if base is None else f"{row['ms'] / base['ms']:.3f}"
        lines.append(f"| {row['stage']} | {row['how']} {row.get('beside') or row.get('share') or ''} "
                     f"| {_gib(row.get('peak'))} | {_gib(row['reserved'])} | {_gib(row['allocated'])} "
                     f"| {row['ms']} | {ratio} | {same} | {row['retries']} |\n")
    other = [f"- {json.dumps(row)}\n" for row in rows if "ms" not in row]
    with open(os.path.join(folder, "table.md"), "w", encoding="utf-8") as file:
        file.write(_HEAD + "".join(lines) + "\n" + "".join(other))
