"""MediaWiki's SQL dumps, as mysqldump writes them."""

import gzip

HEADS = {
    "page_props": """CREATE TABLE `page_props` (
  `pp_page` int(8) unsigned NOT NULL,
  `pp_propname` varbinary(60) NOT NULL DEFAULT '',
  `pp_value` blob NOT NULL,
  `pp_sortkey` float DEFAULT NULL,
  PRIMARY KEY (`pp_page`,`pp_propname`)
) ENGINE=InnoDB DEFAULT CHARSET=binary;
""",
    "langlinks": """CREATE TABLE `langlinks` (
  `ll_from` int(8) unsigned NOT NULL DEFAULT 0,
  `ll_lang` varbinary(35) NOT NULL DEFAULT '',
  `ll_title` varbinary(255) NOT NULL DEFAULT '',
  PRIMARY KEY (`ll_from`,`ll_lang`)
) ENGINE=InnoDB DEFAULT CHARSET=binary;
""",
}


def _value(value):
    if value is None:
        return "NULL"
    if not isinstance(value, str):
        return str(value)
    for character in "\\'\"\n":
        value = value.replace(character, "\\" + {"\n": "n"}.get(character, character))
    return f"'{value}'"


def write_table(path, table, rows, in_a_line=1000, between=",", wiki="ukwiki"):
    """Writes rows as the SQL dump of a table, `in_a_line` rows in each INSERT statement."""
    head = (
        "-- MySQL dump 10.19  Distrib 10.5.23-MariaDB, for debian-linux-gnu (x86_64)\n--\n"
        f"-- Host: db1234    Database: {wiki}\n-- ------------------------------------------------\n"
        f"-- Server version\t10.6.17-MariaDB-log\n\n--\n-- Table structure for table `{table}`\n--\n\n"
    )
    lines = []
    for start in range(0, len(rows), in_a_line):
        values = ("(" + ",".join(map(_value, row)) + ")" for row in rows[start : start + in_a_line])
        lines.append(f"INSERT INTO `{table}` VALUES {between.join(values)};\n")
    text = f"{head}{HEADS[table]}\nLOCK TABLES `{table}` WRITE;\n{''.join(lines)}UNLOCK TABLES;\n"
    text += "-- Dump completed on 2023-05-02  1:15:22\n"
    content = text.encode("utf-8")
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path
