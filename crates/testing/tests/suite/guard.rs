//! The process guard with real processes: nothing it started is left, whatever happens.
//!
//! Every test marks its processes by a number of its own in their arguments, and looks for it in
//! `/proc`.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::fs;
use std::future::pending;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

use atomic_backend::guard::{Guard, Guarded, Job, end_survivors};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const HOST: &str = env!("CARGO_BIN_EXE_guard-host");
/// How long processes may take to come up; no promise of ours.
const A_BUSY_MACHINE: Duration = Duration::from_secs(60);

/// Leaves four processes behind: in a session of its own, after a double fork, without an
/// environment, and all of that at once.
const SCATTER: &str = "setsid sleep $0 & (sleep $0 &) & env -i sleep $0 & \
     setsid env -i sh -c '(sleep $0 &)' $0 &";
const SCATTERED: usize = 4;

// What is promised about the process itself.

#[tokio::test]
async fn the_exit_code_or_the_signal_comes_through() {
    let table =
        [("exit 0", Some(0), None), ("exit 7", Some(7), None), ("kill -9 $$", None, Some(9))];
    for (script, code, signal) in table {
        let status = guard().spawn(&shell(script)).unwrap().wait().await.unwrap();
        assert_eq!((status.code(), status.signal()), (code, signal), "after `{script}`");
    }
    // An exit code that looks like a signal is none.
    let mut guarded = guard().spawn(&shell("exit 137")).unwrap();
    assert_eq!(guarded.wait().await.unwrap().code(), Some(137));
    assert_eq!(guarded.wait().await.unwrap().code(), Some(137), "asked again");
}

#[tokio::test]
async fn input_and_both_outputs_are_pipes() {
    let job = Job { stdin: true, ..shell("read line; echo out $line; echo err $line >&2; cat") };
    let mut guarded = guard().spawn(&job).unwrap();
    guarded.stdin.take().unwrap().write_all(b"one\ntwo\n").await.unwrap();
    assert_eq!(all_of(&mut guarded).await, ("out one\ntwo\n".into(), "err one\n".into()));
    assert!(guarded.wait().await.unwrap().success());
}

#[tokio::test]
async fn input_is_empty_unless_asked_for_and_ends_when_we_wait() {
    let mut unasked = guard().spawn(&shell("cat; echo done")).unwrap();
    assert_eq!(all_of(&mut unasked).await.0, "done\n");

    let mut asked = guard().spawn(&Job { stdin: true, ..shell("cat") }).unwrap();
    assert!(in_time(asked.wait()).await.unwrap().success(), "waiting closes the input");
}

#[tokio::test]
async fn folder_environment_and_marker_are_set() {
    let folder = tempfile::tempdir().unwrap();
    let job = Job {
        cwd: folder.path().canonicalize().unwrap(),
        env: vec![("COLOUR".into(), "blue".into())],
        marker: "run/work#1/2".into(),
        ..shell("echo $PWD $COLOUR $ATOMIC_STEP")
    };
    let expected = format!("{} blue run/work#1/2\n", job.cwd.display());
    assert_eq!(output_of(&job).await, expected);
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain");
    fs::write(&plain, "text").unwrap();
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).unwrap();
    for (program, code, message) in [
        ("no-such-program", 127, "atomic: `no-such-program` was not found; "),
        (plain.to_str().unwrap(), 126, "cannot be run: Permission denied"),
    ] {
        let job = Job { argv: vec![program.into()], ..Job::default() };
        let finished = guard().run(&job, None, 1000, pending()).await.unwrap();
        assert_eq!(finished.status.unwrap().code(), Some(code));
        assert!(finished.tail.contains(message), "{}", finished.tail);
        assert_eq!(finished.tail.lines().count(), 1, "{}", finished.tail);
    }

    let nowhere = Job { cwd: "/no/such/folder".into(), ..shell("true") };
    let error = guard().spawn(&nowhere).unwrap_err().to_string();
    assert_eq!(error, "cannot run in /no/such/folder: not a folder");
    let error = Guard::new("/no/such/guard".into()).spawn(&shell("true")).unwrap_err().to_string();
    assert!(error.starts_with("cannot start the guard /no/such/guard: "), "{error}");
    assert!(guard().spawn(&Job::default()).is_err(), "a job without a program");
}

#[test]
fn without_a_runtime_it_is_an_error_and_no_panic() {
    assert!(guard().spawn(&shell("true")).is_err());
}

