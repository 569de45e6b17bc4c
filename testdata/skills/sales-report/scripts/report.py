#!/usr/bin/env python3
"""Write a sales report from a CSV of orders.

Usage: python3 scripts/report.py --in q3.csv --out reports [--format md|html] [--top 5] [--json]
"""

import argparse
import csv
import html
import json
import statistics
import sys
from collections import defaultdict
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path

from columns import locate


def read_orders(path):
    """Return (orders, problems); an order is a dict with date, region, product, amount."""
    orders, problems = [], []
    with path.open(newline="", encoding="utf-8-sig") as f:
        rows = csv.DictReader(f)
        names = locate(rows.fieldnames or [])
        for row in rows:
            try:
                quantity = int(row[names["quantity"]])
                price = Decimal(row[names["price"]])
                orders.append({
                    "date": date.fromisoformat(row[names["date"]].strip()),
                    "region": row[names["region"]].strip() or "(none)",
                    "product": row[names["product"]].strip() or "(none)",
                    "amount": quantity * price,
                })
            except (ValueError, InvalidOperation, TypeError, AttributeError) as e:
                problems.append(f"line {rows.line_num}: {type(e).__name__}")
    return orders, problems


def summarise(orders, top):
    by = {key: defaultdict(Decimal) for key in ("region", "product", "month")}
    for o in orders:
        by["region"][o["region"]] += o["amount"]
        by["product"][o["product"]] += o["amount"]
        by["month"][o["date"].strftime("%Y-%m")] += o["amount"]
    amounts = [o["amount"] for o in orders]
    mean = statistics.fmean(amounts)
    spread = statistics.pstdev(amounts)
    ranked = lambda d: sorted(d.items(), key=lambda kv: (-kv[1], kv[0]))
    return {
        "orders": len(orders),
        "revenue": sum(amounts),
        "median": statistics.median(amounts),
        "largest": max(amounts),
        "outliers": sum(1 for a in amounts if spread and abs(float(a) - mean) > 3 * spread),
        "regions": ranked(by["region"]),
        "products": ranked(by["product"])[:top],
        "months": sorted(by["month"].items()),
    }


def money(amount):
    return f"{amount:,.2f}"


def tables(figures):
    yield "Totals", ("figure", "value"), [
        ("orders", str(figures["orders"])),
        ("revenue", money(figures["revenue"])),
        ("median order", money(figures["median"])),
        ("largest order", money(figures["largest"])),
        ("outliers (3 sigma)", str(figures["outliers"])),
    ]
    for title, key in (("Regions", "regions"), ("Products", "products"), ("Months", "months")):
        yield title, (key[:-1], "revenue"), [(name, money(v)) for name, v in figures[key]]


def markdown(title, figures, problems):
    out = [f"# {title}", ""]
    for heading, columns, rows in tables(figures):
        out += [f"## {heading}", "", "| " + " | ".join(columns) + " |", "|---|---:|"]
        out += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
        out.append("")
    if problems:
        out += ["## Lines left out", ""] + [f"- {p}" for p in problems] + [""]
    return "\n".join(out)


def page(title, figures, problems):
    e = html.escape
    out = ["<!doctype html>", '<meta charset="utf-8">', f"<title>{e(title)}</title>", f"<h1>{e(title)}</h1>"]
    for heading, columns, rows in tables(figures):
        out += [f"<h2>{e(heading)}</h2>", "<table>", "<tr>" + "".join(f"<th>{e(c)}" for c in columns)]
        out += ["<tr>" + "".join(f"<td>{e(c)}" for c in row) for row in rows]
        out.append("</table>")
    if problems:
        out += ["<h2>Lines left out</h2>", "<ul>"] + [f"<li>{e(p)}" for p in problems] + ["</ul>"]
    return "\n".join(out) + "\n"


def main(argv=None):
    parser = argparse.ArgumentParser(description="Write a sales report from a CSV of orders.")
    parser.add_argument("--in", dest="source", type=Path, required=True, metavar="FILE")
    parser.add_argument("--out", type=Path, default=Path("reports"), metavar="DIR")
    parser.add_argument("--format", choices=("md", "html"), default="md")
    parser.add_argument("--top", type=int, default=5, metavar="N")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)

    try:
        orders, problems = read_orders(args.source)
    except (OSError, ValueError) as e:
        sys.exit(f"report.py: {args.source}: {getattr(e, 'strerror', None) or e}")
    if not orders:
        sys.exit(f"report.py: {args.source}: no order could be read")

    figures = summarise(orders, args.top)
    render = markdown if args.format == "md" else page
    target = args.out / f"{args.source.stem}.{args.format}"
    try:
        args.out.mkdir(parents=True, exist_ok=True)
        target.write_text(render(f"Sales report: {args.source.stem}", figures, problems), encoding="utf-8")
        if args.json:
            target.with_suffix(".json").write_text(json.dumps(figures, default=str, indent=2) + "\n", encoding="utf-8")
    except OSError as e:
        sys.exit(f"report.py: {e.filename or args.out}: {e.strerror}")
    print(f"{target}: {figures['orders']} orders, revenue {money(figures['revenue'])}, {len(problems)} lines left out")


if __name__ == "__main__":
    main()
