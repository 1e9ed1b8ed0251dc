"""The commands of `weir` other than simulate, and what all commands share."""

import csv
import io
import json
import os
import pty
import subprocess
import sys
import unittest

from program import BINARY, SOURCE, ProgramTest, weir
from terminal import Terminal

GOOD = """\
limits:
  per-ip: {key: ip, burst: 20, count: 100, period: 1s}
  orders: {burst: 300, count: 300, period: 180m}
overrides:
  per-ip:10.0.0.2: {burst: 20, count: 40, period: 1s}
"""
BAD = """\
limits:
  per-ip: {key: ip, brust: 20, rate: 100/s}
  orders: {burst: 0, count: 300, period: 180m}
store: disk
"""
COMMANDS = ["check", "throttle", "stats", "clients", "client", "top", "watch", "reset", "adjust", "access add", "access list",
            "access remove", "external forget", "config check", "config show", "config diff", "config schema",
            "config reference", "config import",
            "simulate", "completion", "man", "version"]


def on_a_terminal(*arguments, env=None):
    """What a person would see, colours and all."""
    leader, follower = pty.openpty()
    clean = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_") and name != "NO_COLOR"}
    clean.update({"TERM": "xterm"} | (env or {}))
    process = subprocess.Popen([BINARY, *map(str, arguments)], stdout=follower, stderr=follower, env=clean)
    os.close(follower)
    seen = b""
    while True:
        try:
            chunk = os.read(leader, 65536)
        except OSError:  # Linux's way to say that the other side is closed
            break
        if not chunk:
            break
        seen += chunk
    os.close(leader)
    return process.wait(60), seen.decode().replace("\r\n", "\n")


class Help(ProgramTest):
    def test_weir_alone_prints_every_command(self):
        alone = weir()
        self.assertEqual((alone.returncode, alone.stdout), (2, ""), "a command is missing")
        for command in COMMANDS:
            self.assertIn("\n  " + command + " ", alone.stderr)
        for asked in (weir("--help"), weir("-h")):
            self.assertEqual((asked.returncode, asked.stdout, asked.stderr), (0, alone.stderr, ""))

    def test_every_command_has_one_with_examples(self):
        for command in COMMANDS:
            with self.subTest(command):
                done = weir(*command.split(), "--help")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertTrue(done.stdout.startswith("Usage: weir " + command))
                self.assertEqual(weir("ratelimit", *command.split(), "--help").stdout, done.stdout)
                self.assertIn("\nExamples:\n  ", done.stdout)
                self.assertIn("weir " + command, done.stdout.split("Examples:")[1])
                self.assertLessEqual(max(map(len, done.stdout.splitlines())), 80)

    def test_help_names_a_command_first_too(self):
        self.assertEqual(weir("help").stdout, weir("--help").stdout)
        self.assertEqual(weir("help", "config").stdout, weir("config", "--help").stdout)
        for command in COMMANDS:
            self.assertEqual(weir("help", *command.split()).stdout, weir(*command.split(), "--help").stdout)
        wrong = weir("help", "simulat")
        self.assertEqual((wrong.returncode, wrong.stderr),
                         (2, 'weir: there is no command "simulat"; did you mean "simulate"?\n'))

    def test_a_group_lists_its_commands(self):
        alone, asked = weir("config"), weir("config", "--help")
        self.assertEqual((alone.returncode, alone.stdout, alone.stderr), (2, "", asked.stdout))
        self.assertEqual((asked.returncode, asked.stderr), (0, ""))
        self.assertIn("  config check ", asked.stdout)
        self.assertNotIn("simulate", asked.stdout)