#[tokio::test]
async fn the_end_of_the_output_is_kept_in_order() {
    let job = shell("for i in 1 2 3; do echo out$i; echo err$i >&2; done");
    assert_eq!(output_of(&job).await, "out1\nerr1\nout2\nerr2\nout3\nerr3\n");

    let many = shell("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done");
    let finished = guard().run(&many, None, 22, pending()).await.unwrap();
    assert_eq!(finished.tail, "line 19998\nline 19999\n");
}

#[tokio::test]
async fn the_output_ends_when_the_child_closes_it_and_not_later() {
    let nonce = Nonce::new();
    let mut guarded = guard().spawn(&nonce.shell("exec >&- 2>&-; sleep $0; :")).unwrap();
    assert_eq!(in_time(all_of(&mut guarded)).await, (String::new(), String::new()));
    nonce.wait_for_sleepers(1);
    end_in_time(guarded, &nonce).await;
}

#[tokio::test]
async fn a_child_is_out_of_reach_of_our_terminal() {
    let script = "cut -d' ' -f6 /proc/self/stat";
    let ours = Command::new("sh").args(["-c", script]).output().unwrap();
    let ours = String::from_utf8(ours.stdout).unwrap();
    let [theirs, ours] = [output_of(&shell(script)).await, ours]
        .map(|session| session.trim_end().parse::<u32>().unwrap());
    assert_ne!(theirs, ours);
}

#[tokio::test]
async fn a_child_inherits_none_of_our_descriptors() {
    let list = "ls /proc/self/fd";
    // What we inherited ourselves is none of ours.
    let plain = Command::new("sh").args(["-c", list]).stdin(Stdio::null()).output().unwrap();
    let plain = String::from_utf8(plain.stdout).unwrap();
    for stdin in [false, true] {
        assert_eq!(output_of(&Job { stdin, ..shell(list) }).await, plain, "stdin: {stdin}");
    }
}

#[test]
fn fifty_at_once_leave_no_descriptor_behind() {
    let list = ["sh", "-c", "echo $(ls /proc/self/fd)"];
    let plain = Command::new(list[0]).args(&list[1..]).stdin(Stdio::null()).output().unwrap();
    let plain = String::from_utf8(plain.stdout).unwrap();

    let host = Command::new(HOST).args(["storm", "run/storm/1"]).args(list).output().unwrap();
    let printed = String::from_utf8(host.stdout).unwrap();
    let (outputs, last) = printed.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(outputs.lines().collect::<Vec<_>>(), vec![plain.trim_end(); 50]);
    let (before, after) = last.split_once(' ').unwrap();
    assert_eq!(before, after, "descriptors before and after");
}

// What is promised about everything it started: gone within two seconds of …

#[tokio::test]
async fn the_end_of_the_main_process_ends_what_it_left() {
    let nonce = Nonce::new();
    let job = Job { stdin: true, ..nonce.scatter("read line; exit 5") };
    let mut guarded = guard().spawn(&job).unwrap();
    nonce.wait_for_sleepers(SCATTERED);
    assert_eq!(in_time(guarded.wait()).await.unwrap().code(), Some(5));
    assert_eq!(nonce.found(), [""; 0], "right after wait()");
}

#[tokio::test]
async fn a_drop_ends_everything() {
    let nonce = Nonce::new();
    let guarded = guard().spawn(&nonce.scatter("sleep $0")).unwrap();
    nonce.wait_for_sleepers(SCATTERED + 1);
    drop(guarded);
    nonce.assert_gone_soon();
}

#[test]
fn a_drop_after_the_runtime_is_gone_ends_everything() {
    let nonce = Nonce::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let guarded = runtime.block_on(async { guard().spawn(&nonce.scatter("sleep $0")).unwrap() });
    nonce.wait_for_sleepers(SCATTERED + 1);
    drop(runtime);
    drop(guarded);
    nonce.assert_gone_soon();
}

#[tokio::test]
async fn end_returns_when_everything_is_gone() {
    let nonce = Nonce::new();
    let guarded = guard().spawn(&nonce.scatter("sleep $0")).unwrap();
    nonce.wait_for_sleepers(SCATTERED + 1);
    end_in_time(guarded, &nonce).await;
}

#[tokio::test]
async fn a_time_out_ends_everything_and_says_so() {
    let nonce = Nonce::new();
    let job = nonce.scatter("echo up; sleep $0");
    let timeout = Some(Duration::from_secs(1));
    let finished = in_time(guard().run(&job, timeout, 100, pending())).await.unwrap();
    assert_eq!(nonce.found(), [""; 0], "right after run()");
    assert_eq!((finished.status, finished.tail.as_str()), (None, "up\n"));
}

