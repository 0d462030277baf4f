//! What the rules about another attempt become.

use atomic_graph::Retry;
use serde_json::json;

use super::read_alone;

#[test]
fn every_part_of_a_retry_rule_is_read() {
    let rule = json!({"maxAttempts": 4, "backoffMs": 5, "backoffMultiplier": 1.5,
        "codes": ["shell", "timeout"], "retryOn": {"$fn": 7}});
    let text = json!({"nodes": [
        {"type": "tool", "id": "x", "command": "true", "retry": rule},
        {"type": "tool", "id": "y", "command": "true", "retry": {}},
        {"type": "tool", "id": "z", "command": "true"},
    ]});
    let workflow = read_alone(&text.to_string()).into_workflow().unwrap();
    let nodes = &workflow.graph.nodes;
    let when = nodes[0].retry.when.clone();
    assert!(workflow.functions.find(when.as_ref().unwrap()).is_some(), "{when:?}");
    let codes = vec!["shell".to_owned(), "timeout".to_owned()];
    let expected = Retry { attempts: 4, delay_ms: 5, factor: 1.5, codes, when };
    assert_eq!(nodes[0].retry, expected);
    let usual = Retry { attempts: 3, delay_ms: 1_000, factor: 2.0, codes: vec![], when: None };
    assert_eq!((&nodes[1].retry, &nodes[2].retry), (&usual, &Retry::default()));
}
