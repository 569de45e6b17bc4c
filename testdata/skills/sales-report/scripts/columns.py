"""Finds the columns of an orders file by the names that exports give them."""

ALIASES = {
    "date": ("date", "orderdate", "day"),
    "region": ("region", "area", "country"),
    "product": ("product", "item", "sku"),
    "quantity": ("quantity", "qty", "units"),
    "price": ("price", "unitprice"),
}


def locate(header):
    """Map each needed column to the name it has in header; ValueError names the missing ones."""
    plain = {name.lower().replace(" ", "").replace("_", ""): name for name in header if name}
    found = {}
    for column, names in ALIASES.items():
        for name in names:
            if name in plain:
                found[column] = plain[name]
                break
    missing = sorted(set(ALIASES) - set(found))
    if missing:
        raise ValueError("the file has no column for: " + ", ".join(missing))
    return found
