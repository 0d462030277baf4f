//! An agent that speaks ACP and does what its prompt says: what real ones do not do, or not yet.
//!
//! What it does from the start is said by its second argument.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use std::io::{self, BufRead as _, Write as _};
use std::process::ExitCode;

use serde_json::{Value, json};

fn main() -> ExitCode {
    let manner = std::env::args().nth(2).unwrap_or_default();
    let mut agent = Agent { manner, asked: 0, is_cancelled: false };
    match agent.manner.as_str() {
        "banner" => println!("Welcome to the agent!"),
        "ends" => {
            eprintln!("there is no licence");
            return ExitCode::from(3);
        }
        _ => {}
    }
    while let Some(message) = read() {
        agent.serve(&message);
    }
    ExitCode::SUCCESS
}

struct Agent {
    manner: String,
    asked: u64,
    is_cancelled: bool,
}

/// The next message; nothing when there is none any more.
fn read() -> Option<Value> {
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line).unwrap_or(0);
    (read > 0).then(|| serde_json::from_str(&line).unwrap_or_default())
}

fn write(message: &Value) {
    println!("{message}");
    let _ = io::stdout().flush();
}

fn reply(to: &Value, result: &Value) {
    write(&json!({ "jsonrpc": "2.0", "id": to["id"], "result": result }));
}

fn refuse(to: &Value, code: i32, message: &str) {
    let error = json!({ "code": code, "message": message });
    write(&json!({ "jsonrpc": "2.0", "id": to["id"], "error": error }));
}

fn update(update: &Value) {
    let params = json!({ "sessionId": "fake-1", "update": update });
    write(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
}

fn say(text: &str) {
    let content = json!({ "type": "text", "text": text });
    update(&json!({ "sessionUpdate": "agent_message_chunk", "content": content }));
}

/// Nothing that is sent to it is read any more.
fn be_deaf() {
    if let Ok(nothing) = std::fs::File::open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&nothing);
    }
}

fn end(to: &Value, reason: &str) {
    let usage = json!({ "inputTokens": 10, "outputTokens": 5, "totalTokens": 15 });
    reply(to, &json!({ "stopReason": reason, "usage": usage }));
}

