//! What the tests share: files, workers, and a host that waits for the test.

use std::any::Any;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use atomic_typescript::{
    Answer, Arg, Bundle, Fault, Host, Limits, Options, Performance, Trouble, Underway, Worker,
};
use serde_json::Value;

/// Longer than anything takes, and shorter than anybody waits.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// A bundle of files that are nowhere, the first of which is the entry.
pub(crate) fn bundle(files: &[(&str, &str)]) -> Result<Bundle, Vec<Fault>> {
    let entry = Path::new("/flows").join(files[0].0);
    let files: BTreeMap<PathBuf, String> = files
        .iter()
        .map(|(path, text)| (Path::new("/flows").join(path), (*text).to_owned()))
        .collect();
    Bundle::from_files(&entry, &files)
}

/// A worker for one file.
pub(crate) fn worker(text: &str) -> Worker {
    worker_with(text, &Options::default())
}

pub(crate) fn worker_with(text: &str, options: &Options) -> Worker {
    let bundle = bundle(&[("main.ts", text)]).unwrap_or_else(|faults| panic!("{faults:?}"));
    Worker::start(&bundle, options)
}

/// Limits that a test can run into without anybody growing old.
pub(crate) fn tight() -> Options {
    let limits =
        Limits { memory: 16 << 20, stretch: Duration::from_millis(500), ..Limits::default() };
    Options { limits, ..Options::default() }
}

/// The number of the function under a key.
pub(crate) fn function(descriptor: &Value, key: &str) -> u32 {
    let number = descriptor[key]["$fn"].as_u64();
    u32::try_from(number.unwrap_or_else(|| panic!("no function {key} in {descriptor}"))).unwrap()
}

/// Loads a file and gives the number of one of its functions.
pub(crate) fn load(worker: &Worker, key: &str) -> u32 {
    let loaded = worker.load_exports().unwrap_or_else(|trouble| panic!("{trouble}"));
    function(&loaded.descriptor, key)
}

pub(crate) fn value(value: Value) -> Arg {
    Arg::Value(Arc::new(value))
}

/// Something a file has asked for.
pub(crate) struct Asked {
    pub(crate) name: String,
    pub(crate) args: Value,
    pub(crate) answer: Answer,
}

/// A host that leaves the answers to the test.
pub(crate) struct Desk {
    asked: Mutex<Sender<Asked>>,
    ended: Sender<String>,
    logs: Mutex<Vec<(String, String)>>,
}

/// The other end of a [`Desk`].
pub(crate) struct Ends {
    pub(crate) asked: Receiver<Asked>,
    /// The names of requests whose guards were dropped.
    pub(crate) ended: Receiver<String>,
}

impl Desk {
    pub(crate) fn new() -> (Arc<Self>, Ends) {
        let (asked, asked_end) = mpsc::channel();
        let (ended, ended_end) = mpsc::channel();
        let desk = Self { asked: Mutex::new(asked), ended, logs: Mutex::default() };
        (Arc::new(desk), Ends { asked: asked_end, ended: ended_end })
    }

    pub(crate) fn logs(&self) -> Vec<(String, String)> {
        self.logs.lock().unwrap().clone()
    }
}

struct Guard(Sender<String>, String);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.send(self.1.clone());
    }
}

impl Host for Desk {
    fn request(&self, name: &str, args: Value, answer: Answer) -> Underway {
        let asked = Asked { name: name.to_owned(), args, answer };
        let _ = self.asked.lock().unwrap().send(asked);
        let guard: Box<dyn Any + Send> = Box::new(Guard(self.ended.clone(), name.to_owned()));
        guard
    }

    fn log(&self, level: &str, text: &str) {
        self.logs.lock().unwrap().push((level.to_owned(), text.to_owned()));
    }
}

/// A step, and where its end is heard.
pub(crate) struct Running {
    pub(crate) handle: Performance,
    pub(crate) done: Receiver<Result<Value, Trouble>>,
}

impl Running {
    pub(crate) fn result(&self) -> Result<Value, Trouble> {
        self.done.recv_timeout(SOON).expect("the step ends")
    }
}

pub(crate) fn perform(worker: &Worker, function: u32, args: Vec<Arg>, host: &Arc<Desk>) -> Running {
    let (sender, done) = mpsc::channel();
    let host: Arc<dyn Host> = Arc::<Desk>::clone(host);
    let handle = worker.perform(function, args, host, move |result| {
        let _ = sender.send(result);
    });
    Running { handle, done }
}
