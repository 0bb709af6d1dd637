"""The official Python SDK of Judge0, unchanged, against a real installation with a real sandbox."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import judge0
import pytest
from judge0 import Client, LanguageAlias, Status, Submission
from judge0.filesystem import File, Filesystem

from tests.support.installation import Installation, start_embedded

pytestmark = pytest.mark.slow
CPP_ARGUMENTS = """
#include <cstdio>
#include <cstdlib>
#include "twice.h"
int main(int argc, char **argv) {
    FILE *words = fopen("words.txt", "r");
    char word[64] = "";
    if (words && fscanf(words, "%63s", word) == 1)
        printf("%s %d %d\\n", word, twice(atoi(argv[argc - 1])), FACTOR);
    fprintf(stderr, "to stderr\\n");
}
"""


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """``adjudge up``; callbacks to this machine are allowed."""
    folder = tmp_path_factory.mktemp("judge0")
    with start_embedded(folder, webhooks_allow="127.0.0.0/8") as found:
        yield found


@pytest.fixture
def client(installation: Installation) -> Client:
    """The client of the SDK with an API token."""
    token = installation.admin.headers["Authorization"].removeprefix("Bearer ")
    return Client(f"{installation.url}/judge0", headers={"X-Auth-Token": token})


def test_programs_run_and_are_compared(client: Client) -> None:
    source = "print(int(input()) * 2)"
    cases = [("21", "42"), ("1", "3")]
    found = judge0.run(client=client, source_code=source, language=LanguageAlias.PYTHON, test_cases=cases)
    assert [item.status for item in found] == [Status.ACCEPTED, Status.WRONG_ANSWER]
    assert [item.stdout for item in found] == ["42\n", "2\n"]
    assert all(item.time is not None and item.memory for item in found)


def test_failures_have_their_status(client: Client) -> None:
    sources = {
        "int main() { return 3; }": Status.RUNTIME_ERROR_NZEC,
        "#include <cstdlib>\nint main() { abort(); }": Status.RUNTIME_ERROR_SIGABRT,
        "int main() { for (volatile int i = 0;; i++); }": Status.TIME_LIMIT_EXCEEDED,
        "int main( {": Status.COMPILATION_ERROR,
    }
    submissions = [Submission(source_code=source, language=LanguageAlias.CPP, cpu_time_limit=0.5) for source in sources]
    found = judge0.run(client=client, submissions=submissions)
    assert [item.status for item in found] == list(sources.values())
    assert "error" in found[-1].compile_output
    assert found[-1].stdout is None


def test_options_and_files_are_used(client: Client) -> None:
    files = Filesystem(
        content=[
            File(name="words.txt", content="word"),
            File(name="twice.h", content="static int twice(int x) { return 2 * x; }"),
        ]
    )
    submission = Submission(
        source_code=CPP_ARGUMENTS,
        language=LanguageAlias.CPP,
        additional_files=files,
        compiler_options="-DFACTOR=7",
        command_line_arguments="first 21",
        redirect_stderr_to_stdout=True,
    )
    (found,) = [judge0.run(client=client, submissions=submission)]
    assert found.status == Status.ACCEPTED, found
    assert found.stdout == "to stderr\nword 42 7\n"
    assert found.stderr is None


def test_what_is_not_supported_is_refused(client: Client) -> None:
    assert not client.is_language_supported(LanguageAlias.SWIFT)
    with pytest.raises(RuntimeError, match="does not support language"):
        client.create_submission(Submission(source_code="1", language=LanguageAlias.SWIFT))
    with pytest.raises(Exception, match="422"):
        client.create_submission(Submission(source_code="1", language=LanguageAlias.PYTHON, enable_network=True))


def test_callback_is_sent(client: Client) -> None:
    received: queue.Queue[tuple[str, bytes]] = queue.Queue()

    class Receiver(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            received.put((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Nothing is printed."""

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/done"
        submission = Submission(source_code="print(1)", language=LanguageAlias.PYTHON, callback_url=url)
        created = client.create_submission(submission)
        path, body = received.get(timeout=60)
        server.shutdown()
    assert path == "/done"
    assert str(created.token).encode() in body
    assert b'"stdout": "MQo=\\n"' in body
