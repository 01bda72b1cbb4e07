"""Real clusters of Flink and Spark on this machine: hosts are network namespaces.

The engines are installed once into the folder that NERBERT_CLUSTERS names, or into a temporary one;
`python -m tests.helpers.clusters DIR` does only that.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests.helpers.runs import ROOT, assert_same_bytes, start

TOOL = ROOT.parent / "shared" / "tools" / "cluster"
JARS = ROOT.parent / "shared" / "cluster"
DUMPS = ROOT.parent / "shared" / "data" / "dumps"
TYPES = ROOT.parent / "shared" / "data" / "dbpedia" / "instance_types_en_joie.nt.bz2"
LEADER = "10.77.0.10"
POOL = ("--environment_type", "EXTERNAL", "--environment_config", "localhost:50000")
FLINK = (
    *("--runner", "FlinkRunner", "--flink_master", f"{LEADER}:8081"),
    *("--flink_job_server_jar", str(JARS / "beam-job-server.jar"), *POOL),
)
# Spark notices a host that does not answer after two minutes, and in tests sooner.
SOONER = (
    *("-Dspark.network.timeout=20s", "-Dspark.network.timeoutInterval=5s"),
    *("-Dspark.executor.heartbeatInterval=5s", "-Dspark.worker.timeout=20"),
)
# A Java that lives for a minute spends more on compiling well than it wins by that.
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
SPARK = ("--runner", "PortableRunner", "--job_endpoint", f"{LEADER}:8099", *POOL)
# Files of the first parts of `extract`, and of `corpus`.
EXTRACTED = "documents/reports/part-*.json"
LINKED = "examples/linked/reports/*"


def missing():
    """What a cluster needs and this machine lacks."""
    if os.geteuid() != 0:
        return "no root: network namespaces need it"
    for program in ("ip", "java"):
        if shutil.which(program) is None:
            return f"no {program}"
    if not (JARS / "beam-job-server.jar").is_file() or not TOOL.is_file():
        return "no job server: shared/cluster is not there"
    made = subprocess.run(["ip", "netns", "add", "nerbert-probe"], capture_output=True, text=True)
    if made.returncode:
        return f"no network namespaces: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", "nerbert-probe"], check=True)
    return ""


def get(url):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return json.load(opener.open(f"http://{LEADER}:{url}", timeout=5))


def on(host):
    """The beginning of a command that runs on a host."""
    return [shutil.which("ip"), "netns", "exec", f"nerbert-host{host}"]


class Cluster:
    """A cluster of several hosts, with `nerbert worker` on each."""

    def __init__(self, engine, folder, slots):
        self.engine, self.folder, self.slots = engine, folder, slots
        self._pools = []

    def start(self):
        """Starts two fresh hosts and their leader."""
        self.stop()
        # Java's temporary files of killed hosts are a gigabyte; they go with the cluster.
        temporary = self.folder / "tmp"
        temporary.mkdir()
        sooner = SOONER if self.engine == "spark" else ()
        options = [f"-Djava.io.tmpdir={temporary}", *SHORT_LIVED, *sooner]
        done = subprocess.run(
            [TOOL, "start", self.engine, self.folder, sys.executable, "2", str(self.slots)],
            capture_output=True,
            text=True,
            env={**os.environ, "JAVA_TOOL_OPTIONS": " ".join(options)},
        )
        assert done.returncode == 0, done.stderr
        for host in (1, 2):  # else a connection may take the pool's port
            reserve = "echo 50000 > /proc/sys/net/ipv4/ip_local_reserved_ports"
            subprocess.run([*on(host), "sh", "-c", reserve], check=True)
        self.renew_pools()

    def renew_pools(self, **environment):
        """Ends the pools of all hosts, and starts ours, which have these variables, too."""
        self.end_pools()
        for host in (1, 2):
            self.start_pool(host, **environment)

    def start_pool(self, host, command=(sys.executable, "-m", "nerbert", "worker"), **environment):
        """Starts a pool of workers on a host, and waits until it listens."""
        with open(self.folder / "log" / f"pool-{host}.log", "wb") as log:
            process = subprocess.Popen(
                [*on(host), *map(str, command)],
                stderr=log,
                stdout=log,
                cwd=self.folder,
                env={**os.environ, **environment},
            )
        self._pools.append(process)
        look = [*on(host), "ss", "-ltn", "sport = :50000"]
        for _ in range(300):
            if ":50000" in subprocess.run(look, capture_output=True, text=True).stdout:
                return
            assert process.poll() is None, (self.folder / "log" / f"pool-{host}.log").read_text()
            time.sleep(0.1)
        raise AssertionError("the pool does not listen")

    def end_pools(self):
        """Kills the pools of all hosts: ours, and those that the tool started."""
        for host in (1, 2):
            listed = subprocess.run(
                ["ip", "netns", "pids", f"nerbert-host{host}"], capture_output=True, text=True
            )
            for number in listed.stdout.split():
                words = Path(f"/proc/{number}/cmdline").read_bytes()
                if b"worker_pool_main" in words or b"nerbert" in words.split(b"\0")[2:3]:
                    os.kill(int(number), signal.SIGKILL)
        for process in self._pools:
            process.wait()
        self._pools = []

    def harm(self, how, host=2):
        """`lose`, `cut` or `mend` a host."""
        subprocess.run([TOOL, how, str(host)], check=True)

    def repair(self, how):
        """Makes a cluster whole again after its second host was harmed so."""
        if how == "lose":
            return self.start()
        self.harm("mend")
        for _ in range(300):
            if self._slots() == 2 * self.slots:
                return self.renew_pools()
            time.sleep(0.1)
        return self.start()

    def _slots(self):
        if self.engine == "flink":
            return get("8081/overview")["slots-total"]
        return get("8080/json/")["cores"]

    def stop(self):
        subprocess.run([TOOL, "stop"], check=True, capture_output=True)
        for process in self._pools:
            process.wait()
        self._pools = []
        for made in ("tmp", "work", "artifacts"):
            shutil.rmtree(self.folder / made, ignore_errors=True)


def made_cluster(engine, slots, factory):
    if reason := missing():
        pytest.skip(reason)
    base = os.environ.get("NERBERT_CLUSTERS") or factory.mktemp("engines")
    folder = Path(base) / engine
    folder.mkdir(parents=True, exist_ok=True)
    return Cluster(engine, folder, slots)


def install(base, *engines):
    """Downloads engines, both if none is named, and starts each once."""
    if reason := missing():
        sys.exit(f"clusters are not installed: {reason}")
    for engine in engines or ("flink", "spark"):
        folder = Path(base) / engine
        folder.mkdir(parents=True, exist_ok=True)
        cluster = Cluster(engine, folder, 1)
        cluster.start()
        cluster.stop()


def arguments(dump, output, *flags):
    return ("--dump", str(dump / "*.xml"), "--types", str(TYPES), "--output", str(output), *flags)


class Run:
    """A run on a cluster."""

    def __init__(self, dump, output, *flags):
        self.output = Path(output)
        folder = self.output.parent
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        environment = {"TMPDIR": str(self.temporary), "JAVA_TOOL_OPTIONS": " ".join(SHORT_LIVED)}
        self.process = start(*arguments(dump, output, *flags), cwd=folder, environment=environment)

    def await_files(self, pattern, count=1):
        """Waits until the run has made so many files."""
        for _ in range(6000):
            if len(list(self.output.glob(pattern))) >= count:
                return
            assert self.process.poll() is None, self.process.communicate()[1]
            time.sleep(0.05)
        raise AssertionError(f"no {pattern} within five minutes")

    def end(self, timeout=240):
        """Waits for the end, which leaves no temporary file; returns code, output and error."""
        out, err = self.process.communicate(timeout=timeout)
        assert not list(self.temporary.iterdir())
        return self.process.returncode, out, err

    def end_harmed(self, cluster, how, made, local, folder="."):
        """Harms a host when these files are made; the folder must be the local run's.

        Returns standard output and error.
        """
        self.await_files(made)
        cluster.harm(how)
        code, out, err = self.end(400)
        assert code == 0, err
        assert_same_bytes(self.output / folder, local / folder)
        assert not unfinished(self.output)
        return out, err

    def signal(self, number):
        """Sends a signal; returns code, seconds until the end, and standard error."""
        begin = time.monotonic()
        self.process.send_signal(number)
        code, _, err = self.end()
        return code, time.monotonic() - begin, err


COUNTING = """
import os

from pipeline.execution.part_pass import PartPass

run = PartPass.run


def counted(self, element, known):
    line = f"{type(self).__name__} {self.part(element)}\\n".encode()
    log = os.open(os.environ["STARTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(log, line)
    os.close(log)
    return run(self, element, known)


PartPass.run = counted
"""


def counting(folder):
    """Environment of pools that write a line into the file `starts` when a part begins."""
    (folder / "sitecustomize.py").write_text(COUNTING)
    path = os.pathsep.join([str(folder), str(ROOT)])
    return {"PYTHONPATH": path, "STARTS": str(folder / "starts")}


def unfinished(folder):
    return [p for p in Path(folder).rglob(".*") if p.name != ".lock"]


def fixed(text):
    """Lines of a run without its numbers."""
    return [re.sub(r"\d[\d.,]*\d|\d", "N", line) for line in text.splitlines()]


if __name__ == "__main__":
    install(*sys.argv[1:])
