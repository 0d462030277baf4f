// Types of the Atomic workflow SDK, for editors and `tsc`. Written by `atomic init`, and again when
// Atomic is updated: do not edit. Ambient modules, so neither `paths` nor node_modules is needed.

declare module "atomic/types" {
  /** What a node is called. */
  export type NodeId = string;
  /** What a node is. */
  export type NodeType = "agent" | "tool" | "decision" | "wait" | "ask_user" | "subgraph" | "parallel" | (string & {});
  /** What a state can hold. */
  export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
  /** A model, by the name its backend knows it by; `inherit` is that of what is around. */
  export type ModelSpec = string;
  /** A value, or a promise of one. */
  export type MaybePromise<T> = T | Promise<T>;

  /** What every state has. A state of your own may extend it, but need not. */
  export interface BaseState {
    /** The id of the session. */
    executionId: string;
    /** What every node returned, by its id. */
    outputs: Record<NodeId, unknown>;
    lastUpdated?: string;
  }
  /** The state of a workflow that was started with a prompt. */
  export interface WorkflowState extends BaseState {
    /** What the user typed. */
    prompt: string;
  }

  /** A task. `title` is read as `content`, `blocked` as `pending`, `passing` and `skipped` as `completed`, `failing` as `failed`. */
  export interface WorkflowTask {
    id: string;
    /** What is to be done, in one line. */
    content?: string;
    /** Another name for `content`. */
    title?: string;
    status: "pending" | "in_progress" | "completed" | "failed" | "blocked" | "passing" | "failing" | "skipped";
    activeForm?: string;
    /** The ids of tasks that must be completed first. */
    blockedBy?: string[];
    error?: string;
    priority?: number;
    description?: string;
    [key: string]: unknown;
  }
  /** A task of a file that `taskLoopNode` reads. */
  export interface Task {
    id: string;
    name?: string;
    content?: string;
    title?: string;
    description?: string;
    status: "pending" | "in_progress" | "completed" | "failed" | "blocked" | "passing" | "failing" | "skipped";
    /** Lower comes first. */
    priority?: number;
    dependencies?: string[];
    blockedBy?: string[];
    metadata?: Record<string, unknown>;
  }
  /** The file of `taskLoopNode`; a plain list of tasks will do as well. */
  export interface TasksFile {
    version: "1.0";
    tasks: Task[];
    metadata?: { createdAt: string; updatedAt: string; source?: string };
  }

  /** What `createState` is given. */
  export interface WorkflowStateParams {
    /** What the user typed. */
    prompt: string;
    sessionId: string;
    /** The folder of the session. */
    sessionDir: string;
    maxIterations: number;
  }
  /** What a file exports besides its graph. */
  export interface WorkflowMetadata {
    name?: string;
    description?: string;
    aliases?: string[];
    version?: string;
    minSDKVersion?: string;
    stateVersion?: number;
    argumentHint?: string;
    sessionsDir?: string;
    defaultConfig?: Record<string, unknown>;
  }
  /** A whole workflow as one object: what a file may export by default. */
  export interface WorkflowDefinition<S extends object = any> extends WorkflowMetadata {
    graphConfig?: WorkflowGraphConfig<S>;
    createState?: (params: WorkflowStateParams) => S;
    migrateState?: (old: any, from: number) => S;
    nodeDescriptions?: Record<NodeId, string>;
    stateAnnotations?: StateAnnotations<S>;
  }

  /** When something holds: a function, or one of three forms that the engine looks at itself. */
  export type Condition<S extends object = any> =
    | ((state: S) => boolean)
    | { key: string; equals: unknown }
    | { says: { node: NodeId; text: string } }
    | { not: Condition<S> };
  /** A text. In one that is written down, `{prompt}` and `{outputs.plan}` are filled from the state. */
  export type Text<S extends object = any> = string | ((state: S) => string);
  /** Changes to the state that a mapper makes. */
  export type Changes<S extends object> = Partial<NoInfer<S>>;
  /** Changes to the state that a tool makes; it may add keys. */
  export type Update<S extends object> = Partial<NoInfer<S>> & { [key: string]: unknown };
  /** A JSON Schema. */
  export type JsonSchema = boolean | { [key: string]: unknown };
  /** The program an agent runs on. */
  export type Backend = "claude" | "opencode" | "copilot" | "script" | `acp:${string}`;

  /** How often something is tried. */
  export interface RetryConfig<S extends object = any> {
    /** 3 if it is left out. */
    maxAttempts?: number;
    /** How long to wait before the second attempt, in milliseconds; 1000 if it is left out. */
    backoffMs?: number;
    /** By what the wait grows; 2 if it is left out. */
    backoffMultiplier?: number;
    /** Only failures of these kinds. */
    codes?: string[];
    /** Whether this failure is worth another attempt. */
    retryOn?: (error: StepFailure, state: S) => boolean;
  }
  /** Why a step failed. */
  export interface StepFailure extends Error {
    /** The kind of failure: `timeout`, `shell`, `function`, … */
    code: string;
  }
  /** What to do about a failure. */
  export type ErrorAction<S extends object = any> =
    | "retry"
    | "skip"
    | "abort"
    | { action: "retry"; delayMs?: number }
    | { action: "skip"; stateUpdate?: Changes<S> }
    | { action: "abort" }
    | { action: "goto"; node: NodeId }
    | { action: "goto"; nodeId: NodeId };

