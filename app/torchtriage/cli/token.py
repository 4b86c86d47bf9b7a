"""`torchtriage token`: creates, lists and revokes API tokens."""

from __future__ import annotations

import argparse
import getpass
import json
import os
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING

from torchtriage.cli.arguments import add_commands, whole_number

if TYPE_CHECKING:
    from torchtriage.storage.database import Database


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from torchtriage.domain.access import Scope

    parser = subparsers.add_parser(
        "token", help="create, list and revoke API tokens", description="Create, list and revoke API tokens."
    )
    actions = add_commands(parser, "action")
    create = actions.add_parser("create", help="create a token and print its secret once")
    create.add_argument("name", help="name of the owner, as `torchtriage changes` shows it")
    create.add_argument(
        "--scope",
        action="append",
        required=True,
        choices=[scope.value for scope in Scope],
        help="what the token allows; repeat for more than one",
    )
    create.add_argument("--days", type=whole_number(1, 36_500), metavar="N", help="expire after N days (never)")
    create.set_defaults(run=_create)
    listed = actions.add_parser("list", help="list tokens, newest first")
    listed.add_argument("--sessions", action="store_true", help="list logged-in sessions instead")
    listed.set_defaults(run=_list)
    revoke = actions.add_parser("revoke", help="revoke a token")
    revoke.add_argument("id", help="id of the token, as `list` shows it")
    revoke.set_defaults(run=_revoke)
    for action in (create, listed, revoke):
        action.add_argument("--json", action="store_true", help="print JSON")


def _create(options: argparse.Namespace) -> int:
    from torchtriage.domain.access import Scope
    from torchtriage.services import tokens as access

    lifetime = timedelta(days=options.days) if options.days else None
    with closing(open_database()) as database:
        secret, token = access.create(database, options.name, {*map(Scope, options.scope)}, lifetime, me())
    print(json.dumps({"secret": secret, **token.as_dict()}) if options.json else secret)
    return 0


def _list(options: argparse.Namespace) -> int:
    from torchtriage.services import tokens as access

    with closing(open_database()) as database:
        tokens = [token.as_dict() for token in access.listed(database, options.sessions)]
    if options.json:
        print(json.dumps(tokens))
        return 0
    for token in tokens:
        state = "revoked" if token["revoked_at"] else f"until {token['expires_at'] or 'revoked'}"
        used = f"last used {token['last_used_at']}" if token["last_used_at"] else "never used"
        print(f"{token['id']:>4}  {token['name']}  {','.join(token['scopes'])}  {state}  {used}")
    return 0


def _revoke(options: argparse.Namespace) -> int:
    from torchtriage.services import tokens as access

    with closing(open_database()) as database:
        token = access.revoke(database, options.id, me())
    print(json.dumps(token.as_dict()) if options.json else f"{token.name}: revoked")
    return 0


def open_database() -> Database:
    """Returns the database of the service, after upgrading its tables to this version."""
    from torchtriage.settings import Settings
    from torchtriage.storage.database import Database
    from torchtriage.storage.schema_upgrade import upgrade

    url = Settings.from_environment(os.environ).database
    upgrade(url)
    return Database(url)


def me() -> str:
    """Returns the name of the user who runs the command, for the audit log."""
    try:
        return f"{getpass.getuser()} (command line)"
    except (KeyError, OSError):
        return "command line"
