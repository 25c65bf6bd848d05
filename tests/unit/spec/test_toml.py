import random
from pathlib import Path
from typing import Any

import pytest

from boardcluster.errors import SpecError
from boardcluster.spec.toml import KeyPath, TomlDocument, parse_toml, path_from, read_toml

PATH = Path("some.toml")


def _paths(data: Any, prefix: KeyPath = ()) -> dict[KeyPath, Any]:
    """Every key path and array element of parsed data, with its value."""
    found: dict[KeyPath, Any] = {}
    children: Any = ()
    if isinstance(data, dict):
        children = data.items()
    elif isinstance(data, list):
        children = enumerate(data)
    for key, value in children:
        found[(*prefix, key)] = value
        found.update(_paths(value, (*prefix, key)))
    return found


def _check(text: str) -> TomlDocument:
    """Compare the scanner with tomllib: the same paths, and each integer stands in its own line."""
    document = parse_toml(text, path=PATH)
    paths = _paths(document.data)
    assert set(document.lines) == set(paths)
    for path, value in paths.items():
        if type(value) is int:  # a bool is an int too, but holds no line
            assert document.line_of(path) == value, path
    return document


# In these texts every integer is the number of the line it stands in.
NUMBERED = {
    "tables and arrays of tables": """\
a = 1
[cluster]  # [not.a] table
name = 3

[[node]]
x = 6
  [node.disk]
  size = 8
  [[node.port]]
  number = 10
  [[node.port]]
  number = 12
[[node]]
x = 14
[[node.port]]
number = 16
[ spaced . "out" ]
y = 18
""",
    "dotted and quoted keys": """\
a.b.c = 1
a.b.d = 2
"a.b" = 3
'lit\\eral' . x = 4
"esc\\"aped # \\u00e9" = 5
1234 = 6
"" = 7
[t."x.y"]
k.l = 9
""",
    "arrays over lines": """\
a = [ 1, 1,
  2, # ] not the end
  [ 3,
    4 ],
  # 99,

  7,
]
b = [] # empty
c = [
]
d = 12
""",
    "inline tables": """\
a = { x = 1, y.z = 1, w = { v = 1 } }
b = {}
c = [ { x = 3 },
      { x = 4, s = "}" }, ]
d = 5
""",
    "strings that look like something else": """\
a = "x = 1 # \\" ]"
b = 'it is # a [ { literal\\'
c = 3
d = \"\"\"
[table]
k = 9 \\
\\\"\"\" still \"\" inside ''' \"\"\"\"\"
e = 8
f = '''
\\''' # gone
g = 11
h = ['''
]''', \"\"\"\"a\"\"\"\",
14, 14]
i = \"\"\"\"\"\"
j = 16
k = ''''''''
l = 18
""",
    "dates, floats and words": """\
a = 1979-05-27 07:32:00Z # a blank inside
b = [1979-05-27 07:32:00, 3.5e-7, inf, -nan, true]
c = 3
d = { e = 07:32:00, f = 4 }
""",
    "no newline at the end": "a = 1\nb = 2",
}


@pytest.mark.parametrize("name", NUMBERED)
def test_the_scanner_agrees_with_tomllib_and_knows_lines(name: str) -> None:
    _check(NUMBERED[name])


@pytest.mark.parametrize("name", NUMBERED)
def test_windows_line_ends_change_nothing(name: str) -> None:
    _check(NUMBERED[name].replace("\n", "\r\n"))


def test_headers_point_at_themselves() -> None:
    document = _check(NUMBERED["tables and arrays of tables"])
    assert document.line_of(("cluster",)) == 2
    assert document.line_of(("node",)) == 5
    assert document.line_of(("node", 0)) == 5
    assert document.line_of(("node", 0, "port", 1)) == 11
    assert document.line_of(("node", 1)) == 13


def test_a_missing_key_has_the_line_of_its_nearest_ancestor() -> None:
    document = _check(NUMBERED["tables and arrays of tables"])
    assert document.line_of(("node", 1, "memory")) == 13
    assert document.line_of(("cluster", "name", "deeper")) == 3
    assert document.line_of(("nothing", 3, "here")) == 1
    assert document.line_of(()) == 1


def test_a_tables_own_header_beats_one_that_implied_it() -> None:
    document = _check("[a.b]\nx = 2\n[a]\ny = 4\n")
    assert document.line_of(("a", "missing")) == 3


