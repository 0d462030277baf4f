//! Everything that can be wrong with files before they run.

use std::fmt::Write as _;

use crate::stage::bundle;

struct Case {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
    /// Code, line and column of every fault.
    expected: &'static [(&'static str, u32, u32)],
}

const CASES: &[Case] = &[
    Case {
        name: "syntax error",
        files: &[("a.ts", "const a = 1;\nexport const b = ;\n")],
        expected: &[("ATM701", 2, 18)],
    },
    Case {
        name: "unclosed bracket",
        files: &[("a.ts", "export const f = () => {\n  return [1, 2;\n};\n")],
        expected: &[("ATM701", 2, 15)],
    },
    Case {
        name: "await outside async",
        files: &[(
            "a.ts",
            "export const f = () => {\n  await g();\n};\nconst g = async () => 1;\n",
        )],
        expected: &[("ATM702", 2, 3)],
    },
    Case {
        name: "declared twice",
        files: &[("a.ts", "const a = 1;\nconst b = 2;\nconst a = 3;\n")],
        expected: &[("ATM702", 3, 7)],
    },
    Case {
        name: "module of node",
        files: &[("a.ts", "import { readFileSync } from \"node:fs\";\nreadFileSync(\"x\");\n")],
        expected: &[("ATM703", 1, 30)],
    },
    Case {
        name: "module of bun",
        files: &[("a.ts", "import { $ } from \"bun\";\n$`ls`;\n")],
        expected: &[("ATM703", 1, 19)],
    },
    Case {
        name: "package",
        files: &[("a.ts", "import { z } from 'zod';\nz.string();\n")],
        expected: &[("ATM703", 1, 19)],
    },
    Case {
        name: "misspelt module",
        files: &[("a.ts", "import { graph } from \"@atomic/grph\";\ngraph();\n")],
        expected: &[("ATM703", 1, 23)],
    },
    Case {
        name: "file that is not there",
        files: &[(
            "a.ts",
            "export * from \"./gone\";\nconst x = await import(\"./gone-too.ts\");\n",
        )],
        expected: &[("ATM704", 1, 15), ("ATM704", 2, 24)],
    },
    Case {
        name: "json that is none",
        files: &[
            ("a.ts", "import d from \"./d.json\";\nd;\n"),
            ("d.json", "{\n  \"a\": 1,\n  b: 2\n}\n"),
        ],
        expected: &[("ATM706", 3, 3)],
    },
    Case {
        name: "name that is not exported",
        files: &[
            (
                "a.ts",
                "import { helpr, Nothing } from \"./b\";\nimport dflt from \"./b\";\nhelpr(Nothing, dflt);\n",
            ),
            ("b.ts", "export const helper = () => 1, other = 2;\n"),
        ],
        expected: &[("ATM707", 1, 10), ("ATM707", 1, 17), ("ATM707", 2, 8)],
    },
    Case {
        name: "name that the SDK does not export",
        files: &[("a.ts", "import { toolnode } from \"@atomic/workflows\";\ntoolnode();\n")],
        expected: &[("ATM707", 1, 10)],
    },
    Case {
        name: "type passed on as a value",
        files: &[
            ("a.ts", "export { Shape } from \"./b.ts\";\n"),
            ("b.ts", "export interface Shape { a: 1 }\n"),
        ],
        expected: &[("ATM707", 1, 10)],
    },
    Case {
        name: "decorator",
        files: &[("a.ts", "const log = (c: unknown) => c;\n@log\nclass A {}\nexport { A };\n")],
        expected: &[("ATM708", 2, 1)],
    },
    Case {
        name: "accessor",
        files: &[("a.ts", "export class A {\n  accessor x = 1;\n}\n")],
        expected: &[("ATM708", 2, 3)],
    },
    Case {
        name: "import equals",
        files: &[("a.ts", "import fs = require(\"fs\");\nfs;\n")],
        expected: &[("ATM708", 1, 1)],
    },
    Case {
        name: "export equals",
        files: &[("a.ts", "const a = 1;\nexport = a;\n")],
        expected: &[("ATM708", 2, 1)],
    },
    Case {
        name: "jsx",
        files: &[("a.ts", "export const a = () => <b c=\"d\">x</b>;\n")],
        expected: &[("ATM708", 1, 24)],
    },
    Case {
        name: "jsx in tsx",
        files: &[
            ("a.ts", "import { b } from \"./b.tsx\";\nb;\n"),
            ("b.tsx", "export const b = <></>;\n"),
        ],
        expected: &[("ATM708", 1, 18)],
    },
    Case {
        name: "all files are looked at",
        files: &[
            ("a.ts", "import { x } from \"./b\";\nimport \"./c\";\nimport \"nothing\";\nx;\n"),
            ("b.ts", "export const x = (;\n"),
            ("c.ts", "import \"./gone\";\n@d class X {}\n"),
        ],
        expected: &[("ATM703", 3, 8), ("ATM701", 1, 19), ("ATM708", 2, 1)],
    },
    Case {
        name: "characters are counted, not bytes",
        files: &[("a.ts", "/* ä😀 */ import \"nothing\";\n")],
        expected: &[("ATM703", 1, 17)],
    },
];

