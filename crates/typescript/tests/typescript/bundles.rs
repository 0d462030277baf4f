//! Files and their imports.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use atomic_typescript::{Bundle, Options, Worker};
use serde_json::{Value, json};

use crate::stage::{bundle, function};

const MAIN: &str = r#"
import { a } from "./a";
import { b } from "./b.ts";
import { c } from "./c.js";
import { d } from "./d.mts";
import { e } from "./e.mjs";
import { f } from "./folder";
import { g } from "../shared/g.ts";
import data from "./data.json" with { type: "json" };
import more from "./data.json";
import * as all from "./stars";
import { a as starred } from "./stars";
import type { Unknown } from "./not-there";
import { type Other } from "./stars";
export const found = async () => {
  const lazy = await import("./lazy.ts");
  return [a, b, c, d, e, f, g, data.n, more.n === data.n, all.a, starred, all.renamed, lazy.default, lazy.a === a];
};
export type { Unknown, Other };
"#;

const FILES: &[(&str, &str)] = &[
    ("flows/main.ts", MAIN),
    ("flows/a.ts", "export const a = \"a\";"),
    ("flows/b.ts", "export const b: string = \"b\";"),
    ("flows/c.ts", "export const c = \"c\";"),
    ("flows/d.mts", "export const d = \"d\";"),
    ("flows/e.mts", "export const e = \"e\";"),
    ("flows/folder/index.ts", "export const f = \"f\";"),
    ("shared/g.ts", "export { a as g } from \"../flows/a.ts\";"),
    ("flows/data.json", "{\"n\": 7}"),
    (
        "flows/stars.ts",
        "export * from \"./a\"; export { b as renamed } from \"./b\"; export interface Other { x: 1 }",
    ),
    ("flows/lazy.ts", "import { a } from \"./a\"; export { a }; export default \"lazy\";"),
    ("flows/unused.ts", "export const unused = 1;"),
];

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn found(bundle: &Bundle) -> Value {
    let worker = Worker::start(bundle, &Options::default());
    let loaded = worker.load_exports().unwrap_or_else(|trouble| panic!("{trouble}"));
    worker.call(function(&loaded.descriptor, "found"), Vec::new()).unwrap()
}

#[test]
fn imports_of_every_kind_are_found() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), FILES);
    let bundle = Bundle::read(&folder.path().join("flows/main.ts"), folder.path())
        .unwrap_or_else(|faults| panic!("{faults:#?}"));
    let expected = json!(["a", "b", "c", "d", "e", "f", "a", 7, true, "a", "a", "b", "lazy", true]);
    assert_eq!(found(&bundle), expected);
    assert_eq!(bundle.files().count(), FILES.len() - 1);

    // What was kept runs without the disk, and without what changes on it.
    let kept: BTreeMap<PathBuf, String> =
        bundle.files().map(|(path, text)| (path.to_owned(), text.to_owned())).collect();
    let entry = bundle.entry().to_owned();
    drop(folder);
    let again = Bundle::from_files(&entry, &kept).unwrap();
    assert_eq!(found(&again), expected);
    assert_eq!(again.hash(), bundle.hash());
}

#[test]
fn the_hash_is_of_texts_and_relative_places() {
    let one = bundle(&[("main.ts", "import \"./a\";"), ("a.ts", "export {};")]).unwrap().hash();
    let files = |root: &str, a: &str| {
        let path = |name: &str| Path::new(root).join(name);
        let files = BTreeMap::from([
            (path("main.ts"), "import \"./a\";".to_owned()),
            (path("a.ts"), a.to_owned()),
        ]);
        Bundle::from_files(&path("main.ts"), &files).unwrap().hash()
    };
    assert_eq!(one, files("/elsewhere/deep", "export {};"));
    assert_ne!(one, files("/flows", "export {}; "));
    assert_eq!(one.len(), 64);
}

