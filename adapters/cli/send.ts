import { isA2AError } from '../../machines/protocol/errors.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import { isInterrupted, isTerminal, type TaskState } from '../../machines/protocol/states.ts'
import { connect, type AgentClient } from '../websocket/client.ts'
import { apiKeyHeaders, readApiKey } from './api-key.ts'
import { readArguments } from './arguments.ts'
import { artifactParts, messageParts } from './artifact-parts.ts'
import { CommandError, EXIT, EXIT_CODES, usageError, type Command, type Io } from './command.ts'
import { progressLine } from './progress.ts'
import { showResults } from './results.ts'
import { sendLine } from './send-line.ts'
import { jsonLine, oneLine } from './terminal-text.ts'
import { note, type Watched } from './watch-stream.ts'

/** `taskchart send`: says something to an agent, watches what it does, and hands over the results. */
export const sendCommand: Command = {
  name: 'send',
  summary: 'say something to an agent, watch its task, save its artifacts',
  usage: 'taskchart send URL "text" [--context ID] [--task ID] [--reference ID]… [--out DIR] [--api-key KEY] [--json]',
  details: `URL is the agent's ws: address, or the http: address of its card. Progress is written to stderr, results to
stdout, and at the end comes the line that continues the conversation.

  --context ID    say it in this conversation
  --task ID       answer this task, which waits for input
  --reference ID  a task that the message is about; may be given more than once
  --out DIR       save artifacts in this folder; files that are there are never overwritten
  --api-key KEY   show this key (Authorization: Bearer KEY)
  --json          write one line of JSON for each event of the stream, and nothing else, to stdout

${EXIT_CODES}`,
  run
}

const OPTIONS = {
  context: { type: 'string' },
  task: { type: 'string' },
  reference: { type: 'string', multiple: true },
  out: { type: 'string' },
  'api-key': { type: 'string' },
  json: { type: 'boolean' }
} as const

interface Sending {
  readonly url: string
  readonly message: Message
  readonly out: string | undefined
  readonly apiKey: string | undefined
  readonly json: boolean
}

async function run(args: readonly string[], io: Io): Promise<number> {
  const { values, positionals: [url, text] } = readArguments(args, OPTIONS, ['URL', '"text"'])
  const { context, task, reference, out, 'api-key': key, json = false } = values
  const message: Message = {
    messageId: crypto.randomUUID(),
    role: 'ROLE_USER',
    parts: [{ text }],
    ...(context !== undefined && { contextId: context }),
    ...(task !== undefined && { taskId: task }),
    ...(reference && { referenceTaskIds: reference })
  }
  const sending = { url, message, out, apiKey: readApiKey(key), json }
  const client = await connected(sending, io.signal)
  try {
    return await converse(client, sending, io)
  } finally {
    await client.close()
  }
}

async function connected({ url, apiKey }: Sending, signal: AbortSignal): Promise<AgentClient> {
  try {
    return await connect(url, { signal, ...(apiKey !== undefined && { headers: apiKeyHeaders(apiKey) }) })
  } catch (error) {
    if (error instanceof TypeError) throw usageError(error.message)
    if (!isA2AError(error) || error.code !== 'Unauthenticated') throw error
    const message = apiKey === undefined ? 'wants to know who you are. Give a key with --api-key KEY.' : 'does not know this key. Give another with --api-key KEY.'
    throw new CommandError(`The agent at ${url} ${message}`, { cause: error })
  }
}

/** Sends the message, shows what comes of it, and says how to go on, also when it is stopped half-way. */
async function converse(client: AgentClient, sending: Sending, io: Io): Promise<number> {
  const watched: Watched = { chunked: new Set() }
  client.on('lost', () => io.stderr.write('The connection is lost; trying again.\n'))
  try {
    for await (const event of client.sendStreamingMessage({ message: sending.message }, { signal: io.signal })) {
      note(watched, event)
      if (sending.json) io.stdout.write(jsonLine(event))
      const line = progressLine(event)
      if (line !== undefined) io.stderr.write(`${line}\n`)
    }
    await handOver(client, watched, sending, io)
  } finally {
    goOn(watched, sending, io)
  }
  return exitCode(watched.task?.state)
}

/** Shows the answer, or the task's artifacts as they are when all of their chunks are there. */
async function handOver(client: AgentClient, { task, message, chunked }: Watched, { out, json }: Sending, io: Io): Promise<void> {
  if (message) return showResults(messageParts(message), { out, json, savesText: false }, io)
  if (!task || isActive(task.state)) throw new CommandError('The agent ended the stream before there was a result.')
  if (json && out === undefined) return
  const { artifacts = [] } = await client.getTask({ id: task.id, historyLength: 0 }, { signal: io.signal })
  const parts = artifacts.flatMap(artifact => artifactParts(artifact, chunked.has(artifact.artifactId)))
  await showResults(parts, { out, json, savesText: true }, io)
}

/** Says how to continue the conversation: by an answer if the task waits for one, else by a message that refers to it. */
function goOn({ contextId, task }: Watched, { url, out, apiKey }: Sending, { stderr }: Io): void {
  if (contextId === undefined) return
  const waits = task !== undefined && isInterrupted(task.state)
  const about = task && (waits ? { task: task.id } : { reference: task.id })
  if (task && isActive(task.state)) stderr.write(`\nTask ${oneLine(task.id)} goes on without you.`)
  stderr.write(`\n${waits ? 'Answer' : 'Go on'} with:\n  ${sendLine({ url, text: '…', context: contextId, ...about, out, needsKey: apiKey !== undefined })}\n`)
}

function isActive(state: TaskState): boolean {
  return !isTerminal(state) && !isInterrupted(state)
}

function exitCode(state: TaskState | undefined): number {
  if (state === undefined || state === 'TASK_STATE_COMPLETED') return EXIT.ok
  return isInterrupted(state) ? EXIT.waiting : EXIT.unsuccessful
}
