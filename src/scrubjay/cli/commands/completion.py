"""`scrubjay completion`"""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from scrubjay.cli.command import Command


@click.command(
    cls=Command,
    without=("--space", "--json", "--home"),
    examples="""
    eval "$(scrubjay completion bash)"                                       # in ~/.bashrc
    eval "$(scrubjay completion zsh)"                                        # in ~/.zshrc
    scrubjay completion fish > ~/.config/fish/completions/scrubjay.fish
    """,
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that lets your shell complete commands."""
    complete = get_completion_class(shell)
    assert complete is not None
    script = complete(ctx.find_root().command, {}, "scrubjay", "_SCRUBJAY_COMPLETE")
    click.echo(script.source_template % script.source_vars())  # source() would start a shell to ask for its version
