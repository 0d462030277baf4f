//! The program that keeps the machine from sleeping.

/// The command that keeps the machine from sleeping for as long as it runs, where there is one. Only
/// fixed places of the system are looked at: a project can put a program of the same name into `PATH`.
#[cfg(not(feature = "failpoints"))]
pub(crate) fn inhibitor() -> Option<Vec<String>> {
    let find = |name: &str| {
        let places = ["/usr/bin", "/bin"].map(|folder| std::path::Path::new(folder).join(name));
        places.into_iter().find(|path| path.is_file())
    };
    Some(command(&find("systemd-inhibit")?, &find("sleep")?))
}

/// Tests name a program, and without one no test changes what the machine does.
#[cfg(feature = "failpoints")]
pub(crate) fn inhibitor() -> Option<Vec<String>> {
    let program = std::env::var_os("ATOMIC_TEST_SYSTEMD_INHIBIT")?;
    Some(command(program.as_ref(), "/bin/sleep".as_ref()))
}

fn command(inhibit: &std::path::Path, sleep: &std::path::Path) -> Vec<String> {
    [
        &*inhibit.display().to_string(),
        "--what=sleep:idle",
        "--who=atomic",
        "--why=a run is working",
        "--mode=block",
        &sleep.display().to_string(),
        "infinity",
    ]
    .map(str::to_owned)
    .into()
}