  /** What every node may have. */
  export interface NodeOptions<S extends object = any> {
    /** A name for people. */
    name?: string;
    /** Shown while the node runs; a node without one is not shown. */
    description?: string;
    retry?: RetryConfig<S>;
    /** What to do when it failed for good; `"abort"` if it is left out. */
    onError?: ErrorAction<S> | ((error: StepFailure, ctx: { nodeId: NodeId; state: S }) => ErrorAction<S>);
    /** What to do when an attempt was cut off, by a crash for example. */
    onLost?: "continue" | "runAgain" | "ask";
    /** Where a failed run goes on when it is resumed. */
    onRevive?: NodeId;
    /** The longest time for one attempt, in milliseconds. */
    timeoutMs?: number;
    /** The same as `timeoutMs`. */
    timeout?: number;
    /** What the state must look like. */
    inputSchema?: JsonSchema;
    /** What the node must return. */
    outputSchema?: JsonSchema;
    /** The model for this node and all that is inside it. */
    model?: string;
    /** Where a `goto` may lead. */
    targets?: NodeId[];
    /** How often it may be visited: a number, or a key of the state. */
    maxVisits?: number | string;
  }

  /** A node. Factories make them; one written by hand has an `execute`. `S` is invariant on purpose. */
  export interface NodeDefinition<in out S extends object = any> extends NodeOptions<S> {
    id: NodeId;
    type?: NodeType;
    execute?: (ctx: ExecutionContext<S>) => MaybePromise<NodeResult<S> | void>;
    readonly __state?: (state: S) => S;
  }
  /** What a custom node returns. */
  export interface NodeResult<S extends object = any> {
    /** Changes to the state. */
    stateUpdate?: Update<S>;
    /** Where to go on; the node has to name it in its `targets`. */
    goto?: NodeId | NodeId[];
    signals?: NodeSignal[];
  }
  /** Something a custom node has to say. */
  export interface NodeSignal {
    type: string;
    data?: unknown;
  }
  /** What a node's function can ask for. Every request is told of in the session. */
  export interface HostRequests {
    /** Runs a command in a shell, in the project. A status other than 0 is an error only with `check`. Texts of agents and users belong in `values`, never in the command itself. */
    shell(command: string, options?: ShellOptions): Promise<ShellResult>;
    /** The text of a regular file inside the project. */
    readFile(path: string): Promise<string>;
    /** Writes a file inside the project. */
    writeFile(path: string, text: string): Promise<void>;
    /** Whether there is such a file or folder inside the project. */
    exists(path: string): Promise<boolean>;
    /** The files of the project that fit a pattern, such as `src/**\/*.ts`. A pattern that is none is an error. */
    glob(pattern: string): Promise<string[]>;
    fetch(url: string, options?: FetchOptions): Promise<FetchResult>;
    /** A variable of the environment; null where it is not set. One that workflows may not see is an error: the setting `env_allow` allows it. */
    env(name: string): Promise<string | null>;
  }
  export interface ShellOptions {
    cwd?: string;
    env?: Record<string, string>;
    /** Fills `{key}` in the command, so that the shell never parses a value: `shell("grep -- {word} src", { values: { word } })`. `{file:key}` is the path of a file with the value. */
    values?: Record<string, unknown>;
    timeoutMs?: number;
    timeout?: number;
    stdin?: string;
    /** A status other than 0 is an error, with the name `ShellError` and the code `shell`; a step or call that failed is tried anew on resume. */
    check?: boolean;
    signal?: AbortSignal;
  }
  export interface ShellResult {
    /** The status; 128 and the number of the signal when one ended it, as in a shell. */
    code: number;
    stdout: string;
    stderr: string;
  }
  export interface FetchOptions {
    method?: string;
    headers?: Record<string, string>;
    body?: string;
    timeoutMs?: number;
    timeout?: number;
    signal?: AbortSignal;
  }
  export interface FetchResult {
    status: number;
    /** Whether the status is one of 200 to 299. */
    ok: boolean;
    headers: Record<string, string>;
    text: string;
    json(): any;
  }
  /** What the function of a tool or of a custom node is given. */
  export interface ExecutionContext<S extends object = any> extends HostRequests {
    readonly state: S;
    readonly nodeId: NodeId;
    readonly executionId: string;
    /** Fires when the step is stopped or out of time. */
    readonly signal: AbortSignal;
    /** What a node returned. */
    getNodeOutput<T = any>(id: NodeId): T | undefined;
    /** Adds a signal to what the node returns. */
    emit(type: string, data?: unknown): void;
    log(...values: unknown[]): void;
    sleep(ms: number): Promise<void>;
  }
  /** The same as `ExecutionContext`. */
  export type NodeContext<S extends object = any> = ExecutionContext<S>;

