//! From keys to where they are written.

use std::path::Path;

use atomic_typescript::{Anchor, Step, locate};

const TEXT: &str = r#"import { toolNode, graph } from "@atomic/graph";
const shared = { retries: "many" };
const node = toolNode({
  id: "a",
  retry: shared,
  execute: async (state) => ({ x: 1 }),
  routes: [{ to: "b" }, { to: 3 }],
  ...rest,
});
export const graphConfig = { nodes: [node], edges: [["a", "b"], ...more, ["c"]] };
graph().then(toolNode({ id: "inner" })).loop([], {
  until: 1,
});
"#;

fn path(text: &str) -> Vec<Step> {
    let steps = text.split('.').filter(|step| !step.is_empty());
    steps
        .map(|step| step.parse().map_or_else(|_| Step::Key(step.to_owned()), Step::Index))
        .collect()
}

#[test]
fn paths_are_followed_as_deep_as_they_go() {
    let call = |line, column| Anchor::Call { line, column };
    let config = Anchor::Export("graphConfig".to_owned());
    let cases = [
        (call(3, 14), "id", "\"a\"", 1),
        (call(3, 14), "retry.retries", "\"many\"", 2),
        (call(3, 14), "execute", "execute", 1),
        (call(3, 14), "routes.1.to", "3", 3),
        (call(3, 14), "routes.7.to", "routes", 1),
        (call(3, 14), "unknown.x", "toolNode", 0),
        (call(11, 14), "id", "\"inner\"", 1),
        (call(11, 41), "until", "1", 1),
        (config.clone(), "edges.0.1", "\"b\"", 3),
        (config.clone(), "edges.2.0", "edges", 1),
        (config.clone(), "nodes.0", "node", 2),
        (config, "nothing", "{ nodes: [node], edges: [[\"a\", \"b\"], ...more, [\"c\"]] }", 0),
    ];
    for (anchor, steps, expected, followed) in cases {
        let found = locate(Path::new("a.ts"), TEXT, &anchor, &path(steps));
        let found = found.unwrap_or_else(|| panic!("{anchor:?} {steps}"));
        let text = &TEXT[found.start as usize..found.end as usize];
        assert_eq!((text, found.followed), (expected, followed), "{anchor:?} {steps}");
    }
    let found = locate(Path::new("a.ts"), TEXT, &call(3, 14), &path("routes.1.to")).unwrap();
    assert_eq!((found.line, found.column), (7, 31));
    assert_eq!(locate(Path::new("a.ts"), TEXT, &call(2, 1), &[]), None);
    assert_eq!(locate(Path::new("a.ts"), "(", &call(1, 1), &[]), None);
}
