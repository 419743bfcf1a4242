"""What README.md and docs/ tell people to type: every command, flag and setting is known to the program, and README's
lines that need no data of one's own are run.  cli_contract_docs.py PROGRAM"""
import os
import re
import shlex
import unittest

from contract import ROOT, Contract

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TYPED = re.compile(r"^vitrail ([^#\n]*)|`vitrail ([^`\n]*)`", re.M)
FLAG = re.compile(r"--?[a-z][a-z0-9-]*")


def typed(page):
    """The words after `vitrail` of every command line: of blocks and of code in sentences."""
    for block, inline in TYPED.findall(page.read_text()):
        yield shlex.split((block or inline).replace("...", " "))


class Documented(Contract):
    helps = {}

    def help_of(self, command):
        if command not in self.helps:
            self.helps[command] = self.ok(*command.split(), "--help").stdout
        return self.helps[command]

    def parts(self, words):
        """(command, its flags, its settings); of `launch` also those of the command that it starts."""
        commands = re.findall(r"^  ([a-z]+(?: [a-z]+)?)  ", self.help_of(""), re.M)
        start = words[:1]
        if words[0] in ("bench", "data") and len(words) > 1:
            start.append(words[1].removeprefix("--").split("/")[0])  # `bench --tune`, `data check/stats`
        if " ".join(start) not in commands:
            return [(words[0], [], [])] if words[0] in {name.split()[0] for name in commands} else [(None, words, [])]
        rest = words[len(start):]
        started = next((i for i, word in enumerate(rest) if start == ["launch"] and word in commands), len(rest))
        flags = [word.split("=")[0] for word in rest[:started] if FLAG.fullmatch(word.split("=")[0])]
        keys = [rest[i + 1].split("=")[0] for i, word in enumerate(rest[:started]) if word == "--set"]
        return [(" ".join(start), flags, keys), *(self.parts(rest[started:]) if started < len(rest) else [])]

    def test_every_command_flag_and_setting_is_known(self):
        seen = 0
        for page in PAGES:
            for words in typed(page):
                for command, flags, keys in self.parts(words):
                    self.assertIsNotNone(command, f"{page.name}: {words}")
                    said = self.help_of(command)
                    for word in [*flags, *keys]:
                        with self.subTest(page=page.name, line=" ".join(words)):
                            self.assertRegex(said, rf"(?m)(^|[ ,]){re.escape(word)}([ =,]|$)")
                    seen += 1
        self.assertGreater(seen, 60)

    def test_lines_of_the_readme_that_need_no_data_run(self):
        for name in ["examples", "configs"]:
            os.symlink(ROOT / name, self.tmp / name)
        quick = ("predict", "explain", "plan", "convert", "doctor")
        ran = [words for words in typed(ROOT / "README.md")
               if words[0] in quick and not any(word.isupper() for word in words)]  # IN, MODEL: what one puts there
        for words in ran:
            self.ok(*words, cwd=self.tmp)
        self.assertGreaterEqual(len(ran), 6, ran)
        self.assertTrue((self.tmp / "deit_tiny.npz").stat().st_size > 10**7)


if __name__ == "__main__":
    unittest.main()
