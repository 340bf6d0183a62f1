import { isA2AError } from '../../../machines/protocol/errors.ts'
import type {
  Artifact,
  SendMessageResponse,
  StreamResponse,
  TaskArtifactUpdateEvent,
  TaskStatus
} from '../../../machines/protocol/objects.ts'
import { isInterrupted, isPause, isTerminal, type TaskState } from '../../../machines/protocol/states.ts'
import type { AgentClient } from '../../client/agent-client.ts'
import { OUTPUT_OPTIONS, type OutputForm } from '../arguments.ts'
import { CommandError, EXIT, type Io } from '../command.ts'
import { paintState, type PasteLine, formatSendCommand, watchLine } from '../text/format.ts'
import { LiveLine, plainReporter, type Reporter } from '../text/live-line.ts'
import { jsonLine, oneLine, formatBytes, thrownText, USUAL_COLUMNS } from '../text/terminal.ts'
import {
  aboutKey,
  type CallerAccess,
  CALL_HELP,
  CALL_OPTIONS,
  POLL_OPTION,
  type AgentPlace,
  ENVIRONMENT_HELP,
  withAgent
} from './agent-connection.ts'
import { artifactParts, sizeOfParts, messageParts } from './artifacts.ts'
import {
  liveText,
  messageText,
  progressLines,
  showResults,
  type StreamedEvents,
  type ArtifactProgress
} from './results.ts'

/** The options of commands that follow a stream. */
export const FOLLOW_OPTIONS = {
  out: { type: 'string' },
  ...CALL_OPTIONS,
  ...POLL_OPTION,
  ...OUTPUT_OPTIONS,
  'exit-status': { type: 'boolean' }
} as const

/** Their help text. */
export const FOLLOW_HELP = `  --out DIR       save artifacts in this folder; existing files are never overwritten
${CALL_HELP}  --poll-interval TIME
                  how often a task is read if the agent does not stream. Default: 2s, or 1s to 15s for a message
  --exit-status   exit with 10 if the task failed, or was rejected or canceled, and with 11 if it waits
  --output FORM, -o FORM
                  text (the default), or json: one document, whatever happens, and nothing else on stdout
  --stream        with -o json: one line for each event of the stream
  --json          short for -o json --stream

${ENVIRONMENT_HELP}`

/** A stream to follow, and what to do with its results. */
interface Followed extends AgentPlace {
  readonly out: string | undefined
  readonly form: OutputForm
  readonly stream: (client: AgentClient) => AsyncIterable<StreamResponse>
  /** Whether the stream remains open in this state although the task waits for its client. */
  readonly goesOnIn: (state: TaskState) => boolean
  /** Whether the stream is left in this state, which it would remain open in. Default: in none. */
  readonly stopsIn?: (state: TaskState) => boolean
  /** Whether the stream may end while the task works. */
  readonly isAsync?: boolean
  /** Whether the exit code is that of the task's state. */
  readonly hasExitStatus: boolean
  /** The document of `-o json`, from the task as it is stored. Default: the result. */
  readonly documentOf?: (result: SendMessageResponse) => object
}

/**
 * Connects to an agent, prints the events of a stream until it ends, saves or prints the results, and prints the
 * command that continues. A stream that breaks off prints the command that watches its task. Resolves with the exit
 * code.
 */
export async function followTask(followed: Followed, io: Io): Promise<number> {
  return withAgent(followed, io, client => followWith(client, followed, io))
}

async function followWith(client: AgentClient, followed: Followed, io: Io): Promise<number> {
  const watched = nothingYet()
  const print = (lines: readonly string[]) => printAll(plainReporter(io.stderr), lines)
  try {
    await showTurn(client, watched, { ...followed, waitHint: () => answerHint(watched, followed) }, io)
  } catch (error) {
    const isGone = isA2AError(error) && error.code === 'TaskNotFound'
    const lines = isGone ? [] : watchHint(watched, followed)
    print(lines)
    const shown = aboutKey(error, followed)
    throw lines.length === 0 ? shown : new CommandError(thrownText(shown), { hint: lines.at(-1)?.trim(), cause: shown })
  }
  const { task } = watched
  print(task && isActive(task.state) ? watchHint(watched, followed) : continueHint(watched, followed))
  return followed.hasExitStatus ? exitStatus(task?.state) : EXIT.ok
}