  interface Prompted<S extends object> {
    /** What to ask; `{prompt}` if it is left out. */
    prompt?: Text<S>;
    /** The same as `prompt`. */
    task?: Text<S>;
    backend?: Backend;
    /** An older name for `backend`. */
    agentType?: Backend;
    /** What the agent is told to be, in place of a persona. */
    systemPrompt?: string;
    /** Whether it may ask the user; true if it is left out. */
    questions?: boolean;
    /** A JSON Schema of the type `object`: the agent answers with JSON that fits it, and that is the output. The same as `outputSchema`. */
    schema?: JsonSchema;
    /** Makes changes to the state out of the output: a text, or what fits the `schema`. */
    outputMapper?: (output: any, state: S) => Changes<S>;
    /** Not used: agents of a lane share their conversation. */
    sessionId?: string;
  }
  export interface AgentNodeConfig<S extends object = any> extends NodeOptions<S>, Prompted<S> {
    /** The name of an agent; without it there is no persona. */
    agent?: string;
    agentName?: string;
  }
  export type SubagentNodeConfig<S extends object = any> = NodeOptions<S> & Prompted<S> & ({ agent: string; agentName?: undefined } | { agentName: string; agent?: undefined });
  export interface ParallelSubagentNodeConfig<S extends object = any> extends NodeOptions<S> {
    agents: (SubagentNodeConfig<S> & { id?: NodeId })[];
    strategy?: Strategy;
    failFast?: boolean;
    /** Makes changes to the state out of the outputs, by agent. */
    outputMapper?: (results: Map<NodeId, any>, state: S) => Changes<S>;
    /** The same as `outputMapper`. */
    merge?: (results: Map<NodeId, any>, state: S) => Changes<S>;
  }
  export interface SkillNodeConfig<S extends object = any> extends NodeOptions<S> {
    skill: string;
    args?: Text<S>;
    backend?: Backend;
    agentType?: Backend;
    outputMapper?: (output: any, state: S) => Changes<S>;
  }
  export interface CommandNodeConfig<S extends object = any> extends NodeOptions<S> {
    command: string;
    args?: Text<S>;
    backend?: Backend;
    agentType?: Backend;
    outputMapper?: (output: any, state: S) => Changes<S>;
  }
  /** A function, which returns changes to the state, or a shell command, whose output is the node's. */
  export type ToolNodeConfig<S extends object = any> = NodeOptions<S> &
    (
      | { execute: (state: S, ctx: ExecutionContext<S>) => MaybePromise<Update<S> | void>; command?: undefined; shell?: undefined }
      | { command: Text<S>; shell?: undefined; execute?: undefined; outputMapper?: (output: string, state: S) => Changes<S> }
      | { shell: Text<S>; command?: undefined; execute?: undefined; outputMapper?: (output: string, state: S) => Changes<S> }
    );
  export interface CustomNodeConfig<S extends object = any> extends NodeOptions<S> {
    execute: (ctx: ExecutionContext<S>) => MaybePromise<NodeResult<S> | void>;
  }
  export interface WaitNodeConfig<S extends object = any> extends NodeOptions<S> {
    /** What the user is told. */
    prompt: Text<S>;
    /** Go on without waiting. */
    autoApprove?: boolean;
    /** Makes changes to the state out of what the user typed. */
    inputMapper?: (answer: string, state: S) => Changes<S>;
  }
  export interface AskUserNodeConfig<S extends object = any> extends NodeOptions<S> {
    question: Text<S>;
    /** A word or two above the question. */
    header?: string;
    /** `(Recommended)` at the end of one marks what is taken when nobody is there. */
    options?: (string | { label: string; description?: string })[];
    multiSelect?: boolean;
    /** Any answer will do; so it is when there are no options. */
    freeText?: boolean;
    /** Makes changes to the state out of the answer. */
    inputMapper?: (answer: any, state: S) => Changes<S>;
    outputMapper?: (answer: any, state: S) => Changes<S>;
  }
  export interface AskUserOptions extends AskUserNodeConfig {}
  export type ClearContextNodeConfig = NodeOptions;
  export interface ContextMonitorNodeConfig<S extends object = any> extends NodeOptions<S> {
    /** From which part of the window on; 0.8 if it is left out. */
    threshold?: number;
    /** Compact the conversation (so it is if it is left out), begin a new one, or only say so. */
    action?: "compact" | "fresh" | "warn";
  }
  export interface DecisionNodeConfig<S extends object = any> extends NodeOptions<S> {
    /** The first route that holds is taken. */
    routes: { condition: Condition<S>; target: NodeId; label?: string }[];
    /** Taken when none holds. */
    fallback?: NodeId;
  }
  /** `all` waits for all, `race` for the first to end, `any` for the first to succeed. */
  export type Strategy = "all" | "race" | "any";
  export type Branch<S extends object = any> = NodeId | NodeDefinition<S> | NodeDefinition<S>[] | CompiledGraph<S>;
  export interface ParallelNodeConfig<S extends object = any> extends NodeOptions<S> {
    /** Nodes, lists of nodes, compiled graphs, or the ids of nodes; an object gives them names. */
    branches: Branch<S>[] | Record<NodeId, Branch<S>>;
    strategy?: Strategy;
    /** Whether the first failure stops the others. */
    failFast?: boolean;
    /** Makes changes to the state out of the outputs, by branch. */
    merge?: (results: Map<NodeId, any>, state: S) => Changes<S>;
    /** The same as `merge`. */
    outputMapper?: (results: Map<NodeId, any>, state: S) => Changes<S>;
  }
  interface Inside<S extends object> {
    nodes?: NodeDefinition<S>[];
    node?: NodeDefinition<S>;
    graph?: CompiledGraph<S>;
  }
  export interface EachNodeConfig<S extends object = any> extends NodeOptions<S>, Inside<S> {
    /** The key of a list in the state. */
    over: keyof S & string;
    /** The key under which the nodes inside find their item; `item` if it is left out. */
    item?: string;
    /** How many at once: a number, or a key of the state. */
    workers?: number | string;
    /** With `"tasks"` the items are tasks: only those that are pending and not blocked may start. */
    ready?: "once" | "tasks";
    failFast?: boolean;
  }
  export interface LoopNodeConfig<S extends object = any> extends NodeOptions<S>, Inside<S> {
    /** Asked after every round. */
    until?: Condition<S>;
    /** 100 if it is left out; 0 means no limit. */
    maxIterations?: number;
  }
  /** The name of another workflow. */
  export interface WorkflowRef {
    readonly workflow: string;
  }
  export type SubgraphRef<Sub extends object = any> = CompiledGraph<Sub> | WorkflowRef | string;
  export interface SubgraphMapping<S extends object, Sub extends object> extends NodeOptions<S> {
    /** The state it begins with; that of the graph around it if it is left out. */
    inputMapper?: (state: S) => Sub;
    /** Makes changes to the state out of the one it ended with. */
    outputMapper?: (result: Sub, state: S) => Changes<S>;
  }
  export type SubgraphNodeConfig<S extends object = any, Sub extends object = any> = SubgraphMapping<S, Sub> &
    ({ subgraph: SubgraphRef<Sub> } | { graph: SubgraphRef<Sub> } | { workflow: string | WorkflowRef });
  export interface TaskLoopNodeConfig<S extends object = any> extends NodeOptions<S> {
    /** `research/tasks.json` if it is left out. */
    tasksPath?: string | ((state: S) => string);
    /** What is done with every task, which is under `currentTask`. */
    taskNodes: NodeDefinition<S> | NodeDefinition<S>[];
    preIterationNode?: NodeDefinition<S>;
    /** Asked before every task. */
    until?: ((state: S, tasks: Task[]) => boolean) | Exclude<Condition<S>, Function>;
    /** 100 if it is left out; 0 means no limit. */
    maxIterations?: number;
    /** Picks the next task in place of the engine. */
    taskSelector?: (tasks: Task[], state: S) => Task | undefined | null;
  }
  /** The same as `TaskLoopNodeConfig`. */
  export type TaskLoopConfig<S extends object = any> = TaskLoopNodeConfig<S>;
  export interface CriteriaLoopNodeConfig<S extends object = any> extends NodeOptions<S> {
    taskNodes: NodeDefinition<S> | NodeDefinition<S>[];
    /** The loop ends when the output of the last node contains this. */
    completionSignal?: string;
    maxIterations?: number;
  }
  /** The same as `CriteriaLoopNodeConfig`. */
  export type CriteriaLoopConfig<S extends object = any> = CriteriaLoopNodeConfig<S>;
  /** The state of a graph with a `taskLoopNode`. */
  export interface TaskLoopState extends BaseState {
    currentTask?: Task;
    tasks?: Task[];
    /** How many tasks were taken. */
    iteration?: number;
    /** Whether there is another task. */
    shouldContinue?: boolean;
    /** Whether every task of the file is done. */
    allTasksComplete?: boolean;
    /** Whether tasks were left when the limit was met. */
    maxIterationsReached?: boolean;
  }
  /** The state of a graph with a `criteriaLoopNode`. */
  export interface CriteriaLoopState extends BaseState {
    /** How many rounds there were. */
    iteration?: number;
    /** Whether there is another round. */
    shouldContinue?: boolean;
    /** Whether the last node has said the word. */
    criteriaComplete?: boolean;
    /** Whether it had not when the limit was met. */
    maxIterationsReached?: boolean;
  }

