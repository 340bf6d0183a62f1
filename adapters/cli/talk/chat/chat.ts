import { readArguments } from '../../arguments.ts'
import { EXIT_CODES, type Command, type Io } from '../../command.ts'
import { ACCESS_HELP, ACCESS_OPTIONS, ENVIRONMENT_HELP, readAccess, withAgent } from '../agent-connection.ts'
import { ChatLoop, WORDS } from './chat-loop.ts'
import { ContextMemory, contextFolder } from './last-context.ts'

/** `taskchart chat`: a chat with an agent at the terminal. */
export const chatCommand: Command = {
  usage:
    'taskchart chat URL [--new] [--out DIR] [--api-key KEY] [--header NAME:VALUE]… [--credential-origin ORIGIN]… [--binding NAME]',
  details: `URL is the agent's ws: URL, or the http: URL of its card. Each line is a message. A question that comes with a schema is asked field
by field. The last context of each URL is remembered, so the next chat continues it: a task that still runs is shown again, and
a question is asked again. Ctrl-C leaves a running task alone. Ctrl-D, the end of the input, ends the chat.

${Object.entries(WORDS)
  .map(([word, text]) => `  ${word.padEnd(14)}  ${text}`)
  .join('\n')}

  --new           begin a new context
  --out DIR       save artifacts in this folder; existing files are never overwritten
${ACCESS_HELP}  --binding NAME  use WEBSOCKET, JSONRPC, HTTP+JSON or GRPC instead of the card's preference

${ENVIRONMENT_HELP}
Contexts are remembered in taskchart/chats below $XDG_STATE_HOME, by default ~/.local/state. Only you can read these files. They have
the ids of contexts and tasks, and no URL, text or key. To send lines from a program, write them to stdin.

${EXIT_CODES}`,
  run
}

const OPTIONS = {
  new: { type: 'boolean', default: false },
  out: { type: 'string' },
  ...ACCESS_OPTIONS,
  binding: { type: 'string' }
} as const

async function run(args: readonly string[], io: Io): Promise<number> {
  const {
    values,
    positionals: [url]
  } = readArguments(args, OPTIONS, ['URL'])
  const { new: isNew, out, binding } = values
  const place = { url, out, access: readAccess(values, io.env), binding }
  const memory = new ContextMemory(contextFolder(io.env), url)
  const last = isNew ? undefined : await memory.read()
  return withAgent(place, io, client => new ChatLoop(client, place, memory, io).run(last))
}