#[tokio::test]
async fn cancelling_ends_everything_before_run_returns() {
    let nonce = Nonce::new();
    let job = nonce.scatter("sleep $0");
    let cancel = async { nonce.wait_for_sleepers(SCATTERED + 1) };
    let finished = guard().run(&job, None, 100, cancel).await.unwrap();
    assert_eq!(nonce.found(), [""; 0], "right after run()");
    assert!(finished.status.is_none());
}

#[tokio::test]
async fn dropping_the_run_ends_everything() {
    let nonce = Nonce::new();
    let job = nonce.scatter("sleep $0");
    let guard = guard();
    tokio::select! {
        biased;
        _ = guard.run(&job, None, 100, pending()) => unreachable!("nothing ends it"),
        () = async { nonce.wait_for_sleepers(SCATTERED + 1) } => {}
    }
    nonce.assert_gone_soon();
}

#[test]
fn sigkill_of_the_host_ends_everything() {
    let nonce = Nonce::new();
    let mut host = nonce.host("hold", SCATTER);
    nonce.wait_for_sleepers(SCATTERED + 1);
    host.kill().unwrap();
    host.wait().unwrap();
    nonce.assert_gone_soon();
}

#[test]
fn a_panic_in_the_host_ends_everything() {
    let nonce = Nonce::new();
    let mut host = nonce.host("panic", SCATTER);
    nonce.wait_for_sleepers(SCATTERED + 1);
    drop(host.stdin.take());
    assert_eq!(host.wait().unwrap().code(), Some(101));
    nonce.assert_gone_soon();
}

#[tokio::test]
async fn sigterm_to_the_guard_ends_everything() {
    let nonce = Nonce::new();
    let mut guarded = guard().spawn(&nonce.scatter("sleep $0")).unwrap();
    nonce.wait_for_sleepers(SCATTERED + 1);
    send("TERM", nonce.guard());
    assert_eq!(in_time(guarded.wait()).await.unwrap().signal(), Some(15));
    assert_eq!(nonce.found(), [""; 0], "right after wait()");
}

// Processes that make it hard.

#[tokio::test]
async fn sigterm_comes_first_and_leaves_time_to_say_goodbye() {
    let nonce = Nonce::new();
    let script = "trap 'echo bye; exit 3' TERM; echo hi; while :; do sleep 0.01; done 2>&-";
    let mut guarded = guard().spawn(&nonce.shell(script)).unwrap();
    let mut stdout = guarded.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 3]).await.unwrap();
    guarded.end().await;
    let mut said = String::new();
    in_time(stdout.read_to_string(&mut said)).await.unwrap();
    assert_eq!(said, "bye\n");
}

#[tokio::test]
async fn ignoring_sigterm_does_not_help() {
    let nonce = Nonce::new();
    // Without its environment, too, so that it is not found by its marker instead.
    let script = "trap '' TERM; (env -i sleep $0 &); sleep $0; :";
    let guarded = guard().spawn(&nonce.shell(script)).unwrap();
    nonce.wait_for_sleepers(2);
    end_in_time(guarded, &nonce).await;
}

#[tokio::test]
async fn being_stopped_does_not_help() {
    let nonce = Nonce::new();
    let guarded = guard().spawn(&nonce.shell("sleep $0 & kill -STOP $$; wait")).unwrap();
    nonce.wait_for_sleepers(1);
    end_in_time(guarded, &nonce).await;
}

#[tokio::test]
async fn forking_on_and_on_does_not_help() {
    // Each process starts the next one and exits, so none of them is there for long.
    let nonce = Nonce::new();
    let guarded =
        guard().spawn(&nonce.shell("trap '' TERM; hop() { hop & }; hop; sleep $0")).unwrap();
    nonce.wait_for_sleepers(1);
    end_in_time(guarded, &nonce).await;
}

#[tokio::test]
async fn signalling_its_own_group_does_not_hit_the_guard() {
    let nonce = Nonce::new();
    let mut guarded = guard().spawn(&nonce.scatter("kill -9 0")).unwrap();
    assert_eq!(guarded.wait().await.unwrap().signal(), Some(9));
    assert_eq!(nonce.found(), [""; 0], "right after wait()");
}

#[tokio::test]
async fn what_ended_below_the_guard_does_not_pile_up() {
    let nonce = Nonce::new();
    let _guarded =
        guard().spawn(&nonce.shell("for i in 1 2 3; do (: &) ; done; sleep $0; :")).unwrap();
    nonce.wait_for_sleepers(1);
    let guard = nonce.guard();
    let children = PathBuf::from(format!("/proc/{guard}/task/{guard}/children"));
    soon("the guard to have one child", A_BUSY_MACHINE, || {
        fs::read_to_string(&children).unwrap().split_whitespace().count() == 1
    });
}