#[test]
fn imports_never_leave_the_root() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    write(
        folder.path(),
        &[
            ("outside.ts", "export const secret = 1;"),
            ("root/up.ts", "import \"../outside.ts\";"),
            ("root/absolute.ts", "import \"/etc/hostname.ts\";"),
            ("root/linked.ts", "import \"./link.ts\";"),
            ("root/through.ts", "import \"./folder/outside.ts\";"),
            ("root/json.ts", "import \"../outside.json\";"),
            ("root/inside.ts", "import \"./own.ts\"; export const found = () => 1;"),
            ("root/real.ts", "export const own = 1;"),
        ],
    );
    symlink(folder.path().join("outside.ts"), root.join("link.ts")).unwrap();
    symlink(folder.path(), root.join("folder")).unwrap();
    symlink(root.join("real.ts"), root.join("own.ts")).unwrap();
    for name in ["up.ts", "absolute.ts", "linked.ts", "through.ts", "json.ts"] {
        let faults = Bundle::read(&root.join(name), &root).unwrap_err();
        assert_eq!(faults[0].code, "ATM705", "{name}: {faults:?}");
    }
    let faults = Bundle::read(&folder.path().join("outside.ts"), &root).unwrap_err();
    assert_eq!(faults[0].code, "ATM705");
    // A link inside is fine, also when it is run from what was kept.
    let bundle = Bundle::read(&root.join("inside.ts"), &root).unwrap();
    assert_eq!(found(&bundle), json!(1));
    let kept = bundle.files().map(|(path, text)| (path.to_owned(), text.to_owned())).collect();
    assert_eq!(found(&Bundle::from_files(bundle.entry(), &kept).unwrap()), json!(1));
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    fs::write(file("bytes.ts"), [0x65, 0xff, 0xfe]).unwrap();
    fs::write(file("large.ts"), vec![b' '; 3 << 20]).unwrap();
    fs::write(file("bom.ts"), "\u{feff}export const found = () => 1;").unwrap();
    for (name, expected) in [
        ("bytes.ts", "it is not UTF-8"),
        ("large.ts", "the file is larger than 1 MB"),
        ("gone.ts", "it cannot be read: No such file or directory (os error 2)"),
    ] {
        let faults = Bundle::read(&file(name), folder.path()).unwrap_err();
        assert_eq!((faults[0].code.as_ref(), faults[0].message.as_str()), ("ATM709", expected));
        assert_eq!(faults[0].at.file, file(name));
    }
    assert_eq!(found(&Bundle::read(&file("bom.ts"), folder.path()).unwrap()), json!(1));
}

/// Opening a pipe waits for somebody at its other end, who may never come.
#[test]
fn a_pipe_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.ts");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let (sender, receiver) = std::sync::mpsc::channel();
    let root = folder.path().to_owned();
    std::thread::spawn(move || sender.send(Bundle::read(&pipe, &root).unwrap_err()));
    let faults = receiver.recv_timeout(crate::stage::SOON).expect("it does not wait");
    assert_eq!(faults[0].code, "ATM709");
    assert_eq!(faults[0].message, "the file is a FIFO, not a regular file");
}

#[test]
fn the_names_of_the_sdk_are_one_module() {
    let bundle = bundle(&[(
        "main.ts",
        r#"import { toolNode as a } from "@atomic/graph";
           import { toolNode as b } from "@atomic/workflows";
           import { toolNode as c } from "atomic/workflows";
           import { toolNode as d } from "atomic/workflows/graph";
           import "atomic/types";
           import * as host from "atomic/host";
           export const found = () => [a === b, b === c, c === d, typeof host.shell];"#,
    )])
    .unwrap();
    assert_eq!(found(&bundle), json!([true, true, true, "function"]));
}

#[test]
fn a_computed_import_finds_what_is_in_the_bundle() {
    let bundle = bundle(&[
        (
            "main.ts",
            "import \"./a.ts\";\nexport const found = async () => {\n  const name = [\"a\"][0];\n  const all = [];\n  for (const path of [`./${name}`, \"./b\" + \"\", \"/etc/passwd\", \"atomic:natives\", \"atomic:boot\"]) {\n    all.push(await import(path).then((m) => m.a, (e) => e.message.slice(0, 20)));\n  }\n  return all;\n};",
        ),
        ("a.ts", "export const a = 1;"),
        ("b.ts", "export const a = 2;"),
    ])
    .unwrap();
    let refused = json!("Error resolving modu");
    assert_eq!(found(&bundle), json!([1, refused, refused, refused, refused]));
}