class Usage(ProgramTest):
    def refused(self, *arguments):
        done = weir(*arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr

    def test_an_unknown_command_is_answered_with_the_nearest(self):
        self.assertEqual(self.refused("simulat"), 'weir: there is no command "simulat"; did you mean "simulate"?\n')
        self.assertEqual(
            self.refused("config", "chekc", "x"), 'weir: there is no command "config chekc"; did you mean "config check"?\n'
        )
        self.assertEqual(self.refused("frobnicate"), 'weir: there is no command "frobnicate"; see weir --help\n')

    def test_what_is_missing_or_unknown_is_named(self):
        self.assertIn("--config", self.refused("simulate", "--trace", "-"))
        self.assertIn("FILE", self.refused("config", "check"))
        self.assertIn("--colour", self.refused("config", "check", "x", "--colour"))
        self.assertEqual(self.refused("serve", "--cofnig", "weir.yaml"),
                         'weir: there is no option "--cofnig"; did you mean "--config"?\n')
        self.assertEqual(self.refused("config", "check"),
                         "weir: missing FILE (the configuration); see weir config check --help\n")
        self.assertEqual(self.refused("simulate", "-c"), "weir: --config needs one value: FILE; see weir simulate --help\n")
        self.assertEqual(self.refused("config", "check", "a", "b"),
                         'weir: unexpected argument "b"; see weir config check --help\n')
        self.assertIn('"xml" must be table, json or csv', self.refused("config", "check", "x", "--output", "xml"))


class Files(ProgramTest):
    def test_a_configuration_is_taken_with_or_without_its_option(self):
        good = self.file("a.yaml", GOOD)
        for command in ("check", "show"):
            spellings = [weir("config", command, *words).stdout for words in ((good,), ("--config", good), ("-c", good))]
            self.assertEqual(len(set(spellings)), 1)
            self.assertIn("per-ip", spellings[0])


class Csv(ProgramTest):
    def rows(self, *arguments, code=0):
        done = weir(*arguments, "--output", "csv")
        self.assertEqual((done.returncode, done.stderr), (code, ""))
        return list(csv.reader(io.StringIO(done.stdout)))

    def test_has_a_line_of_names_and_quotes_what_needs_it(self):
        good, bad = self.file("a.yaml", GOOD), self.file("b.yaml", BAD)
        limits = self.rows("config", "check", good)
        self.assertEqual(limits[0], ["limit", "number", "key", "id", "allows", "quota", "overrides", "mode"])
        self.assertEqual(limits[1], ["per-ip", "", "ip", "ip", "20 at once, then 100 per 1s (one per 10ms)", "", "1", "enforce"])
        problems = self.rows("config", "check", bad, code=2)
        self.assertEqual(problems[0], ["file", "line", "column", "message"])
        self.assertEqual(problems[1], [str(bad), "2", "21", 'unknown key "brust"; did you mean "burst"?'])
        settings = self.rows("config", "show", "--config", good)
        self.assertEqual(settings[0], ["path", "value", "origin"])
        self.assertIn(["headers.ratelimit", "[x-ratelimit, ietf]", "default"], settings)
        changes = self.rows("config", "diff", good, self.file("c.yaml", GOOD + "log: {level: warn}\n"))
        self.assertEqual(changes, [["change", "what", "before", "after", "live"],
                                   ["changed", "setting log.level", "info", "warn", "true"]])


class Version(ProgramTest):
    def test_is_one_line(self):
        done = weir("version")
        self.assertRegex(done.stdout, r"^weir \d+\.\d+\.\d+ \(.+\)\n$")
        self.assertEqual(weir("--version").stdout, done.stdout)


class ConfigCheck(ProgramTest):
    def test_says_in_words_what_it_understood(self):
        path = self.file("weir.yaml", GOOD)
        done = weir("config", "check", path)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(f"{path} is valid: 2 limits, 1 override\n", done.stdout)
        self.assertIn("20 at once, then 100 per 1s (one per 10ms)", done.stdout)
        self.assertIn("300 at once, then 300 per 3h (one per 36s)", done.stdout)
        self.assertNotIn("\x1b", done.stdout)

    def test_prints_every_problem_with_its_place(self):
        path = self.file("weir.yaml", BAD)
        done = weir("config", "check", path)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        *problems, last = done.stderr.splitlines()
        self.assertEqual(len(problems), 3, done.stderr)
        for problem, where in zip(problems, ("2:21: ", "3:", "4:")):
            self.assertTrue(problem.startswith(f"{path}:{where}"), problem)
        self.assertIn("brust", problems[0])
        self.assertEqual(last, f"weir: {path} is refused: 3 problems")

    def test_prints_the_first_20_problems_of_a_kind_and_counts_the_rest(self):
        lines = "".join(f"  nobody{i}:{i}: {{burst: 5}}\n" for i in range(500))
        path = self.file("weir.yaml", f"limits: {{a: {{rate: 1/s, brust: 5}}}}\noverrides:\n{lines}")
        done = weir("config", "check", path)
        self.assertEqual(done.returncode, 2)
        *problems, rest, last = done.stderr.splitlines()
        self.assertEqual(len(problems), 21, done.stderr)
        self.assertIn("brust", problems[0])
        self.assertTrue(all("is for an unknown limit" in problem for problem in problems[1:]))
        self.assertEqual(rest, f"... and 480 more like {problems[1]}")
        self.assertEqual(last, f"weir: {path} is refused: 501 problems")
        machine = weir("config", "check", path, "--output", "json")
        self.assertEqual(len(json.loads(machine.stdout)["problems"]), 501)

    def test_warns_about_an_empty_configuration(self):
        for text in ("", "# nothing\n", "limits: {}\n"):
            path = self.file("weir.yaml", text)
            done = weir("config", "check", path)
            self.assertEqual(done.returncode, 0)
            self.assertEqual(done.stderr, f"warning: {path} has no limits: only callers that send their own numbers "
                                          "(/v1/throttle, CL.THROTTLE) are limited\n")

    def test_warns_about_a_redis_without_effect(self):
        limits = "limits: {a: {rate: 1/s}}\n"
        redis = 'redis: {endpoints: ["127.0.0.1:1"]}\n'
        for text, warnings in (
                (limits + redis, "{path}:2:20: redis is not used, because store is memory: set store: redis"),
                (limits + redis + "store: redis\n", ""),
                (limits + 'cache_redis: {endpoints: ["127.0.0.1:1"]}\n',
                 "cache_redis is not used: it caches the answers of external services, and there is none")):
            path = self.file("weir.yaml", text)
            done = weir("config", "check", path)
            expected = f"warning: {warnings.format(path=path)}\n" if warnings else ""
            self.assertEqual((done.returncode, done.stderr), (0, expected), text)

    def test_reads_an_address_without_a_host_as_all_addresses(self):
        """As in the examples of `weir serve --help`."""
        path = self.file("weir.yaml", "limits: {a: {rate: 1/s}}\n")
        done = weir("config", "check", path, "--set", "log.level=debug", "--set", "listen[0].address=:8081")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('address ":8081" is not loopback', done.stderr)
        admin = weir("config", "check", self.file("weir.yaml", 'listen: [{address: ":9090", speak: admin}]\n'))
        self.assertEqual(admin.returncode, 2)
        self.assertIn("needs admin.read_token or admin.write_token", admin.stderr)

    def test_reports_what_an_external_service_lacks(self):
        limit = "limits: {tenant: {rate: 1/s}}\n"
        for section, sentence in (
                ("{enabled: true, limit: tenant}", "external needs http: {url: ...} or grpc: {address: ...}"),
                ("{limit: tenat, http: {url: 'http://x'}}", 'external: unknown limit "tenat"; did you mean "tenant"?'),
                ("{limit: tenant, http: {url: 'ftp://x'}}", 'url "ftp://x" must begin with http:// or https://')):
            done = weir("config", "check", self.file("weir.yaml", f"{limit}external: {section}\n"))
            self.assertEqual(done.returncode, 2, section)
            self.assertIn(sentence, done.stderr)
        whole = self.file("weir.yaml", limit + "external: {enabled: true, limit: tenant, http: {url: 'http://x'}}\n")
        done = weir("config", "check", whole)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_as_json(self):
        good = weir("config", "check", self.file("good.yaml", GOOD), "--output", "json")
        self.assertEqual(good.returncode, 0)
        answer = json.loads(good.stdout)
        self.assertTrue(answer["valid"])
        self.assertEqual([limit["name"] for limit in answer["limits"]], ["per-ip", "orders"])
        bad = weir("config", "check", self.file("bad.yaml", BAD), "--output=json")
        self.assertEqual((bad.returncode, bad.stderr), (2, ""))
        answer = json.loads(bad.stdout)
        self.assertEqual([problem["line"] for problem in answer["problems"]], [2, 3, 4])

    def test_refuses_a_file_that_is_not_there(self):
        done = weir("config", "check", self.directory / "missing.yaml")
        self.assertEqual(done.returncode, 2)
        self.assertIn("missing.yaml", done.stderr)


class ConfigShow(ProgramTest):
    def test_names_the_origin_of_every_value(self):
        path = self.file("weir.yaml", GOOD)
        done = weir("config", "show", "--config", path, env={"WEIR_REDIS_MODE": "cluster"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"(?m)^redis\.mode: cluster +# WEIR_REDIS_MODE$")
        self.assertRegex(done.stdout, r"(?m)^redis\.db: 0 +# default$")
        self.assertRegex(done.stdout, r"(?m)^limits\.per-ip\.burst: 20 +# .*weir\.yaml:2:\d+$")
        as_json = weir("config", "show", "--config", path, "--output", "json")
        shown = json.loads(as_json.stdout)
        self.assertIn({"path": "redis.mode", "value": "single", "origin": "default"}, shown)
        self.assertIn({"path": "headers.ratelimit", "value": ["x-ratelimit", "ietf"], "origin": "default"}, shown)
        overrides = [setting for setting in shown if setting["path"].startswith("overrides.")]
        self.assertTrue(overrides)
        for setting in overrides:
            self.assertRegex(setting["origin"], r"weir\.yaml:\d+:\d+$")

    def test_works_from_the_environment_alone(self):
        done = weir("config", "show", env={"WEIR_RATE_LIMIT_BURST": "7"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("limits.per-ip.burst: 7  # WEIR_RATE_LIMIT_BURST\n", done.stdout)
        self.assertIn("limits.per-ip.rate: 100.0/s  # default\n", done.stdout, "only what is set is named")


class Set(ProgramTest):
    """`--set PATH=VALUE`, on top of everything else."""

    def test_goes_before_the_file_and_the_environment(self):
        path = self.file("weir.yaml", GOOD + "log: {level: debug}\n")
        done = weir("config", "show", "--config", path, "--set", "log.level=warn", "--set", "limits.per-ip.rate=5/s",
                    "--set", "redis.endpoints=a:1,b:2", "--set", "listen[1].address=127.0.0.1:1",
                    env={"WEIR_LOG_LEVEL": "error", "WEIR_LIMITS_PER_IP_COUNT": "7"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for line in ("log.level: warn  # --set", "limits.per-ip.rate: 5/s  # --set", "redis.endpoints: [a:1, b:2]  # --set",
                     "listen[0].address: 127.0.0.1:8080  # default", "listen[1].address: 127.0.0.1:1  # --set"):
            self.assertIn("\n" + line + "\n", "\n" + done.stdout)
        self.assertNotIn("limits.per-ip.count", done.stdout)

    def test_is_checked_like_the_file(self):
        path = self.file("weir.yaml", GOOD)
        done = weir("config", "check", "--set", "redis.moed=x", "--set", "store=disk", path)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.splitlines()[:2],
                         ['--set store: store must be memory or redis, not "disk"',
                          '--set redis.moed: there is no setting "redis.moed"; did you mean "redis.mode"?'])
        for command in (("config", "check", path), ("config", "diff", path, path), ("config", "show"), ("serve",)):
            for given, sentence in ((["--set", "x"], '--set "x" must be PATH=VALUE, such as redis.mode=cluster'),
                                    (["--set", "x=1", "--set", "x=1"], "--set x is given twice")):
                done = weir(*command, *given)
                self.assertEqual((done.returncode, done.stderr), (2, f"weir: {sentence}\n"))


class ConfigDiff(ProgramTest):
    def test_finds_no_change_between_two_spellings(self):
        other = GOOD.replace("{key: ip, burst: 20, count: 100, period: 1s}", "{burst: 20, rate: 100/s, key: ip}  # same")
        done = weir("config", "diff", self.file("a.yaml", GOOD), self.file("b.yaml", other))
        self.assertEqual((done.returncode, done.stdout), (0, "no change\n"))

    def test_lists_what_changes(self):
        other = GOOD.replace("count: 100", "count: 200").replace("  orders:", "  others:")
        done = weir("config", "diff", self.file("a.yaml", GOOD), self.file("b.yaml", other))
        self.assertEqual(done.returncode, 0)
        self.assertIn("changed limit per-ip", done.stdout)
        self.assertIn("removed limit orders", done.stdout)
        self.assertIn("added limit others", done.stdout)
        as_json = weir("config", "diff", self.directory / "a.yaml", self.directory / "b.yaml", "--output", "json")
        self.assertEqual({change["change"] for change in json.loads(as_json.stdout)}, {"changed", "removed", "added"})

    def test_refuses_a_bad_side(self):
        done = weir("config", "diff", self.file("a.yaml", GOOD), self.file("b.yaml", BAD))
        self.assertEqual((done.returncode, done.stdout), (2, ""))


class ConfigSchema(ProgramTest):
    def test_is_the_one_in_the_source_tree(self):
        done = weir("config", "schema")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stdout, (SOURCE / "schema" / "weir.schema.json").read_text())
        json.loads(done.stdout)


class Terminals(ProgramTest):
    def test_have_colours_unless_told_otherwise(self):
        good = self.file("weir.yaml", GOOD)
        code, seen = on_a_terminal("config", "check", good)
        self.assertEqual(code, 0)
        self.assertIn("\x1b[", seen)
        for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertNotIn("\x1b[", on_a_terminal("config", "check", good, env=env)[1])

    def test_see_the_same_text_as_pipes(self):
        good = self.file("weir.yaml", GOOD)
        self.assertEqual(on_a_terminal("config", "check", good, env={"NO_COLOR": "1"})[1], weir("config", "check", good).stdout)


class Completion(ProgramTest):
    def complete(self, *words):
        script = (
            'source <("$0" completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _weir; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(["bash", "-c", script, BINARY, *words], capture_output=True, cwd=self.directory, timeout=60)
        self.assertEqual(done.stderr, b"")
        return done.stdout.decode().split()

    def test_completes_commands_options_values_and_files(self):
        self.file("weir.yaml", GOOD)
        self.assertEqual(self.complete("weir", "sim"), ["simulate"])
        self.assertEqual(self.complete("weir", "config", "sh"), ["show"])
        self.assertEqual(self.complete("weir", "simulate", "--tr"), ["--trace"])
        self.assertEqual(self.complete("weir", "config", "check", "we"), ["weir.yaml"])
        self.assertEqual(self.complete("weir", "config", "show", "--config", "we"), ["weir.yaml"])
        self.assertEqual(self.complete("weir", "config", "show", "--output", "j"), ["json"])
        self.assertEqual(self.complete("weir", "config", "diff", "we"), ["weir.yaml"])
        self.assertEqual(self.complete("weir", "access", ""), ["add", "list", "remove", "--help"])
        self.assertEqual(self.complete("weir", "access", "add", "de"), ["deny"])
        self.assertEqual(self.complete("weir", "top", "--by", ""), ["requests", "denied", "shadow_denied"])
        self.assertEqual(self.complete("weir", "clients", "--sort", "rem"), ["remaining"])
        self.assertEqual(self.complete("weir", "client", "--so"), [])
        self.assertEqual(self.complete("weir", "reset", "--yes", "--bl"), ["--block"])
        self.assertEqual(self.complete("weir", "ratelimit", "re"), ["reset"])
        self.assertEqual(self.complete("weir", "ratelimit", "reset", "--ap"), ["--apikey"])
        self.assertEqual(self.complete("weir", "stats", "--token-file", "we"), ["weir.yaml"])

    def test_zsh_completes_the_same(self):
        self.file("weir.yaml", GOOD)
        # zsh completes only on a terminal; the words it offers are taken from the list that it prints.
        setup = f"PS1='> '; cd {self.directory}; PATH={os.path.dirname(BINARY)}:$PATH; autoload -U compinit; compinit -u -D; " \
                "source <(weir completion zsh); zstyle ':completion:*' list-prompt ''; setopt no_list_ambiguous; LISTMAX=1000; echo ready"
        for line, wanted in (("weir sim", "weir simulate"), ("weir config sh", "weir config show"), ("weir top --by den", "denied"),
                             ("weir access add de", "deny"), ("weir ratelimit res", "weir ratelimit reset"),
                             ("weir reset --apik", "--apikey"), ("weir config show --config we", "weir.yaml"),
                             ("weir config check we", "weir.yaml")):
            with self.subTest(line):
                zsh = Terminal(self, ["zsh", "-f"], columns=200, env=os.environ | {"TERM": "dumb"}, lenient=True)
                zsh.type(setup.replace("echo ready", "echo rea''dy") + "\n")
                zsh.until(lambda text: "\nready" in text)
                zsh.type(line + "\t")
                zsh.until(lambda text: wanted in text.split("\nready")[1])

    def test_fish_completes_the_same(self):
        self.file("weir.yaml", GOOD)
        script = f"set PATH {os.path.dirname(BINARY)} $PATH; weir completion fish | source; complete -C $argv[1]"
        home = {"HOME": str(self.directory), "XDG_CONFIG_HOME": str(self.directory), "XDG_DATA_HOME": str(self.directory)}
        for line, wanted in (("weir sim", ["simulate"]), ("weir config sh", ["show"]), ("weir top --by den", ["denied"]),
                             ("weir access add de", ["deny"]), ("weir ratelimit res", ["reset"]), ("weir reset --apik", ["--apikey"]),
                             ("weir reset --yes --bl", ["--block"]), ("weir config show --config we", ["weir.yaml"]),
                             ("weir config check we", ["weir.yaml"]), ("weir clients --sort rem", ["remaining"])):
            with self.subTest(line):
                done = subprocess.run(["fish", "--no-config", "-c", script, line], capture_output=True, text=True, cwd=self.directory,
                                      env=os.environ | home, timeout=60, check=False)
                self.assertEqual([row.split("\t")[0] for row in done.stdout.splitlines()], wanted, done.stderr)


class Manual(ProgramTest):
    def test_renders_and_lists_commands_and_exit_statuses(self):
        page = weir("man").stdout
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-P-cbou"], input=page, capture_output=True, text=True,
                              timeout=60, check=True)
        self.assertEqual(done.stderr, "")
        for command in COMMANDS:
            self.assertRegex(done.stdout, rf"(?m)^ +weir {command}\b")
        self.assertRegex(done.stdout, r"(?s)EXIT STATUS.*\n +0 +success.*\n +3 +denied, or not found")
        self.assertIn("WEIR_TOKEN", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