  /** What follows what. A list of nodes in `from` waits for all of them. */
  export interface Edge<S extends object = any> {
    from: NodeId | NodeId[];
    to: NodeId;
    condition?: Condition<S> | "otherwise";
    /** For people. */
    label?: string;
  }
  /** How a change and what was there become one. */
  export type Reducer<T> = (current: T, update: T) => T;
  /** What a key begins with, and how changes to it are combined. */
  export interface Annotation<T> {
    default?: T | (() => T);
    reducer?: Reducer<T>;
  }
  export type StateAnnotations<S extends object = any> = { [K in keyof S]?: Annotation<NonNullable<S[K]>> | Annotation<S[K]> };
  /** What holds for a graph as a whole. */
  export interface GraphOptions<S extends object = any> {
    stateAnnotations?: StateAnnotations<S>;
    /** How often a node may be visited; 100 if it is left out. */
    maxIterations?: number;
    /** How many steps a run may have. */
    maxSteps?: number;
    /** How many steps run at once. */
    maxConcurrency?: number;
    timeoutMs?: number;
    timeout?: number;
    model?: string;
    failFast?: boolean;
    nodeDescriptions?: Record<NodeId, string>;
  }
  /** What `compile` takes. */
  export interface CompileConfig<S extends object = any> extends GraphOptions<S> {
    /** Not needed: every run is kept on disk. */
    checkpointing?: boolean;
    checkpointDir?: string | ((state: any) => string);
    metadata?: Record<string, unknown>;
  }
  /** A graph as a file exports it. */
  export interface WorkflowGraphConfig<S extends object = any> extends GraphOptions<S> {
    nodes: NodeDefinition<S>[];
    /** Without it the nodes run in a row. */
    edges?: Edge<S>[];
    /** The first node if it is left out. */
    startNode?: NodeId;
    /** The node that goes on when another one fails. */
    catch?: NodeId;
  }
  /** What `compile` makes. */
  export interface CompiledGraph<in out S extends object = any> {
    readonly startNode: NodeId;
    readonly nodes: readonly NodeDefinition<S>[];
    readonly __state?: (state: S) => S;
  }
  export type SubgraphNodeOptions<S extends object = any, Sub extends object = any> = SubgraphMapping<S, Sub>;
  export type GraphNode<S extends object = any> = NodeDefinition<S>;
  export type CompiledSubgraph<S extends object = any> = CompiledGraph<S>;

  // ── The plain async form ─────────────────────────────────────────────────────────────────