#[test]
fn every_fault_has_its_code_and_its_place() {
    let mut shown = String::new();
    for case in CASES {
        let faults = bundle(case.files).expect_err(case.name);
        let found: Vec<_> = faults
            .iter()
            .map(|fault| (fault.code.as_ref(), fault.at.line, fault.at.column))
            .collect();
        assert_eq!(found, case.expected, "{}: {faults:#?}", case.name);
        let _ = writeln!(shown, "== {}", case.name);
        for fault in &faults {
            let _ = writeln!(shown, "{fault}\n");
        }
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn an_import_that_is_known_only_later_is_a_warning() {
    let bundle =
        bundle(&[("a.ts", "export const f = (name: string) => import(`./${name}.ts`);\n")])
            .unwrap();
    let [warning] = bundle.warnings() else { panic!("{:?}", bundle.warnings()) };
    assert_eq!((warning.code.as_ref(), warning.at.line, warning.at.column), ("ATM719", 1, 43));
    assert!(warning.is_warning);
}

#[test]
fn nesting_beyond_reason_is_a_fault_and_not_the_end() {
    let deep = [
        format!("export const a = {}1{};", "[".repeat(100_000), "]".repeat(100_000)),
        format!("export const a = {}1;", "!".repeat(100_000)),
        format!("export const a = {}1;", "x=>".repeat(100_000)),
        format!("type A = {}1{};", "A<".repeat(100_000), ">".repeat(100_000)),
        format!("export const a = {}1;", "(".repeat(1_100)),
    ];
    for text in &deep {
        let faults = bundle(&[("a.ts", text)]).unwrap_err();
        assert_eq!(faults[0].code, "ATM701");
        let message = &faults[0].message;
        assert!(message.contains("brackets") || message.contains("too long"), "{}", faults[0]);
        let (_, faults) = atomic_typescript::metadata("a.ts".as_ref(), text);
        assert_eq!(faults.len(), 1);
    }
    // What a person could just about have written goes through.
    let nested = format!("export const a = {}1{};", "[".repeat(900), "]".repeat(900));
    assert!(bundle(&[("a.ts", &nested)]).is_ok());
    let chained = format!("export const a = {}0;", "x=>".repeat(900));
    assert!(bundle(&[("a.ts", &chained)]).is_ok());
}

/// As large as a file may be: whoever gave it to the parser would be gone, or wait for minutes.
#[test]
fn no_text_is_too_long_for_the_program() {
    const SIZES: [usize; 3] = [20_000, 700 << 10, 2_000_000];
    let patterns = [
        ("", "new ", "A;"),
        ("", "new\n", "A;"),
        ("a = ", "1**", "1;"),
        ("type A = ", "()=>", "1;"),
        ("a", ".b", ";"),
        ("a", "\n.b", ";"),
        ("a", "()", ";"),
        ("a", "(1,2)", ";"),
        ("a", "<b,c>()", ";"),
        ("a = 1", "+1", ";"),
        ("a = {}", "+{}", ";"),
        ("type A = B", "[]", ";"),
        ("a", "``", ";"),
        ("a", "`${1}`", ";"),
        ("namespace a", ".b", " {}"),
        ("", "await ", "a;"),
        ("", "a: ", "a;"),
        ("", "a:\n", "a;"),
        ("", "@a ", "class A{}"),
        ("", "@a\n", "class A{}"),
        ("", "@a() ", "class A{}"),
        ("", "if(a)\n", "a;"),
        ("", "if(a){}else ", "a;"),
        ("", "if(a);else ", "a;"),
        ("", "if(a)b,c;else\n", "a;"),
        ("", "for(;;)", "a;"),
        ("type A = ", "A<a,", "a;"),
        ("type A = ", "keyof\n", "a;"),
        ("a = b", " ? c : d", ";"),
        ("a = ", "b ? c :\n", "d;"),
        ("a", "!", ";"),
        ("a", " as b", ";"),
        ("a", "\nin\na", ";"),
        // In many parts, each of which is short.
        ("a = ", &format!("{}(", "!".repeat(3000)), "1;"),
        // Where the counting could be led astray.
        ("x = function(){} /`/;`;", "new ", "A;`"),
        ("{} /`/;", "new ", "A;`"),
        ("type A = B\n/`/;", "new ", "A;`"),
        ("a = b! /`/;`;", "new ", "A;`"),
        ("// \u{2028}", "new ", "A;"),
        ("", "n\\u0065w\n", "A;"),
        ("<a>`</a>;", "new ", "A;` 1 1"),
        ("a = 1.", ".b", ";"),
    ];
    for (before, again, after) in patterns {
        for size in SIZES {
            let text = format!("{before}{}{after}", again.repeat(size / again.len()));
            for file in ["a.ts", "a.tsx"] {
                let begun = std::time::Instant::now();
                let (_, faults) = atomic_typescript::metadata(file.as_ref(), &text);
                let again = &again[..again.len().min(20)];
                // The shortest may just be short enough.
                assert!(faults.len() == 1 || size == SIZES[0], "{before}{again}{after} {size}");
                let known = faults.iter().all(|fault| fault.code == "ATM701");
                assert!(known, "{before}{again}: {}", faults[0]);
                assert!(begun.elapsed().as_secs() < 60, "{before}{again}{after} {size}");
            }
        }
    }
    let large = "a;\n".repeat(1 << 20);
    let (_, faults) = atomic_typescript::metadata("a.ts".as_ref(), &large);
    assert_eq!(faults[0].message, "it is larger than 2 MiB");
}

#[test]
fn long_files_that_are_in_order_are_read() {
    let with = "export function f(a: number, b = [1, 2]) {\n  if (a > 1) { return a / 2; } else \
                { return /[`\"]/.test(`${a}`) ? b! : { c: \"it's\" }; }\n}\n";
    let without = "export const f = async (a: number) => {\n  const b = await g<string>(a)\n  \
                   if (a) b.push(1)\n  else b.pop()\n  const c = { a, b }\n  return c.a / 2\n}\n\
                   interface A {\n  a: string\n  b?: number[]\n}\n";
    let lists = [
        with.repeat(2500).replace("export ", ""),
        without.repeat(1800).replace("export ", "").replace("const f", "var f"),
        format!("export const a = [{}];", "[1, \"a\"], ".repeat(50_000)),
        format!("export const a = {{ {} }};", "b: { c: 1 }, ".repeat(50_000)),
        format!("export const a = \"\"{};", " +\n  \"b\"".repeat(2000)),
        format!("export const a = b{};", "\n  .map((c) => c + 1)".repeat(500)),
        format!("export const a = (b) => {{ switch (b) {{ {} }} }}", "case 1:\n".repeat(5000)),
        format!("export const a = `{}`;", "it's ${b} and / or ".repeat(20_000)),
        include_str!("../../sdk/atomic.d.ts").to_owned(),
        include_str!("../../sdk/boot.ts").to_owned(),
        include_str!("../../sdk/graph.ts").to_owned(),
    ];
    for text in &lists {
        let (_, faults) = atomic_typescript::metadata("a.ts".as_ref(), text);
        let sound = faults.iter().all(|fault| fault.code != "ATM701" && fault.code != "ATM709");
        assert!(sound, "{}", faults[0]);
    }
}
