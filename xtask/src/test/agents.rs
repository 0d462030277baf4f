//! The real agent programs that tests start: pinned, installed by npm into a cache outside the
//! tree.
//!
//! `xtask/agents/package.json` lists them once for each platform, and npm takes those that fit the
//! machine. After a change to it, in its folder: `npm install --package-lock-only --ignore-scripts
//! --omit-lockfile-registry-resolved`, which leaves the registry's address out of the lock file.

use std::env::{self, consts};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, SystemTime};

use sha2::{Digest as _, Sha256};

use super::{Log, cache};

/// Tells the tests the folder, in which there is `<name>-<version>/<file>` for every program.
pub(super) const VARIABLE: &str = "ATOMIC_AGENTS";

/// A program in one version.
struct Program {
    name: &'static str,
    version: &'static str,
    /// The executable, in the folder of its package.
    file: &'static str,
    /// What ends the names of its packages, of which npm installs the one for this machine.
    platforms: &'static [&'static str],
}

/// Every program; `package.json` has each of them for each of its platforms.
const PROGRAMS: &[Program] = &[
    Program { name: "claude", version: "2.1.197", file: "claude", platforms: LINUX },
    Program { name: "claude", version: "2.1.325", file: "claude", platforms: LINUX },
    Program {
        name: "opencode",
        version: "1.18.33",
        file: "bin/opencode",
        platforms: &["linux-x64"],
    },
    Program {
        name: "copilot",
        version: "1.0.102",
        file: "copilot",
        platforms: &["linux-x64", "linux-arm64", "linuxmusl-x64", "linuxmusl-arm64"],
    },
];

/// Where `copilot` unpacks itself when it is started for the first time, in the folder of all
/// programs: so it happens once, and not in every test.
const UNPACKED: (&str, &str) = ("COPILOT_CACHE_HOME", "copilot-cache");

const LINUX: &[&str] = &["linux-x64", "linux-arm64", "linux-x64-musl", "linux-arm64-musl"];

/// The versions of a program.
pub(super) fn versions(name: &str) -> impl Iterator<Item = &'static str> {
    PROGRAMS.iter().filter(move |program| program.name == name).map(|program| program.version)
}

const PACKAGES: &str = include_str!("../../agents/package.json");
const PACKAGE_LOCK: &str = include_str!("../../agents/package-lock.json");

/// The first start of a program of this size can be slow.
const START: Duration = Duration::from_secs(60);

/// How many installations stay: this one, and the one that another branch may be using.
const KEPT: usize = 2;

/// The folder of the programs, installed first where they are missing or not what they should be;
/// the error says why they cannot be had.
pub(super) fn folder(log: &Log) -> Result<PathBuf, String> {
    let cache = cache::folder()?.join("agents");
    let folder = cache.join(key());
    let lock = cache::lock(&cache, log)?;
    let found = if folder.exists() { verify(&folder) } else { Err("not installed yet".into()) };
    if let Err(reason) = found {
        log.write(&format!("installing into {}: {reason}", folder.display()));
        install(log, &cache, &folder)?;
        remove_oldest(&cache);
    }
    // Its age is the time since it was last used; should that not be noted, nothing is wrong.
    let _ = File::open(&folder).and_then(|file| file.set_modified(SystemTime::now()));
    drop(lock);
    Ok(folder)
}

