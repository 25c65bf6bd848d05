"""No secret in what is stored and shown."""

import pytest

from boardcluster.redaction import HIDDEN, redact


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["app.py", "--password", "hunter2", "in"], ["app.py", "--password", HIDDEN, "in"]),
        (["-token", "abc", "-n", "5"], ["-token", HIDDEN, "-n", "5"]),
        (["--api-key=abc"], [f"--api-key={HIDDEN}"]),
        (["API_KEY=abc", "ApiKey=abc"], [f"API_KEY={HIDDEN}", f"ApiKey={HIDDEN}"]),
        (["--conf", "spark.authenticate.secret=abc"],
         ["--conf", f"spark.authenticate.secret={HIDDEN}"]),
        (["--conf=spark.authenticate.secret=abc"],
         [f"--conf=spark.authenticate.secret={HIDDEN}"]),
        (["-Dfs.s3a.secret.key=a=b=c"], [f"-Dfs.s3a.secret.key={HIDDEN}"]),
        (["spark.executorEnv.X=-Dpassword=abc"], [f"spark.executorEnv.X=-Dpassword={HIDDEN}"]),
        (["--passphrase", "--looks-like-an-option", "x"], ["--passphrase", HIDDEN, "x"]),
        (["--credentials", "me:pw"], ["--credentials", HIDDEN]),
        (["--password"], ["--password"]),
    ],
)  # fmt: skip
def test_values_named_like_a_secret_are_hidden(arguments: list[str], shown: list[str]) -> None:
    assert list(redact(arguments)) == shown


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["app.py", "hdfs://master/in", "out", "-n", "5"],
        ["tokenizer.jar", "Main", "in"],  # a program may be named so
        ["--conf", "spark.executor.memory=1g"],
        ["a=b=c"],
    ],
)
def test_everything_else_is_kept(arguments: list[str]) -> None:
    assert list(redact(arguments)) == arguments


def test_no_secret_value_survives_in_any_form() -> None:
    forms = [
        ["--password", "S3CRET"],
        ["--password=S3CRET"],
        ["PASSWORD=S3CRET"],
        ["--conf", "a.password=S3CRET"],
        ["--conf=a.password=S3CRET"],
        ["--x=--token=S3CRET", "y"],
    ]
    for form in forms:
        assert "S3CRET" not in " ".join(redact(["before", *form, "after"])), form
        assert redact(["before", *form, "after"])[-1] == "after"