  /** What is known of a plain async workflow. */
  export interface ScriptMetadata {
    name?: string;
    description?: string;
    aliases?: string[];
    version?: string;
    minSDKVersion?: string;
    argumentHint?: string;
    sessionsDir?: string;
    /** The workflows that it calls. */
    workflows?: string[];
    /** How many calls a run may make; 1000 if it is left out. */
    maxCalls?: number;
    maxConcurrency?: number;
    timeoutMs?: number;
    model?: string;
    inputSchema?: JsonSchema;
  }
  interface Keyed {
    /** The name of the call, if it should not depend on how many came before it. Every key is used once. */
    key?: string;
  }
  interface AgentCallOptions extends Keyed {
    model?: string;
    backend?: Backend;
    /** What the agent is told to be, in place of a persona. */
    systemPrompt?: string;
    /** Whether it may ask the user; false if it is left out. */
    questions?: boolean;
    /** Calls with the same name here share one conversation; without it every call begins its own. */
    conversation?: string;
  }
  export interface AgentCall extends AgentCallOptions {
    prompt?: string;
    task?: string;
    schema?: undefined;
  }
  export interface StructuredAgentCall extends AgentCallOptions {
    prompt?: string;
    task?: string;
    /** A JSON Schema of the type `object`. The agent answers with JSON that fits it. */
    schema: { type: "object"; [key: string]: unknown };
  }
  interface EntryCall extends Keyed {
    args?: string;
    backend?: Backend;
  }
  export interface AskCall extends Keyed {
    question?: string;
    header?: string;
    options?: (string | { label: string; description?: string })[];
    multiSelect?: boolean;
    freeText?: boolean;
  }
  type Results<T> = { -readonly [K in keyof T]: T[K] extends (...args: any[]) => infer R ? Awaited<R> : never };
  /** What a plain async workflow can do. Every call is a step, recorded, and never made twice. */
  export interface WorkflowContext {
    /** What the user typed. */
    readonly prompt: string;
    /** What it was called with by another workflow. */
    readonly input: any;
    /** The state of the run as it began. */
    readonly state: Readonly<Record<string, any>>;
    readonly sessionId: string;
    readonly sessionDir: string;
    readonly signal: AbortSignal;

    /** Prompts an agent in a conversation of its own and waits for its answer. */
    agent(name: string, prompt: string, options?: AgentCall): Promise<string>;
    agent<T = any>(name: string, prompt: string, options: StructuredAgentCall): Promise<T>;
    agent(name: string, options: AgentCall): Promise<string>;
    agent<T = any>(name: string, options: StructuredAgentCall): Promise<T>;
    agent(options: AgentCall & { agent?: string }): Promise<string>;
    agent<T = any>(options: StructuredAgentCall & { agent?: string }): Promise<T>;
    /** Runs the prompt of a skill. */
    skill(name: string, args?: string | EntryCall, options?: EntryCall): Promise<string>;
    /** Runs the prompt of a command. */
    command(name: string, args?: string | EntryCall, options?: EntryCall): Promise<string>;
    /** Asks the user. With `multiSelect` the answer is a list. */
    ask(question: string, options: AskCall & { multiSelect: true }): Promise<string[]>;
    ask(question: string, options?: AskCall): Promise<string>;
    ask(options: AskCall & { question: string }): Promise<string>;
    /** Waits, also across a restart. */
    sleep(ms: number, options?: Keyed): Promise<void>;
    /** Runs another workflow; it has to be among the `workflows` of `defineWorkflow`. */
    workflow<T = any>(name: string | WorkflowRef, input?: string | Record<string, unknown>, options?: Keyed): Promise<T>;

    shell(command: string, options?: Omit<ShellOptions, "signal"> & Keyed): Promise<ShellResult>;
    readFile(path: string, options?: Keyed): Promise<string>;
    writeFile(path: string, text: string, options?: Keyed): Promise<void>;
    exists(path: string, options?: Keyed): Promise<boolean>;
    glob(pattern: string, options?: Keyed): Promise<string[]>;
    fetch(url: string, options?: Omit<FetchOptions, "signal"> & Keyed): Promise<FetchResult>;
    env(name: string, options?: Keyed): Promise<string | null>;

    /** Several branches at once. The others are stopped as soon as the outcome is known. */
    parallel<T extends readonly ((ctx: WorkflowContext) => any)[] | []>(branches: T, options?: { strategy?: "all"; limit?: number }): Promise<Results<T>>;
    parallel<T extends Record<string, (ctx: WorkflowContext) => any>>(branches: T, options?: { strategy?: "all"; limit?: number }): Promise<Results<T>>;
    parallel<R>(branches: readonly ((ctx: WorkflowContext) => MaybePromise<R>)[] | Record<string, (ctx: WorkflowContext) => MaybePromise<R>>, options: { strategy: "race" | "any"; limit?: number }): Promise<R>;
    /** The same for every item of a list, at most `limit` at once. */
    map<I, R>(items: Iterable<I>, each: (item: I, ctx: WorkflowContext, index: number) => MaybePromise<R>, options?: { limit?: number }): Promise<R[]>;

    log(...values: unknown[]): void;
    /** The time, in milliseconds, as it was when this line was first reached. */
    now(): number;
  }
  /** What `defineWorkflow(…).run(…)` makes: a default export. */
  export interface WorkflowScript<T = unknown> {
    compile(): WorkflowScript<T>;
    readonly __output?: T;
  }
}

declare module "atomic/workflows/graph" {
  import type * as T from "atomic/types";
  export type * from "atomic/types";