#[tokio::test]
async fn a_killed_guard_is_an_error_and_its_marked_processes_are_ended() {
    let nonce = Nonce::new();
    let job = nonce.shell("setsid sleep $0 & (sleep $0 &) & sleep $0");
    let mut guarded = guard().spawn(&job).unwrap();
    nonce.wait_for_sleepers(3);
    send("KILL", nonce.guard());
    let error = guarded.wait().await.unwrap_err().to_string();
    assert_eq!(error, "the guard of `sh` ended before `sh` did (signal: 9 (SIGKILL))");
    assert_eq!(nonce.found(), [""; 0], "right after wait()");
}

// A guard without anybody to guard for.

#[test]
fn a_guard_whose_starter_is_gone_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for told_to_start in [false, true] {
        let (mut ours, guards) = UnixStream::pair().unwrap();
        if told_to_start {
            ours.write_all(b"s").unwrap();
        }
        drop(ours);
        let guard = Command::new(HOST)
            .args(["__guard", "touch", "started"])
            .current_dir(folder.path())
            .stdin(OwnedFd::from(guards))
            .status();
        assert_eq!(guard.unwrap().code(), Some(125));
        assert!(!folder.path().join("started").exists(), "told to start: {told_to_start}");
    }
}

#[test]
fn a_guard_started_by_hand_says_so() {
    let guard = Command::new(HOST).args(["__guard", "true"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(guard.status.code(), Some(125));
    let message = String::from_utf8(guard.stderr).unwrap();
    assert!(message.contains("only atomic itself can start it"), "{message}");
}

#[test]
fn a_deleted_binary_can_still_be_its_own_guard() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("guard-host");
    // Not by us: a file that is being written cannot be run, and while we write it, a process that
    // another test starts just then would have it open for writing, too.
    assert!(Command::new("cp").arg(HOST).arg(&copy).status().unwrap().success());
    let mut host = Command::new(&copy)
        .args(["run", "run/step/1", "echo", "fine"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    fs::remove_file(&copy).unwrap();
    drop(host.stdin.take());
    assert_eq!(host.wait_with_output().unwrap().stdout, b"fine\n\n");
}

// Survivors of an earlier attempt.

#[test]
fn survivors_are_ended_when_host_and_guard_were_killed() {
    let nonce = Nonce::new();
    let script = "setsid sleep $0 & (sleep $0 &) & env -i sleep $0 &";
    let mut host = nonce.host("hold", script);
    nonce.wait_for_sleepers(4);
    send("KILL", nonce.guard());
    host.kill().unwrap();
    host.wait().unwrap();
    soon("the guard to be gone", A_BUSY_MACHINE, || nonce.found().len() == 5);

    // A run whose id merely begins the same, and one that only mentions it.
    let foreign = [format!("{}0/step/1", nonce.run()), format!("x{}", nonce.marker())];
    let mut foreign: Vec<Killed> = foreign.into_iter().map(Killed::sleeper).collect();
    assert_eq!(end_survivors(&nonce.run()).unwrap(), 5);
    assert_eq!(nonce.found(), [""; 0], "right after end_survivors()");
    assert!(foreign.iter_mut().all(|it| it.0.try_wait().unwrap().is_none()), "others live on");
    assert_eq!(end_survivors(&nonce.run()).unwrap(), 0);
}

#[test]
fn survivors_of_a_guard_that_cannot_act_are_ended_with_it() {
    let nonce = Nonce::new();
    let mut host = nonce.host("hold", SCATTER);
    nonce.wait_for_sleepers(SCATTERED + 1);
    send("STOP", nonce.guard());
    host.kill().unwrap();
    host.wait().unwrap();
    let survivors = nonce.found().len();
    assert!(survivors > SCATTERED + 1, "{:?}", nonce.found());
    assert_eq!(end_survivors(&nonce.run()).unwrap(), survivors);
    assert_eq!(nonce.found(), [""; 0], "right after end_survivors()");
}

#[test]
fn ending_survivors_never_ends_the_one_who_asks() {
    let nonce = Nonce::new();
    let script = "ATOMIC_STEP=$2 exec sh -c '\"$0\" end-survivors \"$1\"; exit $?' \"$0\" \"$1\"";
    let host = Command::new("timeout")
        .args(["-s", "KILL", "20", "sh", "-c", script, HOST, &nonce.run(), &nonce.marker()])
        .output()
        .unwrap();
    assert_eq!((host.status.code(), host.stdout.as_slice()), (Some(0), b"0\n".as_slice()));
}

// Helpers.

fn guard() -> Guard {
    Guard::new(HOST.into())
}

fn shell(script: &str) -> Job {
    let argv = ["sh", "-c", script].map(String::from).to_vec();
    Job { argv, marker: "run/step/1".into(), ..Job::default() }
}

async fn output_of(job: &Job) -> String {
    guard().run(job, None, 10_000, pending()).await.unwrap().tail
}

async fn all_of(guarded: &mut Guarded) -> (String, String) {
    let (mut out, mut err) = (String::new(), String::new());
    guarded.stdout.take().unwrap().read_to_string(&mut out).await.unwrap();
    guarded.stderr.take().unwrap().read_to_string(&mut err).await.unwrap();
    (out, err)
}

async fn end_in_time(guarded: Guarded, nonce: &Nonce) {
    let begun = Instant::now();
    guarded.end().await;
    assert_eq!(nonce.found(), [""; 0], "right after end()");
    assert!(begun.elapsed() < A_BUSY_MACHINE, "took {:?}", begun.elapsed());
}

/// For what would otherwise wait for ever if it went wrong.
async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(A_BUSY_MACHINE, future).await.unwrap()
}

fn send(signal: &str, pid: u32) {
    let sent = Command::new("kill").args([format!("-{signal}"), pid.to_string()]).status();
    assert!(sent.unwrap().success(), "SIG{signal} to {pid}");
}

/// Looks again and again for as long as `patience` lasts.
fn soon(what: &str, patience: Duration, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + patience;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited {patience:?} for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A process that is gone at the end of its test.
struct Killed(Child);

impl Killed {
    fn sleeper(marker: String) -> Self {
        Self(Command::new("sleep").arg("1000").env("ATOMIC_STEP", marker).spawn().unwrap())
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A number of seconds that no other process has among its arguments.
struct Nonce(String);

impl Nonce {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        Self(format!("1000.{}{:09}{count:03}", std::process::id(), now.subsec_nanos()))
    }

    fn run(&self) -> String {
        format!("run-{}", self.0)
    }

    fn marker(&self) -> String {
        format!("{}/step#1/1", self.run())
    }

    /// A shell that finds the nonce in `$0`.
    fn shell(&self, script: &str) -> Job {
        let mut job = Job { marker: self.marker(), ..shell(script) };
        job.argv.push(self.0.clone());
        job
    }

    fn scatter(&self, then: &str) -> Job {
        self.shell(&format!("{SCATTER} {then}"))
    }

    /// Another process that guards a shell which runs `script` and sleeps.
    fn host(&self, mode: &str, script: &str) -> Child {
        let script = format!("{script} sleep $0; :");
        Command::new(HOST)
            .args([mode, &self.marker(), "sh", "-c", &script, &self.0])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// The command lines of all processes with the nonce.
    fn found(&self) -> Vec<String> {
        self.processes().into_iter().map(|(_, line)| line.join(" ")).collect()
    }

    fn guard(&self) -> u32 {
        let guards = self.processes().into_iter();
        let mut guards = guards.filter(|(_, line)| line.get(1).is_some_and(|it| it == "__guard"));
        guards.next().unwrap().0
    }

    fn wait_for_sleepers(&self, count: usize) {
        let is_sleeper = |line: &[String]| Path::new(&line[0]).ends_with("sleep");
        soon(&format!("{count} sleepers"), A_BUSY_MACHINE, || {
            let processes = self.processes();
            processes.iter().filter(|(_, line)| is_sleeper(line)).count() == count
        });
    }

    fn assert_gone_soon(&self) {
        soon("everything to be gone", A_BUSY_MACHINE, || self.processes().is_empty());
    }

    fn processes(&self) -> Vec<(u32, Vec<String>)> {
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap() {
            let path = entry.unwrap().path();
            let line = fs::read(path.join("cmdline")).unwrap_or_default();
            let pid = path.file_name().and_then(|name| name.to_str()?.parse().ok());
            if let (Some(pid), Ok(line)) = (pid, String::from_utf8(line))
                && line.contains(&self.0)
            {
                found.push((
                    pid,
                    line.trim_end_matches('\0').split('\0').map(String::from).collect(),
                ));
            }
        }
        found
    }
}

/// A test that fails must not leave the processes it found.
impl Drop for Nonce {
    fn drop(&mut self) {
        for (pid, _) in self.processes() {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
    }
}
