"""What deploy/ holds is read by the tools that will read it: Prometheus, systemd, Kubernetes' YAML, and Weir itself."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import yaml

from serving import POLICY, Server

DEPLOY = pathlib.Path(os.environ["WEIR_SOURCE"]) / "deploy"
WEIR = os.environ["WEIR"]


def run(*command, **options):
    return subprocess.run([str(word) for word in command], text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)


class Prometheus(unittest.TestCase):
    def test_alert_rules_fire_when_they_should(self):
        done = run("promtool", "test", "rules", DEPLOY / "prometheus/alerts_test.yaml")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_every_metric_that_rules_and_panels_name_exists(self):
        metrics = Server(self).get("admin", "/metrics")
        known = set(re.findall(r"^# TYPE (\S+)", metrics, re.MULTILINE))
        histograms = set(re.findall(r"^# TYPE (\S+) histogram", metrics, re.MULTILINE))
        known |= {name + "_bucket" for name in histograms}
        for file in ("prometheus/alerts.yaml", "grafana/weir.json"):
            named = set(re.findall(r"\b(?:weir|process)_[a-z_]+\b", (DEPLOY / file).read_text()))
            self.assertGreater(len(named), 5)
            self.assertEqual(named - known, set(), file)

    def test_the_dashboard_is_complete_json(self):
        board = json.loads((DEPLOY / "grafana/weir.json").read_text())
        self.assertGreater(len(board["panels"]), 8)
        for panel in board["panels"]:
            self.assertTrue(panel["targets"], panel["title"])


    def test_every_alert_has_a_test_in_which_it_fires(self):
        rules = yaml.safe_load((DEPLOY / "prometheus/alerts.yaml").read_text())["groups"][0]["rules"]
        tests = yaml.safe_load((DEPLOY / "prometheus/alerts_test.yaml").read_text())["tests"]
        fired = {one["alertname"] for test in tests for one in test["alert_rule_test"] if one["exp_alerts"]}
        self.assertEqual({rule["alert"] for rule in rules}, fired)

    def test_the_scrape_job_is_valid_and_has_the_name_that_alerts_use(self):
        file = DEPLOY / "prometheus/scrape.yaml"
        done = run("promtool", "check", "config", "--syntax-only", file)
        self.assertEqual(done.returncode, 0, done.stdout)
        [job] = yaml.safe_load(file.read_text())["scrape_configs"]
        self.assertIn(f'up{{job="{job["job_name"]}"}}', (DEPLOY / "prometheus/alerts.yaml").read_text())

    def test_the_scrape_job_for_kubernetes_finds_the_admin_port_of_the_deployment(self):
        # Debian's promtool does not know kubernetes_sd_configs.
        text = (DEPLOY / "prometheus/scrape.yaml").read_text()
        job = yaml.safe_load("".join(re.findall(r"^    #   (.*\n)", text, re.MULTILINE)))
        _, deployment, *_ = yaml.safe_load_all((DEPLOY / "kubernetes/weir.yaml").read_text())
        pod = deployment["spec"]["template"]
        [label] = [f"{name}={value}" for name, value in pod["metadata"]["labels"].items()]
        self.assertEqual(job["kubernetes_sd_configs"][0]["selectors"], [{"role": "pod", "label": label}])
        ports = [port["name"] for port in pod["spec"]["containers"][0]["ports"]]
        self.assertIn(job["relabel_configs"][0]["regex"], ports)


class Image(unittest.TestCase):
    def test_the_build_directories_of_this_machine_stay_out(self):
        ignored = (DEPLOY.parent / ".dockerignore").read_text().splitlines()
        self.assertLessEqual({"build", ".git", "**/node_modules"}, set(ignored))

    def test_the_health_check_needs_no_token_and_fails_without_a_server(self):
        text = (DEPLOY / "Dockerfile").read_text()
        words = json.loads(re.search(r"^HEALTHCHECK .*\\\n  CMD (.*)$", text, re.MULTILINE)[1])
        self.assertIn("/9090 ", words[2])
        server = Server(self, POLICY + "admin: {read_token: rrrrrrrrrrrrrrrr, write_token: wwwwwwwwwwwwwwww}\n")
        words[2] = words[2].replace("/9090 ", f"/{server.ports['admin']} ")
        self.assertEqual(run(*words).returncode, 0)
        server.end()
        self.assertNotEqual(run(*words).returncode, 0)


class ManualPage(unittest.TestCase):
    def test_renders_without_warnings_and_names_every_command(self):
        page = run(WEIR, "man").stdout
        done = subprocess.run(["groff", "-k", "-man", "-ww", "-Tutf8"], input=page, text=True, check=True, capture_output=True)
        self.assertEqual(done.stderr, "")
        plain = re.sub(r".\x08|\x1b\[[0-9;]*m", "", done.stdout)
        for line in run(WEIR).stdout.split("Commands:\n")[1].split("\n\n")[0].splitlines():
            command = line.strip().split("  ")[0]
            self.assertIn(f"weir {command}", plain)
        self.assertLessEqual(max(map(len, plain.splitlines())), 100, "only examples are wider than a page")


class Systemd(unittest.TestCase):
    def test_units_are_valid_and_hardened(self):
        with tempfile.TemporaryDirectory() as folder:
            # The unit names /usr/bin/weir, which is not there before the package is installed.
            for unit in (DEPLOY / "systemd").iterdir():
                text = unit.read_text().replace("/usr/bin/weir", WEIR).replace("Documentation=man:weir(1)\n", "")
                (pathlib.Path(folder) / unit.name).write_text(text)
            units = sorted(pathlib.Path(folder).iterdir())
            done = run("systemd-analyze", "verify", "--man=no", *units)
            self.assertEqual((done.returncode, done.stdout), (0, ""))
            done = run("systemd-analyze", "security", "--offline=true", "--no-pager",
                       pathlib.Path(folder) / "weir.service")
            exposure = float(re.search(r"exposure level.*: ([0-9.]+)", done.stdout)[1])
            self.assertLess(exposure, 2.0, done.stdout)

    def test_each_socket_is_named_after_its_protocol(self):
        for protocol in ("http", "resp", "admin", "proxy"):
            text = (DEPLOY / f"systemd/weir-{protocol}.socket").read_text()
            self.assertIn(f"FileDescriptorName={protocol}\n", text)
            self.assertIn("Service=weir.service\n", text)


class Configurations(unittest.TestCase):
    def check(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            # The directories of the package exist where it is installed.
            file.write(re.sub(r"/(run|var/lib)/weir/", tempfile.gettempdir() + "/", text))
            file.flush()
            environment = {**os.environ, "WEIR_READ": "r" * 32, "WEIR_WRITE": "w" * 32}
            done = run(WEIR, "config", "check", file.name, env=environment)
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_the_package_s_configuration_is_valid(self):
        self.check((DEPLOY / "weir.yaml").read_text())

    def test_the_image_s_configuration_is_valid(self):
        self.check((DEPLOY / "container.yaml").read_text())

    def test_the_config_map_s_configuration_is_valid(self):
        documents = list(yaml.safe_load_all((DEPLOY / "kubernetes/weir.yaml").read_text()))
        self.assertEqual([one["kind"] for one in documents],
                         ["ConfigMap", "Deployment", "Service", "PodDisruptionBudget"])
        self.check(documents[0]["data"]["weir.yaml"])

    def test_probes_and_ports_of_the_deployment_belong_to_its_listeners(self):
        config_map, deployment, service, _ = yaml.safe_load_all((DEPLOY / "kubernetes/weir.yaml").read_text())
        listeners = yaml.safe_load(config_map["data"]["weir.yaml"])["listen"]
        wanted = {int(one["address"].rsplit(":", 1)[1]) for one in listeners}
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        self.assertEqual({port["containerPort"] for port in container["ports"]}, wanted)
        names = {port["name"] for port in container["ports"]}
        self.assertLessEqual({port["targetPort"] for port in service["spec"]["ports"]}, names)
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            self.assertEqual(container[probe]["httpGet"]["port"], "admin")

    def test_no_annotation_sends_prometheus_without_the_token_that_it_needs(self):
        config_map, deployment, *_ = yaml.safe_load_all((DEPLOY / "kubernetes/weir.yaml").read_text())
        self.assertIn("read_token", yaml.safe_load(config_map["data"]["weir.yaml"])["admin"])
        annotations = deployment["spec"]["template"]["metadata"].get("annotations", {})
        self.assertFalse([name for name in annotations if name.startswith("prometheus.io/")])


if __name__ == "__main__":
    unittest.main(verbosity=2)
