"""Runs `nerbert completion`: a script by which a shell completes commands and flags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from pydantic.dataclasses import dataclass

from nerbert.commands.options import CHECKED, option
from nerbert.commands.parser import Command


@dataclass(frozen=True, config=CHECKED)
class CompletionOptions:
    """Prints a script by which a shell completes commands, flags and files.

        source <(nerbert completion bash)
        nerbert completion zsh > ~/.zfunc/_nerbert
        nerbert completion fish > ~/.config/fish/completions/nerbert.fish

    The last two need a new shell.
    """

    shell: Literal["bash", "zsh", "fish"] = option(
        help="the shell", positional=True, recipe=False, metavar="{bash,zsh,fish}"
    )


def script(shell: str, commands: Mapping[str, Command], summaries: Mapping[str, str]) -> str:
    """The script.

    Args:
        shell: name of the shell.
        commands: the commands by name.
        summaries: what each does.
    """
    flags = {name: sorted(_flags(command)) for name, command in commands.items()}
    if shell == "fish":
        return "\n".join(_fish(flags, summaries))
    loads = "#compdef nerbert\nautoload -U +X bashcompinit && bashcompinit\n"
    return (loads if shell == "zsh" else "") + _BASH.format(cases="\n".join(_cases(flags)))


def _flags(command: Command) -> Iterator[str]:
    for entry in command.options:
        if not entry.facts["positional"]:
            yield from entry.flags
            if entry.kind is bool:
                yield f"--no-{entry.flags[0][2:]}"


_BASH = """\
_nerbert() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} words=
  case "${{COMP_WORDS[*]:1:COMP_CWORD-1}}" in
{cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o bashdefault -o default -F _nerbert nerbert
"""


def _cases(flags: Mapping[str, list[str]]) -> Iterator[str]:
    """Lines of the shell script that complete a word, by the command; long commands come first."""
    firsts = dict.fromkeys(name.partition(" ")[0] for name in flags)
    yield f"    '') words='{' '.join(firsts)}' ;;"
    for first in firsts:
        if seconds := [name.split()[1] for name in flags if name.startswith(f"{first} ")]:
            yield f"    '{first}') words='{' '.join(seconds)}' ;;"
    for name, own_flags in flags.items():
        yield f"    '{name}'|'{name} '*) words='{' '.join(own_flags)}' ;;"


def _fish(flags: Mapping[str, list[str]], summaries: Mapping[str, str]) -> Iterator[str]:
    for name, own_flags in flags.items():
        first, _, second = name.partition(" ")
        summary = summaries[name].replace("'", "\\'")
        if second:
            yield f"complete -c nerbert -n __fish_use_subcommand -f -a {first}"
            at = f"__fish_seen_subcommand_from {first}"
            yield f"complete -c nerbert -n '{at}' -f -a {second} -d '{summary}'"
        else:
            yield f"complete -c nerbert -n __fish_use_subcommand -f -a {first} -d '{summary}'"
            at = f"__fish_seen_subcommand_from {first}"
        condition = f"__fish_seen_subcommand_from {second or first}"
        yield from (f"complete -c nerbert -n '{condition}' -l {flag[2:]}" for flag in own_flags)