class _Writer:
    """Writes random TOML in which every integer is the number of its line."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.text = ""
        self.names = 0

    def key(self) -> str:
        self.names += 1
        forms = (f"k{self.names}", f'"k {self.names}\\t#"', f"'k={self.names}'", f"a{self.names}.b")
        return self.rng.choice(forms)

    def put(self, text: str) -> None:
        self.text += text

    def blank(self, *, lines: bool) -> None:
        self.put(self.rng.choice(["", " ", "\t"]))
        if lines and self.rng.random() < 0.3:
            self.put(self.rng.choice(["\n", "# ]}\"'''\n", "\n\n"]))

    def value(self, depth: int, *, lines: bool = True) -> None:
        kind = self.rng.randrange(8 if depth else 5)
        if kind <= 1:
            self.put(str(self.text.count("\n") + 1))
        elif kind == 2:
            self.put(self.rng.choice(['"#]\\""', "'#}\\'", "-0.5", "true", "07:32:00"]))
        elif kind in (3, 4) and lines:
            # Up to two quotes may stand before the closing three.
            mark = self.rng.choice(['"""', "'''"])
            body = self.rng.choice(["\n\n", "a\n]", "\n#", " '\n\" "])
            self.put(f"{mark}{body}{mark[: self.rng.randrange(3)]}{mark}")
        elif kind in (5, 6):
            self.put("[")
            for _ in range(self.rng.randrange(4)):
                self.blank(lines=lines)
                self.value(depth - 1, lines=lines)
                self.blank(lines=lines)
                self.put(",")
            self.blank(lines=lines)
            self.put("]")
        elif kind == 7:
            self.put("{")
            for number in range(self.rng.randrange(4)):
                self.put(", " if number else " ")
                self.put(f"{self.key()} = ")
                self.value(depth - 1, lines=False)
            self.put(" }")
        else:
            self.put("0.5")

    def document(self) -> str:
        for _ in range(self.rng.randrange(12)):
            if self.rng.random() < 0.4:
                header = self.rng.choice(
                    ["[[n]]", "[[n.m]]", f"[t.{self.key()}]", f"[{self.key()}]"]
                )
                if header == "[[n.m]]" and "[[n]]" not in self.text:
                    header = "[[n]]"
                self.put(f"{header} # x\n")
            else:
                self.put(f"  {self.key()} = ")
                self.value(3)
                self.put("\n")
        return self.text


def test_random_documents_agree_with_tomllib() -> None:
    for seed in range(400):
        _check(_Writer(seed).document())


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a = 1\nb = demo\n", "some.toml:2:5: not TOML: Invalid value"),
        ("a = 1\na = 2\n", "some.toml:2:6: not TOML: Cannot overwrite a value"),
        ("[a\n", "some.toml:1:3: not TOML: "),
        ("a = 1\nb = [1,\n2,", "some.toml:3:3: not TOML: "),
        ('a = """x\ny', "some.toml:2:2: not TOML: "),
    ],
)
def test_syntax_errors_name_file_line_and_column(text: str, place: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_toml(text, path=PATH)
    assert caught.value.message.startswith(place)
    assert "(at " not in caught.value.message
    line = place.split(":")[1]
    assert caught.value.hint.startswith(f"correct line {line} of some.toml")


def test_an_unquoted_text_gets_a_hint_about_quotes() -> None:
    with pytest.raises(SpecError) as caught:
        parse_toml("name = demo", path=PATH)
    assert "double quotes" in caught.value.hint


def test_monsters_are_refused_not_crashed_on() -> None:
    with pytest.raises(SpecError, match="nested too deeply"):
        parse_toml("a = " + "[" * 20_000, path=PATH)
    with pytest.raises(SpecError, match="too many digits"):
        parse_toml("a = " + "9" * 5000, path=PATH)


def _read_error(path: Path) -> SpecError:
    with pytest.raises(SpecError) as caught:
        read_toml(path, create_hint="make one")
    assert str(path) in caught.value.message
    return caught.value


def test_a_file_is_read_with_its_lines_also_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(b"\xef\xbb\xbfa = 1\r\nb = 2\r\n")
    document = read_toml(path, create_hint="make one")
    assert document.data == {"a": 1, "b": 2}
    assert document.line_of(("b",)) == 2
    assert document.path == path


def test_a_missing_file(tmp_path: Path) -> None:
    error = _read_error(tmp_path / "none.toml")
    assert "no such file" in error.message
    assert error.hint == "make one"


def test_a_folder(tmp_path: Path) -> None:
    assert "is a folder" in _read_error(tmp_path).message


def test_a_device_is_not_read_forever() -> None:
    assert "not a regular file" in _read_error(Path("/dev/zero")).message


def test_a_folder_of_the_path_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert "Not a directory" in _read_error(tmp_path / "file" / "a.toml").message


def test_an_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.toml"
    path.write_text("a = 1")

    def refuse(self: Path, mode: str) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refuse)
    error = _read_error(path)
    assert "may not be read" in error.message
    assert "permissions" in error.hint


def test_not_utf8_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(b'a = 1\nb = "caf\xe9"\n')
    error = _read_error(path)
    assert f"{path}:2: is not UTF-8 text: byte 0xe9 at offset 14" in error.message
    assert "UTF-8" in error.hint


@pytest.mark.parametrize("content", [b"", b" \n\t\r\n", b"\xef\xbb\xbf"])
def test_an_empty_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(content)
    error = _read_error(path)
    assert "is empty" in error.message
    assert error.hint == "make one"


def test_a_file_too_large_to_be_a_specification(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text("#" * (2**20 + 1))
    assert "is larger than" in _read_error(path).message


def test_paths_in_a_file_begin_at_its_folder_or_at_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/homes/me")
    folder = Path("/campaigns")
    assert path_from(folder, "texts/a.txt") == Path("/campaigns/texts/a.txt")
    assert path_from(folder, "/texts/a.txt") == Path("/texts/a.txt")
    assert path_from(folder, "~/a.txt") == Path("/homes/me/a.txt")
    assert path_from(folder, "~no-such-user-/a.txt") == Path("/campaigns/~no-such-user-/a.txt")