/** One stream of a connection, and what is done with its events and results. */
interface Turn extends Pick<Followed, 'out' | 'form' | 'stream' | 'goesOnIn' | 'stopsIn' | 'isAsync' | 'documentOf'> {
  /** The lines about a task that waits while its stream is open. */
  readonly waitHint: () => readonly string[]
  /** Whether the schema of a question is not shown, because a form uses it. */
  readonly asksBySchema?: boolean
  /** Called after each event. */
  readonly noted?: () => Promise<void>
  /** Whether an artifact of the ended stream is a result. Default: each is. */
  readonly isResult?: (artifact: Artifact, taskId: string) => boolean
}

/**
 * Prints the events of a stream until it ends, and saves or prints the results. Records them in `watched`, also before
 * it rejects.
 */
export async function showTurn(client: AgentClient, watched: StreamedEvents, turn: Turn, io: Io): Promise<void> {
  const reporter = reporterFor(watched, turn, io)
  const stopPrinting = printConnection(client, watched, reporter)
  try {
    await showStream(turn.stream(client), watched, turn, reporter, io)
  } finally {
    stopPrinting()
    reporter.end()
  }
  await handOver(client, watched, turn, io)
}

async function showStream(
  stream: AsyncIterable<StreamResponse>,
  watched: StreamedEvents,
  turn: Turn,
  reporter: Reporter,
  { stdout, terminal, colours }: Io
): Promise<void> {
  for await (const event of stream) {
    const before = watched.task?.state
    note(watched, event)
    await turn.noted?.()
    const state = watched.task?.state
    if (turn.form === 'lines') stdout.write(jsonLine(event))
    const isProgress = 'statusUpdate' in event && state !== undefined && state === before && isActive(state)
    for (const line of progressLines(event, turn.asksBySchema ? 0 : (terminal?.columns ?? USUAL_COLUMNS)))
      reporter[isProgress ? 'mention' : 'print'](paintState(colours.stderr && turn.form === 'text', line))
    if (state && turn.stopsIn?.(state)) return
    if (state && state !== before && turn.goesOnIn(state)) printAll(reporter, turn.waitHint())
  }
}

/** Prints when the connection is lost and restored. Returns the function that stops it. */
function printConnection(client: AgentClient, watched: StreamedEvents, reporter: Reporter): () => void {
  const lost = client.on('lost', () => {
    watched.isLost = true
    reporter.print('The connection is lost. Reconnecting.')
  })
  const open = client.on('open', () => {
    watched.isLost = false
    reporter.print('The connection is restored.')
  })
  return () => {
    lost()
    open()
  }
}

function printAll(reporter: Reporter, lines: readonly string[]): void {
  for (const line of lines) reporter.print(line)
}

/** Beside JSON every progress line is plain, for programs. */
function reporterFor(watched: StreamedEvents, { form }: Turn, { stderr: output, terminal, clock }: Io): Reporter {
  if (!terminal || form !== 'text') return plainReporter(output)
  return new LiveLine({ output, terminal, clock, text: elapsedMs => liveText(watched, elapsedMs) })
}

/** Prints or saves the answer, or the task's complete artifacts. */
async function handOver(
  client: AgentClient,
  { task, message, artifacts: known }: StreamedEvents,
  { out, form, isAsync, documentOf = result => result, isResult = () => true }: Turn,
  io: Io
): Promise<void> {
  const json = form !== 'text'
  const write = (result: SendMessageResponse) => {
    if (form === 'json') io.stdout.write(jsonLine(documentOf(result)))
  }
  if (message) {
    await showResults(messageParts(message), { out, json, savesText: false }, io)
    return write({ message })
  }
  if (!task || (isActive(task.state) && !isAsync))
    throw new CommandError('The agent ended the stream without a result.')
  if (form === 'lines' && out === undefined) return
  if (form === 'text' && isActive(task.state)) return
  const stored = await client.getTask(
    { id: task.id, ...(form !== 'json' && { historyLength: 0 }) },
    { signal: io.signal }
  )
  const { artifacts = [] } = stored
  const parts = artifacts
    .filter(artifact => isResult(artifact, task.id))
    .flatMap(artifact => artifactParts(artifact, known.get(artifact.artifactId)?.chunks !== 1))
  await showResults(parts, { out, json, savesText: true }, io)
  write({ task: stored })
}

/** Whether work continues: the task neither has ended nor waits. */
export function isActive(state: TaskState): boolean {
  return !isPause(state)
}

/** The exit code of `--exit-status` for a task in this state; without a task, the agent has answered. */
export function exitStatus(state: TaskState | undefined): number {
  if (state === undefined || state === 'TASK_STATE_COMPLETED') return EXIT.ok
  if (isInterrupted(state)) return EXIT.waiting
  return isTerminal(state) ? EXIT.unsuccessful : EXIT.ok
}