  /** Prompts an agent, in the conversation of its lane. */
  export function agentNode<S extends object = any>(id: T.NodeId, options?: T.AgentNodeConfig<S>): T.NodeDefinition<S>;
  export function agentNode<S extends object = any>(options: T.AgentNodeConfig<S> & { id?: T.NodeId }): T.NodeDefinition<S>;
  /** Prompts an agent in a conversation of its own. */
  export function subagentNode<S extends object = any>(id: T.NodeId, options: T.SubagentNodeConfig<S>): T.NodeDefinition<S>;
  export function subagentNode<S extends object = any>(options: T.SubagentNodeConfig<S> & { id?: T.NodeId }): T.NodeDefinition<S>;
  /** Several sub-agents at once. */
  export function parallelSubagentNode<S extends object = any>(id: T.NodeId, options: T.ParallelSubagentNodeConfig<S>): T.NodeDefinition<S>;
  export function parallelSubagentNode<S extends object = any>(options: T.ParallelSubagentNodeConfig<S> & { id?: T.NodeId }): T.NodeDefinition<S>;
  /** Runs the prompt of a skill. */
  export function skillNode<S extends object = any>(id: T.NodeId, options: T.SkillNodeConfig<S>): T.NodeDefinition<S>;
  export function skillNode<S extends object = any>(options: T.SkillNodeConfig<S> & { id?: T.NodeId }): T.NodeDefinition<S>;
  /** Runs the prompt of a command. */
  export function commandNode<S extends object = any>(id: T.NodeId, options: T.CommandNodeConfig<S>): T.NodeDefinition<S>;
  export function commandNode<S extends object = any>(options: T.CommandNodeConfig<S> & { id?: T.NodeId }): T.NodeDefinition<S>;
  /** Calls a function that returns changes to the state, or runs a command in a shell. */
  export function toolNode<S extends object = any>(id: T.NodeId, options: T.ToolNodeConfig<S>): T.NodeDefinition<S>;
  export function toolNode<S extends object = any>(options: T.ToolNodeConfig<S> & { id?: T.NodeId }): T.NodeDefinition<S>;
  /** Calls a function that returns `{ stateUpdate?, goto?, signals? }`. */
  export function customNode<S extends object = any>(id: T.NodeId, options: T.CustomNodeConfig<S>): T.NodeDefinition<S>;
  export function customNode<S extends object = any>(id: T.NodeId, execute: T.CustomNodeConfig<S>["execute"], options?: T.NodeOptions<S>): T.NodeDefinition<S>;
  export function customNode<S extends object = any>(options: T.CustomNodeConfig<S> & { id: T.NodeId }): T.NodeDefinition<S>;
  /** The same as `customNode`. */
  export const createNode: typeof customNode;
  /** Shows a text until the user goes on. */
  export function waitNode<S extends object = any>(id: T.NodeId, options: T.WaitNodeConfig<S> | string): T.NodeDefinition<S>;
  export function waitNode<S extends object = any>(options: T.WaitNodeConfig<S> & { id?: T.NodeId }): T.NodeDefinition<S>;
  /** Asks the user. */
  export function askUserNode<S extends object = any>(id: T.NodeId, options: T.AskUserNodeConfig<S>): T.NodeDefinition<S>;
  export function askUserNode<S extends object = any>(options: T.AskUserNodeConfig<S> & { id?: T.NodeId }): T.NodeDefinition<S>;
  /** The next agent of the lane starts a new conversation. */
  export function clearContextNode<S extends object = any>(id: T.NodeId, options?: T.NodeOptions<S>): T.NodeDefinition<S>;
  export function clearContextNode<S extends object = any>(options?: T.NodeOptions<S> & { id?: T.NodeId }): T.NodeDefinition<S>;
  /** Looks at how full the conversation is, and compacts it, replaces it, or says so. */
  export function contextMonitorNode<S extends object = any>(id: T.NodeId, options?: T.ContextMonitorNodeConfig<S>): T.NodeDefinition<S>;
  export function contextMonitorNode<S extends object = any>(options?: T.ContextMonitorNodeConfig<S> & { id?: T.NodeId }): T.NodeDefinition<S>;
  /** Goes to the first route whose condition holds, else to the fallback. */
  export function decisionNode<S extends object = any>(id: T.NodeId, options: T.DecisionNodeConfig<S>): T.NodeDefinition<S>;
  export function decisionNode<S extends object = any>(options: T.DecisionNodeConfig<S> & { id?: T.NodeId }): T.NodeDefinition<S>;
  /** Several branches at once. */
  export function parallelNode<S extends object = any>(id: T.NodeId, options: T.ParallelNodeConfig<S>): T.NodeDefinition<S>;
  export function parallelNode<S extends object = any>(options: T.ParallelNodeConfig<S> & { id?: T.NodeId }): T.NodeDefinition<S>;
  /** Something for every item of a list in the state. */
  export function eachNode<S extends object = any>(id: T.NodeId, options: T.EachNodeConfig<S>): T.NodeDefinition<S>;
  export function eachNode<S extends object = any>(options: T.EachNodeConfig<S> & { id?: T.NodeId }): T.NodeDefinition<S>;
  /** Repeats its nodes until a condition holds. */
  export function loopNode<S extends object = any>(id: T.NodeId, options: T.LoopNodeConfig<S>): T.NodeDefinition<S>;
  export function loopNode<S extends object = any>(options: T.LoopNodeConfig<S> & { id?: T.NodeId }): T.NodeDefinition<S>;
  /** A graph with a state of its own: a compiled one, or another workflow by its name. */
  export function subgraphNode<S extends object = any, Sub extends object = any>(id: T.NodeId, graph: T.SubgraphRef<Sub>, options?: T.SubgraphMapping<S, Sub>): T.NodeDefinition<S>;
  export function subgraphNode<S extends object = any, Sub extends object = any>(id: T.NodeId, options: T.SubgraphNodeConfig<S, Sub>): T.NodeDefinition<S>;
  export function subgraphNode<S extends object = any, Sub extends object = any>(options: T.SubgraphNodeConfig<S, Sub> & { id?: T.NodeId }): T.NodeDefinition<S>;
  /** Works through a file of tasks. */
  export function taskLoopNode<S extends object = any>(id: T.NodeId, options: T.TaskLoopNodeConfig<S>): T.NodeDefinition<S>;
  export function taskLoopNode<S extends object = any>(options: T.TaskLoopNodeConfig<S> & { id?: T.NodeId }): T.NodeDefinition<S>;
  /** Repeats its nodes until the last one says a word. */
  export function criteriaLoopNode<S extends object = any>(id: T.NodeId, options: T.CriteriaLoopNodeConfig<S>): T.NodeDefinition<S>;
  export function criteriaLoopNode<S extends object = any>(options: T.CriteriaLoopNodeConfig<S> & { id?: T.NodeId }): T.NodeDefinition<S>;
  /** Another workflow by its name, which is looked up when the graph is checked. */
  export function resolveWorkflowRef(name: string): T.WorkflowRef;