impl Agent {
    fn serve(&mut self, message: &Value) {
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => {
                let version = if self.manner == "version" { 7 } else { 1 };
                let loads = self.manner != "forgets";
                reply(
                    message,
                    &json!({
                        "protocolVersion": version,
                        "agentCapabilities": { "loadSession": loads, "new": { "thing": 1 } },
                        "agentInfo": { "name": "Fake", "version": "1" },
                    }),
                );
            }
            "session/new" if self.manner == "login" => {
                refuse(message, -32000, "Authentication required");
            }
            "session/new" if self.manner == "stranger" => {
                let model = json!({ "id": "model", "category": "model", "options": [] });
                reply(message, &json!({ "sessionId": "fake-1", "configOptions": [model] }));
            }
            "session/new" | "session/load" if self.manner == "deaf" => {
                // It hears nothing more once it is ready, and takes its time to end.
                be_deaf();
                reply(message, &session());
                std::thread::sleep(std::time::Duration::from_millis(200));
                std::process::exit(5);
            }
            "session/set_config_option" if self.manner == "stubborn" => {}
            "session/new" => reply(message, &session()),
            "session/load" if message["params"]["sessionId"] == "fake-1" => {
                say("what was said before");
                reply(message, &session());
            }
            "session/load" => refuse(message, -32002, "Resource not found"),
            "session/set_config_option" => reply(message, &session()),
            "session/prompt" => self.prompt(message),
            "" | "session/cancel" => {}
            _ => refuse(message, -32601, "Method not found"),
        }
    }

    fn prompt(&mut self, message: &Value) {
        let blocks = message["params"]["prompt"].as_array().cloned().unwrap_or_default();
        let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        let words = texts.join("|");
        let wish = words.rsplit("DO ").next().unwrap_or_default();
        let (verb, rest) = wish.split_once(' ').unwrap_or((wish, ""));
        match verb {
            "elicit" => {
                let answer = self.ask("elicitation/create", &form(rest));
                if self.is_cancelled {
                    say("it was over before; ");
                }
                while answer["result"]["action"] == "cancel" && !self.is_cancelled {
                    self.is_cancelled = read().is_none_or(|it| it["method"] == "session/cancel");
                }
                say(&format!("answered {answer}"));
                end(message, if self.is_cancelled { "cancelled" } else { "end_turn" });
            }
            "use" => {
                self.use_tool(rest);
                end(message, "end_turn");
            }
            "wonder" => {
                update(&json!({ "sessionUpdate": "dream", "of": [1, 2] }));
                write(&json!({ "jsonrpc": "2.0", "method": "_fake/sings", "params": {} }));
                let answer = self.ask("terminal/create", &json!({ "command": "x" }));
                say(&format!("{}", answer["error"]["code"]));
                end(message, "end_turn");
            }
            "stop" => {
                say("so far");
                end(message, rest);
            }
            "plan" => {
                let entry = |content: &str, status: &str| json!({ "content": content, "priority": "high", "status": status });
                let entries = json!([entry("Look", "completed"), entry("Leap", "pending")]);
                update(&json!({ "sessionUpdate": "plan", "entries": entries }));
                say("planned");
                end(message, "end_turn");
            }
            "garble" => {
                say("so far");
                println!("this is no JSON");
            }
            "fail" => refuse(message, -32603, rest),
            "exit" => {
                say("so far");
                eprintln!("it was too much");
                std::process::exit(4);
            }
            "leave" => {
                // It hears nothing more, says that it is done, and takes its time to end.
                be_deaf();
                say("bye");
                end(message, "end_turn");
                std::thread::sleep(std::time::Duration::from_millis(200));
                std::process::exit(0);
            }
            "hang" => loop {
                std::thread::park();
            },
            "" => reply(message, &json!({ "stopReason": "end_turn" })),
            _ => {
                say(&words);
                end(message, "end_turn");
            }
        }
    }

    /// Wants to use a tool, as the words say: its kind and what it is used on.
    fn use_tool(&mut self, words: &str) {
        let (kind, on) = words.split_once(' ').unwrap_or((words, ""));
        let input =
            if kind == "execute" { json!({ "command": on }) } else { json!({ "path": on }) };
        let call =
            json!({ "toolCallId": "c1", "title": "to do it", "kind": kind, "rawInput": input });
        let mut began = call.clone();
        if self.manner == "two-faced" {
            // It says one thing, and asks for another.
            (began["kind"], began["rawInput"]) = (json!("read"), json!({ "path": "x" }));
        }
        began["sessionUpdate"] = json!("tool_call");
        update(&began);
        let option =
            |kind: &str| json!({ "optionId": format!("{kind}!"), "name": kind, "kind": kind });
        let options = ["reject_once", "allow_always", "allow_once"].map(option);
        let wish = json!({ "sessionId": "fake-1", "toolCall": call, "options": options });
        let answer = self.ask("session/request_permission", &wish);
        let is_allowed = answer["result"]["outcome"]["optionId"] == "allow_once!";
        let status = if is_allowed { "completed" } else { "failed" };
        update(
            &json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": status }),
        );
    }

    /// Asks for something and waits for the answer.
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        while let Some(message) = read() {
            self.is_cancelled |= message["method"] == "session/cancel";
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
        Value::Null
    }
}

fn session() -> Value {
    let models = ["one", "two"].map(|name| json!({ "value": name, "name": name.to_uppercase() }));
    let model = json!({ "id": "which", "category": "model", "type": "select", "currentValue": "one",
                        "name": "Model", "options": models });
    json!({ "sessionId": "fake-1", "configOptions": [model] })
}

/// A form, by its name.
fn form(name: &str) -> Value {
    let colour = json!({ "type": "string", "title": "Colour", "oneOf": [
        { "const": "r", "title": "Red", "description": "warm" }, { "const": "b", "title": "Blue" },
    ] });
    let sizes =
        json!({ "type": "array", "description": "Which sizes?", "items": { "enum": ["s", "l"] } });
    let plain = json!({ "type": "string", "title": "Something else" });
    let properties = match name {
        "one" => json!({ "colour": colour }),
        "other" => json!({ "colour": colour, "colour_other": plain }),
        "several" => json!({ "colour": colour, "sizes": sizes, "count": { "type": "integer" },
                             "fast": { "type": "boolean" } }),
        "text" => json!({ "name": plain }),
        _ => json!({}),
    };
    json!({ "mode": "form", "sessionId": "fake-1", "message": "Which colour?",
            "requestedSchema": { "type": "object", "properties": properties } })
}
