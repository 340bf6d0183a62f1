import type { Command, NamedCommand } from './command.ts'

/** An entry of the table. Its command is loaded when it runs or shows its help: all of them have 600 modules. */
export interface CommandEntry extends Pick<NamedCommand, 'name' | 'summary'> {
  /** Another name, which no help shows. */
  readonly alias?: string
  readonly load: () => Promise<Command>
  /** Whether it computes for long with an agent's chart, without a pause in which it could receive a signal. */
  readonly computes?: true
  /** Whether it loads an agent and writes results. Then the output of the agent's code goes to stderr. */
  readonly loadsAgent?: true
}

/** All commands, in the order of the help. Help, completion and corrections come from this table. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'init',
    summary: 'write a new project: an agent, its test, and the settings',
    load: async () => (await import('./init.ts')).initCommand
  },
  {
    name: 'dev',
    summary: 'serve an agent while you write it: watch it live, reload it when you save',
    load: async () => (await import('./dev/dev.ts')).devCommand
  },
  {
    name: 'serve',
    summary: 'serve an agent over WebSocket and HTTP',
    load: async () => (await import('./serve/serve.ts')).serveCommand
  },
  {
    name: 'mcp',
    summary: 'serve an agent to a host that speaks the Model Context Protocol, over stdin and stdout',
    load: async () => (await import('./mcp.ts')).mcpCommand
  },
  {
    name: 'cluster',
    summary: 'serve an agent by several nodes on this machine, or show the nodes of a database',
    load: async () => (await import('./cluster/cluster.ts')).clusterCommand
  },
  {
    name: 'chat',
    summary: 'talk with an agent: answer its questions and offers, save its artifacts',
    load: async () => (await import('./talk/chat.ts')).chatCommand
  },
  {
    name: 'send',
    summary: 'send a message to an agent, watch its task, save its artifacts',
    load: async () => (await import('./talk/send.ts')).sendCommand
  },
  {
    name: 'watch',
    summary: 'watch a task until it ends, save its artifacts',
    load: async () => (await import('./talk/watch.ts')).watchCommand
  },
  {
    name: 'card',
    summary: "show an agent's card: its name, URLs and skills; sign or verify a card",
    load: async () => (await import('./card.ts')).cardCommand,
    loadsAgent: true
  },
  {
    name: 'tasks',
    alias: 'task',
    summary: 'list, show, export and cancel the tasks of a file or an agent',
    load: async () => (await import('./tasks/tasks.ts')).tasksCommand,
    loadsAgent: true
  },
  {
    name: 'db',
    summary: 'back up, copy, shrink, migrate, check or count what serve --db stores',
    load: async () => (await import('./db.ts')).dbCommand
  },
  {
    name: 'diff',
    summary: 'say what a change of an agent means for the tasks that are open',
    load: async () => (await import('./diff/diff.ts')).diffCommand,
    loadsAgent: true,
    computes: true
  },
  {
    name: 'paths',
    summary: "show every path through an agent's chart",
    load: async () => (await import('./test/paths.ts')).pathsCommand,
    loadsAgent: true,
    computes: true
  },
  {
    name: 'test',
    summary: "test every path through an agent's chart, or any A2A server",
    load: async () => (await import('./test/test.ts')).testCommand,
    loadsAgent: true,
    computes: true
  },
  {
    name: 'coverage',
    summary: 'show which transitions of the chart the tasks of a store took',
    load: async () => (await import('./test/coverage.ts')).coverageCommand,
    loadsAgent: true,
    computes: true
  },
  {
    name: 'prove',
    summary: 'prove the properties of an agent, or show the shortest counterexample',
    load: async () => (await import('./test/prove.ts')).proveCommand,
    loadsAgent: true,
    computes: true
  },
  {
    name: 'graph',
    summary: 'draw the charts of an agent',
    load: async () => (await import('./graph.ts')).graphCommand,
    loadsAgent: true
  },
  {
    name: 'open',
    summary: 'open the page of an agent in the browser',
    load: async () => (await import('./open.ts')).openCommand
  },
  {
    name: 'doctor',
    summary: 'say what is wrong on this machine or with an agent, and what mends it',
    load: async () => (await import('./doctor/doctor.ts')).doctorCommand
  },
  {
    name: 'completion',
    summary: 'write the script with which your shell completes this command',
    load: async () => (await import('./completion.ts')).completionCommand(loadAll)
  }
]

/** Loads a command. */
export async function loadCommand({ name, summary, load }: CommandEntry): Promise<NamedCommand> {
  return { name, summary, ...(await load()) }
}

/** Loads all commands. */
export function loadAll(): Promise<NamedCommand[]> {
  return Promise.all(COMMANDS.map(loadCommand))
}