/// Other packages, another folder.
fn key() -> String {
    Sha256::digest(PACKAGE_LOCK).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Installs into a folder of its own and renames it, so that what is there is whole.
fn install(log: &Log, cache: &Path, folder: &Path) -> Result<(), String> {
    let staging = cache.join("staging");
    let done = fill(log, &staging).and_then(|()| {
        let failed = |e| format!("cannot put {} in place: {e}", folder.display());
        if folder.exists() {
            fs::remove_dir_all(folder).map_err(failed)?;
        }
        fs::rename(&staging, folder).map_err(failed)
    });
    if done.is_err() {
        // Half a gigabyte that nobody can use; should it stay, the next run removes it.
        let _ = fs::remove_dir_all(&staging);
    }
    done
}

fn fill(log: &Log, staging: &Path) -> Result<(), String> {
    let failed = |e| format!("cannot write to {}: {e}", staging.display());
    if staging.exists() {
        fs::remove_dir_all(staging).map_err(failed)?;
    }
    fs::create_dir_all(staging).map_err(failed)?;
    fs::write(staging.join("package.json"), PACKAGES).map_err(failed)?;
    fs::write(staging.join("package-lock.json"), PACKAGE_LOCK).map_err(failed)?;
    let path = env::var_os("PATH").unwrap_or_default();
    if !env::split_paths(&path).any(|folder| folder.join("npm").is_file()) {
        return Err("npm is not installed".to_owned());
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--include=optional"]);
    npm.current_dir(staging);
    log.run(npm).map_err(|problem| {
        log.write(&problem);
        "npm could not install the agent programs".to_owned()
    })?;
    for program in PROGRAMS {
        program.link(staging)?;
    }
    verify(staging)
}

impl Program {
    fn folder(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }

    /// Gives the package of this machine a name that is the same on every machine.
    fn link(&self, folder: &Path) -> Result<(), String> {
        let own = self.folder();
        let mut packages =
            self.platforms.iter().map(|platform| format!("node_modules/{own}-{platform}"));
        // npm passes over an optional package that it cannot fetch, without failing.
        let Some(package) = packages.find(|package| folder.join(package).is_dir()) else {
            return Err(format!(
                "npm has installed no {own} on {}-{}; it could not fetch the package, or there is \
                 none: there are those for {}",
                consts::OS,
                consts::ARCH,
                self.platforms.join(", ")
            ));
        };
        symlink(package, folder.join(&own)).map_err(|e| format!("cannot link {own}: {e}"))
    }
}

/// Fails unless every program starts and is of its version.
fn verify(folder: &Path) -> Result<(), String> {
    for program in PROGRAMS {
        let path = folder.join(program.folder()).join(program.file);
        let said = ask_version(&path, &folder.join(UNPACKED.1), START)?;
        if !said.split_whitespace().any(|word| word.trim_end_matches('.') == program.version) {
            let (said, version) = (said.trim(), program.version);
            return Err(format!("{} should be {version} and says `{said}`", path.display()));
        }
    }
    Ok(())
}

fn ask_version(program: &Path, unpacked: &Path, limit: Duration) -> Result<String, String> {
    let mut command = Command::new(program);
    command.arg("--version").env(UNPACKED.0, unpacked);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child =
        command.spawn().map_err(|e| format!("cannot start {}: {e}", program.display()))?;
    let stdout = child.stdout.take();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let said = stdout.map(io::read_to_string).and_then(Result::ok);
        // Nobody listens any more when it took too long.
        let _ = sender.send(said.unwrap_or_default());
    });
    let said = receiver.recv_timeout(limit);
    // Whatever it does after it has closed its output is of no interest.
    let _ = child.kill();
    let _ = child.wait();
    said.map_err(|_| format!("{} --version did not end within {limit:?}", program.display()))
}

/// Only makes room, and so does not fail.
fn remove_oldest(cache: &Path) {
    let mut folders: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in cache.read_dir().into_iter().flatten().flatten() {
        if let Ok(metadata) = entry.metadata()
            && metadata.is_dir()
        {
            folders.push((metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), entry.path()));
        }
    }
    folders.sort();
    for (_, folder) in folders.iter().rev().skip(KEPT) {
        let _ = fs::remove_dir_all(folder);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::time::Duration;

    use serde_json::Value;

    use super::{PACKAGE_LOCK, PACKAGES, PROGRAMS, ask_version};

    #[test]
    fn the_packages_are_the_programs_on_every_platform_at_their_versions() {
        let mut expected = BTreeMap::new();
        for program in PROGRAMS {
            for platform in program.platforms {
                expected.insert(format!("{}-{platform}", program.folder()), program.version);
            }
        }
        let packages: Value = serde_json::from_str(PACKAGES).unwrap();
        let lock: Value = serde_json::from_str(PACKAGE_LOCK).unwrap();
        let wanted = packages["optionalDependencies"].as_object().unwrap();
        assert_eq!(wanted.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        assert_eq!(lock["packages"][""]["optionalDependencies"], packages["optionalDependencies"]);
        for (package, version) in expected {
            let (_, pinned) = wanted[&package].as_str().unwrap().rsplit_once('@').unwrap();
            let locked = &lock["packages"][format!("node_modules/{package}")];
            assert_eq!((pinned, locked["version"].as_str().unwrap()), (version, version));
            assert!(locked["integrity"].as_str().unwrap().starts_with("sha512-"), "{package}");
        }
    }

    #[test]
    fn a_program_that_does_not_end_is_given_up() {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/agents/endless");
        let said = ask_version(&program, Path::new("/"), Duration::from_millis(20)).unwrap_err();
        assert!(said.ends_with("endless --version did not end within 20ms"), "{said}");
    }
}
