"""The command line: the table of commands, options, the parser, errors and exit codes."""