export function nothingYet(): StreamedEvents {
  return { artifacts: new Map(), isLost: false }
}

/** Records an event of a stream. */
export function note(watched: StreamedEvents, event: StreamResponse): void {
  if ('message' in event) {
    watched.message = event.message
    watched.contextId = event.message.contextId
  } else if ('task' in event) {
    const { id, contextId, status, artifacts = [] } = event.task
    watched.contextId = contextId
    watched.artifacts = new Map(artifacts.map(artifact => [artifact.artifactId, whole(artifact)]))
    noteStatus(watched, id, status)
  } else if ('statusUpdate' in event) {
    noteStatus(watched, event.statusUpdate.taskId, event.statusUpdate.status)
  } else {
    noteChunk(watched, event.artifactUpdate)
  }
}

/** An artifact of the first snapshot. */
function whole({ artifactId, name = artifactId, parts }: Artifact): ArtifactProgress {
  return { name, chunks: parts.length, bytes: sizeOfParts(parts) }
}

function noteStatus(watched: StreamedEvents, id: string, { state, message }: TaskStatus): void {
  if (message || watched.task?.state !== state) watched.newest = message && oneLine(messageText(message))
  watched.question = message
  watched.task = { id, state }
}

function noteChunk(watched: StreamedEvents, { artifact, append }: TaskArtifactUpdateEvent): void {
  const { artifactId, name, parts } = artifact
  // `append` refers to an earlier chunk, even if this stream has not seen it.
  const before = append
    ? (watched.artifacts.get(artifactId) ?? { name: artifactId, chunks: 1, bytes: 0 })
    : { name: artifactId, chunks: 0, bytes: 0 }
  const now = { name: name ?? before.name, chunks: before.chunks + 1, bytes: before.bytes + sizeOfParts(parts) }
  watched.artifacts.set(artifactId, now)
  watched.newest = receivedText(now)
}

/** The name comes last, because it may be long and the line is cut at its end. */
function receivedText({ name, chunks, bytes }: ArtifactProgress): string {
  return `${chunks > 1 ? `${chunks} chunks, ` : ''}${formatBytes(bytes)} of ${oneLine(name)}`
}

/**
 * The target of the commands in hints: agent, binding, output folder, and what identifies the caller. Keys and values
 * of headers are never printed.
 */
interface HintTarget {
  readonly url: string
  readonly out: string | undefined
  readonly access: CallerAccess
  readonly bindings?: readonly string[] | undefined
  readonly version?: string | undefined
  readonly parameters?: Readonly<Record<string, string>> | undefined
}

/** Lines that show how to answer a task that waits for its client. */
function answerHint({ contextId, task }: StreamedEvents, target: HintTarget): string[] {
  return hint(
    'Answer with',
    formatSendCommand({ ...commandPartsOf(target), text: '…', context: contextId, task: task?.id })
  )
}

/**
 * Lines that show how to continue a context: an answer if its task waits for one, else a message that refers to the
 * task.
 */
function continueHint(watched: StreamedEvents, target: HintTarget): string[] {
  const { contextId, task } = watched
  if (contextId === undefined) return []
  if (task && isInterrupted(task.state)) return answerHint(watched, target)
  return hint(
    'Continue with',
    formatSendCommand({ ...commandPartsOf(target), text: '…', context: contextId, reference: task?.id })
  )
}

/** Lines that show how to watch the task again. Empty without a task. */
function watchHint({ task }: StreamedEvents, target: HintTarget): string[] {
  if (!task) return []
  return hint(
    `Task ${oneLine(task.id)} ${standing(task.state)}. Watch it with`,
    watchLine({ ...commandPartsOf(target), task: task.id })
  )
}

function standing(state: TaskState): string {
  if (isTerminal(state)) return 'has ended'
  return isInterrupted(state) ? 'waits for an answer' : 'goes on without you'
}

/** The parts of a command that calls the same agent. Credentials of the environment are there again. */
export function commandPartsOf({
  url,
  out,
  bindings,
  version,
  parameters = {},
  access: { headers = {}, credentials, credentialOrigins }
}: HintTarget): PasteLine {
  const isGiven = credentials !== undefined && !credentials.onlyIfAsked
  return {
    url,
    out,
    bindings,
    version,
    credentialOrigins,
    headers: Object.keys(headers),
    parameters: Object.keys(parameters),
    needsKey: isGiven && credentials.apiKey !== undefined,
    needsToken: isGiven && credentials.bearer !== undefined
  }
}

function hint(what: string, line: string): string[] {
  return ['', `${what}:`, `  ${line}`]
}
