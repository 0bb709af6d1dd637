"""Security tests of the sandbox: each test asserts the verdict of a hostile program and that the host is unchanged."""