  /** How a change to a key and what was there become one. */
  export const Reducers: {
    readonly replace: <V>(current: V, update: V) => V;
    readonly concat: <V>(current: V[], update: V[]) => V[];
    readonly merge: <V extends object>(current: V, update: V) => V;
    /** Rows of a list that have the same `id`, or another field, become one row. */
    readonly mergeById: {
      <V extends object>(field: string): (current: V[], update: V[]) => V[];
      <V extends object>(current: V[], update: V[]): V[];
    };
    readonly max: (current: number, update: number) => number;
    readonly min: (current: number, update: number) => number;
    readonly sum: (current: number, update: number) => number;
    readonly or: (current: boolean, update: boolean) => boolean;
    readonly and: (current: boolean, update: boolean) => boolean;
    /** Keeps what was there when the change is null. */
    readonly ifDefined: <V>(current: V, update: V) => V;
  };
  /** What a key of the state begins with, and how changes to it are combined. */
  export function annotation<V>(initial?: V | (() => V), reducer?: T.Reducer<V>): T.Annotation<V>;
  /** The value that a key with this annotation begins with. */
  export function getDefaultValue<V>(annotation: T.Annotation<V>): V;
  /** What a key with this annotation becomes through a change. */
  export function applyReducer<V>(annotation: T.Annotation<V>, current: V, update: V): V;
  /** The state that these annotations begin with. */
  export function initializeState<A extends Record<string, T.Annotation<any>>>(annotations: A): { [K in keyof A]: A[K] extends T.Annotation<infer V> ? V : never };
  /** Whether a value is a node. */
  export function isNode(value: unknown): value is T.NodeDefinition;
  /** Whether a value is a compiled graph. */
  export function isCompiledGraph(value: unknown): value is T.CompiledGraph;

  type Step<S extends object> = T.NodeDefinition<S> | T.NodeDefinition<S>[] | Piece<S>;
  /** A graph that is being built, put into another one. */
  interface Piece<in out S extends object> {
    endif(): GraphBuilder<S>;
    readonly __state?: (state: S) => S;
  }
  export interface LoopConfig<S extends object = any> {
    id?: T.NodeId;
    /** Asked after every round. */
    until?: T.Condition<S>;
    /** 100 if it is left out; 0 means no limit. */
    maxIterations?: number;
    description?: string;
  }
  export interface IfConfig<S extends object = any> {
    condition: T.Condition<S>;
    then: T.NodeDefinition<S> | T.NodeDefinition<S>[];
    else_if?: { condition: T.Condition<S>; then: T.NodeDefinition<S> | T.NodeDefinition<S>[] }[];
    else?: T.NodeDefinition<S> | T.NodeDefinition<S>[];
  }
  /** A graph that is being built. `compile()` makes it. */
  export interface GraphBuilder<in out S extends object = any> extends Piece<S> {
    /** The first node. */
    start(node: Step<S>): GraphBuilder<S>;
    /** What comes next. */
    then(next: Step<S>): GraphBuilder<S>;
    /** What follows runs only when the condition holds, up to `else()` or `endif()`. */
    if(condition: T.Condition<S>): GraphBuilder<S>;
    if(config: IfConfig<S>): GraphBuilder<S>;
    /** Another condition, asked when the one before does not hold. */
    elseif(condition: T.Condition<S>): GraphBuilder<S>;
    else(): GraphBuilder<S>;
    endif(): GraphBuilder<S>;
    /** Repeats nodes until a condition holds. */
    loop(body: T.NodeDefinition<S>[] | Piece<S>, config: LoopConfig<S>): GraphBuilder<S>;
    loop(config: LoopConfig<S> & { nodes: T.NodeDefinition<S> | T.NodeDefinition<S>[] }): GraphBuilder<S>;
    loop(...bodyAndConfig: [T.NodeDefinition<S>, ...T.NodeDefinition<S>[], LoopConfig<S>]): GraphBuilder<S>;
    /** Several branches at once. */
    parallel(config: (T.ParallelNodeConfig<S> & { id?: T.NodeId }) | T.Branch<S>[]): GraphBuilder<S>;
    /** Waits for the user. */
    wait(prompt: string | (T.WaitNodeConfig<S> & { id?: T.NodeId }) | T.NodeDefinition<S>): GraphBuilder<S>;
    askUser(question: string | (T.AskUserNodeConfig<S> & { id?: T.NodeId }) | T.NodeDefinition<S>): GraphBuilder<S>;
    askUser(id: T.NodeId, options: T.AskUserNodeConfig<S>): GraphBuilder<S>;
    agent(id: T.NodeId, options?: T.AgentNodeConfig<S>): GraphBuilder<S>;
    agent(options: T.AgentNodeConfig<S> & { id?: T.NodeId }): GraphBuilder<S>;
    subagent(id: T.NodeId, options: T.SubagentNodeConfig<S>): GraphBuilder<S>;
    subagent(options: T.SubagentNodeConfig<S> & { id?: T.NodeId }): GraphBuilder<S>;
    tool(id: T.NodeId, options: T.ToolNodeConfig<S>): GraphBuilder<S>;
    tool(id: T.NodeId, execute: (state: S, ctx: T.ExecutionContext<S>) => T.MaybePromise<T.Update<S> | void>): GraphBuilder<S>;
    tool(options: T.ToolNodeConfig<S> & { id?: T.NodeId }): GraphBuilder<S>;
    each(id: T.NodeId, options: T.EachNodeConfig<S>): GraphBuilder<S>;
    each(options: T.EachNodeConfig<S> & { id?: T.NodeId }): GraphBuilder<S>;
    subgraph<Sub extends object = any>(id: T.NodeId, graph: T.SubgraphRef<Sub>, options?: T.SubgraphMapping<S, Sub>): GraphBuilder<S>;
    subgraph<Sub extends object = any>(options: T.SubgraphNodeConfig<S, Sub> & { id?: T.NodeId }): GraphBuilder<S>;
    decision(id: T.NodeId, options: T.DecisionNodeConfig<S>): GraphBuilder<S>;
    decision(options: T.DecisionNodeConfig<S> & { id?: T.NodeId }): GraphBuilder<S>;
    /** The node that goes on when another one fails. */
    catch(node: T.NodeDefinition<S> | T.NodeId): GraphBuilder<S>;
    /** The run, or this branch of an `if`, ends here. */
    end(): GraphBuilder<S>;
    compile(config?: T.CompileConfig<S>): T.CompiledGraph<S>;
  }
  /** Begins a graph. */
  export function graph<S extends object = any>(config?: T.GraphOptions<S>): GraphBuilder<S>;

