"""Makes the command reference of the site from the options classes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from nerbert import __version__
from nerbert.commands.options import Option
from nerbert.commands.table import COMMANDS


def on_config(config: Any) -> Any:
    """Shows the version in the head of each page, and the repository."""
    config.site_name = f"nerbert {__version__}"
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    config.repo_url, config.repo_name = project["urls"]["Repository"], "repository"
    return config


def on_post_page(output: str, **_: Any) -> str:
    """Takes out the script of another host that the plugin `offline` names for old browsers."""
    return re.sub(r'<script src="https://unpkg\.com[^>]*></script>', "", output)


on_post_template = on_post_page  # that of the page for what is not found


def on_files(files: Files, config: Any) -> Files:
    """Adds the page."""
    files.append(File.generated(config, "commands.md", content=commands()))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Puts a command's options, as Python names them, where a page says `{options: COMMAND}`."""
    return re.sub(
        r"^\{options: (\w+)\}$",
        lambda match: python_options(match[1]),
        markdown,
        flags=re.MULTILINE,
    )


def python_options(name: str) -> str:
    """A folded table of the options of a command."""
    options = COMMANDS[name].command().options
    rows = [f"    | `{one.name}` | {_default(one)} | {_cell(one.help)} |" for one in options]
    head = [
        f'??? note "{len(rows)} options"',
        "",
        "    | option | default | |",
        "    |---|---|---|",
    ]
    return "\n".join([*head, *rows])


def commands() -> str:
    """The page: for each command its text, and a table of its options."""
    parts = [
        "# Commands\n\n`nerbert COMMAND --help` prints the same. A recipe (TOML) sets any option.\n"
    ]
    for name, entry in COMMANDS.items():
        command = entry.command()
        parts += [f"## nerbert {name}\n", f"{command.doc}\n"]
        for title, options in command.groups().items():
            parts += [f"**{title}**\n" if title else "", "| option | default | |", "|---|---|---|"]
            parts += [_row(option) for option in options]
            parts.append("")
        if command.positionals_help:
            parts.append(f"{command.positionals_help}\n")
    return "\n".join(parts)


def _row(option: Option) -> str:
    flag = option.name.upper() if option.facts["positional"] else "`, `".join(option.flags)
    return f"| `{flag}` | {_default(option)} | {_cell(option.help)} |"


def _default(option: Option) -> str:
    return "required" if option.is_required else _shown(option.default)


def _shown(value: Any) -> str:
    if value in (None, "", (), False):
        return "no" if value is False else ""
    if isinstance(value, tuple):
        return _cell(" ".join(f"`{one}`" for one in value))
    return "yes" if value is True else f"`{_cell(str(value))}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
