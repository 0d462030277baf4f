//! Files that are wrong: what is said.

use std::fmt::Write as _;

use super::described;

#[test]
fn misuse_says_what_to_do() {
    let table = [
        "a(3)",
        "a({ id: '' })",
        "a('x', { id: 'y' })",
        "sdk.toolNode({ id: 'x' })",
        "sdk.toolNode('x', { execute: 'ls' })",
        "sdk.subgraphNode('x')",
        "sdk.resolveWorkflowRef()",
        "graph().compile()",
        "graph().endif()",
        "graph().else()",
        "graph().start(a('a')).if(() => true).compile()",
        "graph().start(a('a')).start(a('b'))",
        "graph().start('x')",
        "graph().start(graph().start(a('a')).compile())",
        "graph().start(a('a')).then(a('a')).compile()",
        "graph().start(a('a')).compile({ maxiter: 1 })",
        "graph().start(a('a')).loop({ until: () => true })",
        "graph().start(a('a')).loop(a('b'), { untill: () => true })",
        "graph().start(a('a'))",
        "Promise.resolve().then(() => graph().start(a('a')))",
        "undefined",
        "3",
        "({})",
        "sdk.defineWorkflow({ name: 'x' })",
        "sdk.defineWorkflow({ nam: 'x' })",
        "graph().start(a('a', { outputSchema: { parse() {} } })).compile()",
        "graph().start(sdk.subgraphNode('x', graph().start(a('a')))).compile()",
        "graph().start(sdk.parallelNode({ id: 'p', branches: ['q'] })).compile()",
        "sdk.annotation([], (sdk.Reducers as any).append)",
        "sdk.annotation([], (sdk.Reducers as any).conact)",
        "sdk.annotation([], (sdk.Reducers as any).unknown)",
        "sdk.annotation([], undefined)",
        "graph().start(a('a')).compile({ stateAnnotations: { x: { default: [], reducer: undefined } } })",
        "graph().start(a('a')).loop(a('b'), { until: undefined }).compile()",
        "({ nodes: [a('a'), a('b')], edges: [{ from: 'a', to: 'b', condition: undefined }] })",
        "graph().start(a('a')).compile({ timeoutMs: NaN })",
    ];
    let mut shown = String::new();
    for expression in table {
        let text = format!(
            "import * as sdk from \"@atomic/workflows\";\nconst {{ agentNode: a, graph }} = sdk;\nexport default () =>\n  {expression};"
        );
        let said = described(&text).map_or_else(
            |trouble| format!("{} {}", trouble.code.as_deref().unwrap_or("-"), trouble.message),
            |document| format!("nothing: {document}"),
        );
        let _ = writeln!(shown, "{expression}\n    {said}");
    }
    insta::assert_snapshot!("misuse", shown);
}