  /** One node after the other. */
  export function sequential<S extends object = any>(nodes: T.NodeDefinition<S>[]): GraphBuilder<S>;
  export function sequential<S extends object = any>(...nodes: T.NodeDefinition<S>[]): GraphBuilder<S>;
  /** The same for every item of a list, then something with all the results, which are `outputs.map`. */
  export function mapReduce<S extends object = any>(template: {
    /** `map` if it is left out. */
    id?: T.NodeId;
    /** The key of a list in the state. */
    over: keyof S & string;
    /** The key under which `map` finds its item; `item` if it is left out. */
    item?: string;
    map: Step<S>;
    reduce: Step<S>;
    workers?: number | string;
    failFast?: boolean;
  }): GraphBuilder<S>;
  /** Works, has it reviewed, and works again until the review is content. */
  export function reviewCycle<S extends object = any>(template: {
    /** `review-cycle` if it is left out. */
    id?: T.NodeId;
    work: Step<S>;
    review: Step<S>;
    until?: T.Condition<S>;
    maxIterations?: number;
  }): GraphBuilder<S>;
  /** Works through a file of tasks. */
  export function taskLoop<S extends object = any>(options: T.TaskLoopNodeConfig<S> & { id?: T.NodeId }): GraphBuilder<S>;
  export function taskLoop<S extends object = any>(id: T.NodeId, options: T.TaskLoopNodeConfig<S>): GraphBuilder<S>;

  /** A workflow as a plain async function. */
  export function defineWorkflow(meta?: T.ScriptMetadata | string): {
    run<R>(body: (ctx: T.WorkflowContext) => T.MaybePromise<R>): T.WorkflowScript<R>;
  };
}
declare module "@atomic/graph" {
  export * from "atomic/workflows/graph";
}
declare module "@atomic/workflows" {
  export * from "atomic/workflows/graph";
}
declare module "atomic/workflows" {
  export * from "atomic/workflows/graph";
}

declare module "atomic/host" {
  import type { FetchOptions, FetchResult, ShellOptions, ShellResult } from "atomic/types";
  /** Runs a command in a shell, in the project. A status other than 0 is an error only with `check`. */
  export function shell(command: string, options?: ShellOptions): Promise<ShellResult>;
  /** The text of a regular file inside the project. */
  export function readFile(path: string): Promise<string>;
  /** Writes a file inside the project. */
  export function writeFile(path: string, text: string): Promise<void>;
  /** Whether there is such a file or folder inside the project. */
  export function exists(path: string): Promise<boolean>;
  /** The files of the project that fit a pattern. */
  export function glob(pattern: string): Promise<string[]>;
  export function fetch(url: string, options?: FetchOptions): Promise<FetchResult>;
  /** A variable of the environment; null where it is not set. One that workflows may not see is an error: the setting `env_allow` allows it. */
  export function env(name: string): Promise<string | null>;
  export function log(...values: unknown[]): void;
  export function sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

// What a workflow has besides the language. There is no DOM, no Node and no npm.
interface Console {
  log(...values: unknown[]): void;
  info(...values: unknown[]): void;
  warn(...values: unknown[]): void;
  error(...values: unknown[]): void;
  debug(...values: unknown[]): void;
  trace(...values: unknown[]): void;
}
declare const console: Console;
declare function setTimeout(f: (...args: any[]) => void, ms?: number, ...args: any[]): number;
declare function clearTimeout(id: number | undefined): void;
declare function setInterval(f: (...args: any[]) => void, ms?: number, ...args: any[]): number;
declare function clearInterval(id: number | undefined): void;
declare function queueMicrotask(f: () => void): void;
declare function structuredClone<T>(value: T): T;
interface AbortSignal {
  readonly aborted: boolean;
  readonly reason: any;
  onabort: ((event: unknown) => void) | null;
  throwIfAborted(): void;
  addEventListener(type: "abort", listener: (event: unknown) => void, options?: { once?: boolean }): void;
  removeEventListener(type: "abort", listener: (event: unknown) => void): void;
}
declare const AbortSignal: {
  prototype: AbortSignal;
  abort(reason?: unknown): AbortSignal;
  timeout(ms: number): AbortSignal;
  any(signals: Iterable<AbortSignal>): AbortSignal;
};
declare class AbortController {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
}
declare const crypto: {
  randomUUID(): string;
  getRandomValues<T extends { length: number; [index: number]: number }>(array: T): T;
};
declare const performance: { readonly timeOrigin: number; now(): number };
declare class TextEncoder {
  readonly encoding: "utf-8";
  encode(text?: string): Uint8Array;
}
declare class TextDecoder {
  constructor(label?: string);
  readonly encoding: "utf-8";
  decode(input?: ArrayBuffer | ArrayBufferView): string;
}
declare function atob(text: string): string;
declare function btoa(text: string): string;
