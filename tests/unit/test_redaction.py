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
        (['mysql://u:p"w@h/x'], [f"mysql://u:{HIDDEN}@h/x"]),
        (["mysql://u:p\\w@h/x"], [f"mysql://u:{HIDDEN}@h/x"]),
        (["-H", 'Authorization: Bearer "abc"'], ["-H", f"Authorization: Bearer {HIDDEN}"]),
        (["--tokens", "abc", "--token", "512"], ["--tokens", HIDDEN, "--token", HIDDEN]),
        (["--db_pass", "abc", "--passkey=abc"], ["--db_pass", HIDDEN, f"--passkey={HIDDEN}"]),
        (["-p", "hunter2", "in"], ["-p", HIDDEN, "in"]),
        (["-u", "me:hunter2", "in"], ["-u", f"me:{HIDDEN}", "in"]),
        (["--user=me:hunter2", "in"], [f"--user=me:{HIDDEN}", "in"]),
        (["fs.azure.account.key.lab.dfs.core.windows.net=abc=="],
         [f"fs.azure.account.key.lab.dfs.core.windows.net={HIDDEN}"]),
        (["-Dfs.s3a.access.key=AKIA"], [f"-Dfs.s3a.access.key={HIDDEN}"]),
        (["DefaultEndpointsProtocol=https;AccountName=a;AccountKey=abc==;EndpointSuffix=x"],
         [f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={HIDDEN}"]),
        (["jdbc:postgresql://me:hunter2@db/x"], [f"jdbc:postgresql://me:{HIDDEN}@db/x"]),
        (["--in=https://me:p@ss@db:80/x"], [f"--in=https://me:{HIDDEN}@db:80/x"]),
        (["https://a.net/b?sv=2024&sig=abc%3D&se=1"],
         [f"https://a.net/b?sv=2024&sig={HIDDEN}&se=1"]),
        (["https://a/b?X-Amz-Date=1&X-Amz-Signature=abc"],
         [f"https://a/b?X-Amz-Date=1&X-Amz-Signature={HIDDEN}"]),
        (["-H", "Authorization: Bearer abc.def"], ["-H", f"Authorization: Bearer {HIDDEN}"]),
        (['{"user": "me", "password": "hunter2"}'],
         [f'{{"user": "me", "password": "{HIDDEN}"}}']),
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
        ["-u", "pi"],
        ["hdfs://pi@master:8020/in", "abfss://files@lab/in", "https://a.net/?page=2&size=3"],
        ["--conf", "spark.io.encryption.keySizeBits=128"],
        ["stream.num.map.output.key.fields=2", "10.0.0.1:8020"],
        ["--passes", "3", "--bypass", "4", "--compass=5", "--max-tokens", "512", "tokens=7"],
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
        ["-p", "S3CRET"],
        ["--url=s3://k:S3CRET@bucket/x"],
        ["fs.azure.sas.files.lab=S3CRET"],
    ]
    for form in forms:
        assert "S3CRET" not in " ".join(redact(["before", *form, "after"])), form
        assert redact(["before", *form, "after"])[-1] == "after"
