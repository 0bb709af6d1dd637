"""References to submissions, rejudge batches and runs on the command line: an ID or a number."""

from __future__ import annotations

import re
import shlex
from typing import Final

from adjudge.client import Client
from adjudge.domain.ids import parse_number
from adjudge.schema.chain_runs import ChainRunRead

_PLAIN: Final = re.compile(r"\w[\w.#-]*")


def find_submission_id(client: Client, reference: str) -> str:
    """The id of a submission, from its id or number (``1234`` or ``#1234``)."""
    number = parse_number(reference)
    return reference if number is None else client.submission(str(number)).id


def find_batch_id(client: Client, reference: str) -> str:
    """The id of a rejudge batch, from its id or number."""
    number = parse_number(reference)
    return reference if number is None else client.rejudge_batch(str(number)).id


def find_run_id(client: Client, reference: str) -> str:
    """The id of a run, from its id, or from its chain and number (``nightly#12``)."""
    chain, _, written = reference.rpartition("#")
    number = parse_number(written)
    return reference if not chain or number is None else client.run_by_number(chain, number).id


def run_reference(run: ChainRunRead) -> str:
    """How people refer to a run: chain and number."""
    return f"{run.chain_name}#{run.number}"


def run_argument(run: ChainRunRead) -> str:
    """The reference of a run as an argument of a command, quoted if the name of the chain needs it."""
    reference = run_reference(run)
    return reference if _PLAIN.fullmatch(reference) else shlex.quote(reference)
