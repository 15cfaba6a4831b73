//! Parts of a sweep as the tasks of a cluster: a Slurm array, on a controller and a node of the test's own, and a
//! Kubernetes Indexed Job's command.

use std::os::unix::fs::PermissionsExt;

use nicpoll_testkit::NetnsPair;

use crate::common::prelude::*;
use crate::{printed, sim};

/// Short, for a build without optimisation.
const SWEEP: &str = "sweep generic --duration 20ms --warmup 20ms --over offered=20k..120k:3 --disciplines napi,busy-poll";
const CLUSTERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/clusters");

fn whole() -> String {
    let line = format!("{SWEEP} --json");
    printed(&words(&line))
}

/// Joins these parts.
fn merged(folder: &Path, parts: &[u32]) -> Output {
    let files = parts
        .iter()
        .map(|part| folder.join(format!("part-{part}.json")));
    let files: Vec<String> = files.map(|file| file.display().to_string()).collect();
    sim(&[
        vec!["merge", "--json"],
        files.iter().map(String::as_str).collect(),
    ]
    .concat())
}

/// A folder whose program `nicpoll` is the one under test, started by these lines of a shell.
fn path_with(folder: &Path, before: &str) -> String {
    let program = folder.join("nicpoll");
    fs::write(
        &program,
        format!("#!/bin/sh\n{before}\nexec {NICPOLL} \"$@\"\n"),
    )
    .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap())
}

#[test]
fn the_tasks_of_an_indexed_job_are_the_parts() {
    let text = fs::read_to_string(format!("{CLUSTERS}/sim-job.json")).unwrap();
    let job: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(job["spec"]["completionMode"], "Indexed");
    let tasks = job["spec"]["completions"].as_u64().unwrap() as u32;
    let command = &job["spec"]["template"]["spec"]["containers"][0]["command"];
    let command: Vec<&str> = command
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap())
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let path = path_with(folder.path(), "");
    for task in 0..tasks {
        let mut shell = kept(command[0], &command[1..]);
        shell.args(words(SWEEP)).current_dir(&folder);
        shell
            .env("PATH", &path)
            .env("JOB_COMPLETION_INDEX", task.to_string());
        assert_code(&shell.output().unwrap(), 0);
    }
    let parts: Vec<u32> = (0..tasks).collect();
    assert!(stdout(&merged(folder.path(), &parts)) == whole());
    let lost = stderr(&merged(folder.path(), &[0, 2]));
    assert_has(
        lost,
        "make them by --shard 2/4, --shard 4/4, in a Slurm array by --array=2,4,",
    );
}

/// A controller and a node, as root without a service, in a namespace. They end with it.
struct Slurm<'a> {
    folder: &'a Path,
    network: NetnsPair<()>,
    path: String,
    services: Vec<Child>,
}

impl<'a> Slurm<'a> {
    fn start(folder: &'a Path, path: String) -> Self {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let (host, at) = (host.trim(), folder.display());
        let config = format!(
            "ClusterName=test\nSlurmctldHost={host}(198.18.0.1)\nSlurmUser=root\nAuthType=auth/none\n\
             CredType=cred/none\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nSlurmdParameters=config_overrides\nKillWait=2\n\
             StateSaveLocation={at}/state\nSlurmdSpoolDir={at}/spool\nSlurmctldPidFile={at}/slurmctld.pid\n\
             SlurmdPidFile={at}/slurmd.pid\nSlurmctldLogFile={at}/slurmctld.log\nSlurmdLogFile={at}/slurmd.log\n\
             NodeName={host} NodeAddr=198.18.0.1 CPUs=4 State=UNKNOWN\n\
             PartitionName=all Nodes=ALL Default=YES State=UP\n"
        );
        fs::write(folder.join("slurm.conf"), config).unwrap();
        // The node looks for a control group's file system otherwise, which a namespace's /sys lacks.
        fs::write(folder.join("cgroup.conf"), "CgroupPlugin=cgroup/v1\n").unwrap();
        for name in ["state", "spool"] {
            fs::create_dir(folder.join(name)).unwrap();
        }
        let network = NetnsPair::new();
        let mut slurm = Slurm {
            folder,
            network,
            path,
            services: Vec::new(),
        };
        for line in ["slurmctld -D -c", "slurmd -D"] {
            let mut service = slurm.command(line);
            service.stdout(Stdio::null()).stderr(Stdio::null());
            slurm
                .services
                .push(spawn_in(&slurm.network.sender, service));
        }
        wait_until("the node is idle", || {
            slurm.says("sinfo -h -o %T") == "idle\n"
        });
        slurm
    }

    fn command(&self, line: &str) -> Command {
        let words = words(line);
        let mut command = kept(words[0], &words[1..]);
        command.current_dir(self.folder).env("PATH", &self.path);
        command.env("SLURM_CONF", self.folder.join("slurm.conf"));
        command
    }

    fn says(&self, line: &str) -> String {
        stdout(&run_in(&self.network.sender, self.command(line)))
    }

    /// Submits the sweep, and returns the job's number.
    fn submit(&self, options: &str) -> String {
        let job = self.says(&format!(
            "sbatch --parsable {options} {CLUSTERS}/sim.sbatch {SWEEP}"
        ));
        assert!(!job.is_empty(), "it was not accepted");
        String::from(job.trim())
    }

    fn is_over(&self) {
        wait_until("no job is left", || self.says("squeue -h").is_empty());
    }
}

impl Drop for Slurm<'_> {
    fn drop(&mut self) {
        for service in self.services.iter_mut().rev() {
            send_signal(service, Signal::TERM);
            let _ = service.wait();
        }
    }
}

#[test]
fn a_task_of_a_slurm_array_that_was_killed_runs_again_alone() {
    needs!(Time, Root, Ip, Slurm);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // The third task is there to be killed; when it runs again, it is not held up.
    let hold = "[ \"$SLURM_ARRAY_TASK_ID\" != 3 ] || [ -e held ] || { touch held; sleep 60; }";
    let slurm = Slurm::start(folder, path_with(folder, hold));
    let job = slurm.submit("");
    wait_until("the third task runs", || folder.join("held").exists());
    slurm.says(&format!("scancel {job}_3"));
    slurm.is_over();
    let part = |part: u32| folder.join(format!("part-{part}.json"));
    assert!(!part(3).exists());
    let lost = merged(folder, &[1, 2, 4]);
    assert_code(&lost, 2);
    assert_has(
        stderr(&lost),
        "make them by --shard 3/4, in a Slurm array by --array=3,",
    );
    let others = [1, 2, 4].map(|it| fs::metadata(part(it)).unwrap().modified().unwrap());
    slurm.submit("--array=3");
    slurm.is_over();
    assert!(stdout(&merged(folder, &[1, 2, 3, 4])) == whole());
    assert_eq!(
        others,
        [1, 2, 4].map(|it| fs::metadata(part(it)).unwrap().modified().unwrap())
    );
}
