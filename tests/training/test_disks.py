"""Training on disks that fill up, are read-only or vanish: real ones, mounted in a namespace of the test's own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from configs.load import load_config
from tests.prepared import save_untrained
from training.run.metrics import read_metrics

ROOT = Path(__file__).parents[2]
CHANGES = ["training.steps=8", "training.eval_every=4", "training.log_every=2", "training.save_every=1"]
CHANGES += ["training.keep=99"]
TRAIN = f"{sys.executable} {ROOT / 'train.py'} $EXPERIMENT run_dir=$DISK/run {' '.join(CHANGES)}"


def in_namespace(disk, experiment, script):
    """A shell script's lines on standard output and error, run where it may mount a disk of its own in that folder."""
    disk.mkdir()
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        pytest.skip("this machine lets nobody mount disks: unshare -rm is refused")
    environment = os.environ | {"DISK": str(disk), "EXPERIMENT": str(experiment)}
    command = ["unshare", "-rm", "sh", "-c", f"mount -t tmpfs -o size=2500k tmpfs $DISK || exit 77\n{script}"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    if done.returncode == 77:
        pytest.skip(f"this machine lets nobody mount disks: {done.stderr}")
    return done.stdout.splitlines()


@pytest.mark.slow
def test_a_disk_that_fills_up_and_one_that_is_read_only_cost_nothing_but_time(small_experiment, tmp_path):
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    check = (
        f"{sys.executable} -c 'import sys; from training.run.retention import examine; from pathlib import Path; "
        "good, damaged = examine(Path(sys.argv[1])); "
        "print(dict.fromkeys(good, True) | dict.fromkeys(damaged, False), "
        '[p.name for p in Path(sys.argv[1]).rglob(".*[0-9]*")])\' $DISK/run'
    )
    script = f"""
        {TRAIN} 2>&1 | grep -v "Z step\\|Z     \\|check_numbers"; {check}
        mount -o remount,ro $DISK; {TRAIN} 2>&1; {check}
        mount -o remount,rw,size=30m $DISK; {TRAIN} 2>&1 | grep complete; {check}
        cp -r $DISK/run {kept}
        """
    told = in_namespace(disk, small_experiment, script)
    started, full, first, read_only, second, complete, last = told
    assert "step 0 of 8" in started
    assert "error: cannot write the checkpoint" in full and "No space left on device, it needs" in full
    good = [int(step) for step in first.partition("}")[0].strip("{").replace(": True", "").split(", ")]
    assert good == list(range(1, good[-1] + 1)) and 1 < good[-1] < 8
    assert first.endswith("} []")  # no half files
    assert read_only == (
        f"error: cannot write {disk}/run: Read-only file system; make it writable, or choose another folder "
        "(train.py: run_dir=FOLDER)"
    )
    assert second == first
    assert "is complete at step 8" in complete
    assert "False" not in last
    assert [line["step"] for line in read_metrics(kept)] == [2, 4, 4, 6, 8, 8]


@pytest.mark.slow
def test_a_run_on_a_read_only_disk_is_scored_translates_and_is_drawn(small_experiment, tmp_path):
    disk, elsewhere = tmp_path / "disk", tmp_path / "elsewhere"
    python, sentence = sys.executable, "echo Tom runs here."
    saved = save_untrained(load_config(small_experiment, [f"run_dir={tmp_path / 'saved'}"]))
    script = f"""
        mount -o remount,rw,size=30m $DISK; cp -r {saved} $DISK/run; mount -o remount,ro $DISK
        {python} {ROOT}/eval.py $DISK/run 2>&1; echo status $?
        {python} {ROOT}/eval.py $DISK/run --output {elsewhere} 2>&1; echo status $?
        {python} {ROOT}/scripts/plot_attention.py $DISK/run Tom --output {elsewhere} 2>&1; echo status $?
        {sentence} | {python} {ROOT}/scripts/translate.py $DISK/run 2>&1; echo status $?
        """
    told = in_namespace(disk, small_experiment, script)
    ends = [number for number, line in enumerate(told) if line.startswith("status ")]
    assert [told[end] for end in ends] == ["status 2", "status 0", "status 0", "status 0"]
    refused, written = told[: ends[0]], told[ends[0] + 1 : ends[1]]
    assert refused[-1] == (
        f"error: the results above are complete, but cannot be written to {disk}/run/eval: Read-only file system; "
        "--output FOLDER chooses another place"
    )
    scores = [line for line in refused if line.startswith(("BLEU", "chrF"))]
    assert len(scores) == 3 and [line for line in written if line in scores] == scores
    assert {path.suffix for path in elsewhere.iterdir()} == {".json", ".jsonl", ".txt", ".html", ".npz"}
    assert ends[3] == ends[2] + 2  # one line, the translation


@pytest.mark.slow
def test_a_disk_that_is_unmounted_ends_the_run_and_begins_no_other_in_its_place(small_experiment, tmp_path):
    disk = tmp_path / "disk"
    endless = f"{TRAIN} training.steps=1000000 training.keep=1 training.eval_every=1000000"
    script = f"""
        : >$DISK/told; exec 3<$DISK/told
        {endless} >$DISK/told 2>&1 &
        until grep -q "Z step      4 train" $DISK/told; do kill -0 $! || exit 1; sleep 0.01; done
        umount -l $DISK
        wait $!; echo $?
        grep ^error: <&3 # TensorStore's threads may report what they could not write below it
        find $DISK
        """
    told = in_namespace(disk, small_experiment, script)
    status, error, *found = told
    assert status == "2"
    assert "is no longer the folder in which this run started: was it moved, or its disk unmounted?" in error
    assert set(found) <= {f"{disk}{path}" for path in ("", "/run", "/run/checkpoints")}  # folders of a save, no file
