import { createHash } from 'node:crypto'
import { isA2AError } from '../../../machines/protocol/errors.ts'
import type { Artifact, Message, Part, StreamResponse } from '../../../machines/protocol/objects.ts'
import { isInterrupted, isTerminal } from '../../../machines/protocol/states.ts'
import type { AgentClient } from '../../client/agent-client.ts'
import { negotiate, type Offer, offerIn } from '../../client/connect.ts'
import { answerSchemaOf, nameQuestion } from '../../client/messages.ts'
import { readArguments } from '../arguments.ts'
import { type Command, EXIT, EXIT_CODES, type Io } from '../command.ts'
import { failureOf } from '../failures.ts'
import { chatLine, didYouMean } from '../text/format.ts'
import { oneLine, styleText, USUAL_COLUMNS } from '../text/terminal.ts'
import {
  aboutKey,
  ACCESS_HELP,
  ACCESS_OPTIONS,
  type AgentPlace,
  ENVIRONMENT_HELP,
  readAccess,
  withAgent
} from './agent-connection.ts'
import { exitStatus, isActive, nothingYet, commandPartsOf, showTurn } from './follow.ts'
import { askAnswer, askTerms } from './form.ts'
import { contextFolder, ContextMemory, type LastContext } from './last-context.ts'
import type { StreamedEvents } from './results.ts'
import { watchEvents } from './watch.ts'

/** The words that are no messages, and their help. */
export const WORDS = {
  '/accept': 'accept the offer',
  '/counter': 'propose other terms, field by field',
  '/decline': 'decline the offer',
  '/cancel': 'cancel the task that waits',
  '/new': 'begin a new context',
  '/help': 'list these words',
  '/quit': 'end the chat; the same as Ctrl-D'
} as const

type Word = keyof typeof WORDS

/** Thrown instead of a line that is one of the words. */
class WordGiven extends Error {
  readonly word: string

  constructor(word: string) {
    super(word)
    this.word = word
  }
}

/** The agent of a chat, and what the chat does with its results. */
interface ChatPlace extends AgentPlace {
  readonly out: string | undefined
  /** Whether the exit code is that of the last task's state. */
  readonly hasExitStatus?: boolean
}

/** A chat with an agent: reads lines, sends them, and shows what comes back. */
export class ChatLoop {
  readonly #client: AgentClient
  readonly #place: ChatPlace
  readonly #memory: ContextMemory
  readonly #io: Io
  #contextId: string | undefined
  /** The newest task, the question of its status, and the last answer. */
  #watched: StreamedEvents = nothingYet()
  #offer: Offer | undefined
  /** Digests of the artifacts that were shown. */
  readonly #shown = new Set<string>()
  #code: number = EXIT.ok

  constructor(client: AgentClient, place: ChatPlace, memory: ContextMemory, io: Io) {
    this.#client = client
    this.#place = place
    this.#memory = memory
    this.#io = io
  }

  /**
   * Continues the last context, if there is one, and talks until the input ends. Resolves with the exit code of the
   * last turn.
   */
  async run(last: LastContext | undefined): Promise<number> {
    if (this.#io.input.isTerminal) this.#print('Each line is a message. /help lists other words. Ctrl-D ends the chat.')
    try {
      if (last) await this.#resume(last)
      while (await this.#step()) continue
      return this.#code
    } finally {
      this.#leave()
    }
  }

  /** Reads one message or word, and acts on it. Resolves with false at the end. */
  async #step(): Promise<boolean> {
    try {
      await this.#say(await this.#read())
      return true
    } catch (error) {
      return this.#caught(error)
    }
  }

  /** Runs a word, or reports an error. Resolves with false at the end. */
  async #caught(error: unknown): Promise<boolean> {
    this.#io.signal.throwIfAborted()
    if (error instanceof WordGiven) return this.#obey(error.word)
    this.#report(error)
    return true
  }

  /** The next message: the answer to a question, or a line of text. */
  async #read(): Promise<Part> {
    const schema = this.#hasOpenQuestion() ? answerSchemaOf(this.#watched.question) : undefined
    if (schema) return askAnswer(schema, this.#formUser())
    for (;;) {
      const text = await this.#ask('> ')
      if (text.trim() !== '') return { text }
    }
  }

  async #obey(word: string): Promise<boolean> {
    if (word === '/quit') return false
    const acts: Readonly<Record<Exclude<Word, '/quit'>, () => Promise<void>>> = {
      '/accept': () => this.#accept(),
      '/counter': () => this.#counter(),
      '/decline': () => this.#decline(),
      '/cancel': () => this.#cancel(),
      '/new': () => this.#begin(),
      '/help': () => this.#help()
    }
    if (Object.hasOwn(acts, word))
      return acts[word as keyof typeof acts]().then(
        () => true,
        error => this.#caught(error)
      )
    this.#print(
      `There is no ${oneLine(word)}. ${didYouMean(word, Object.keys(WORDS))} A message that begins with / has to begin with //.`
    )
    return true
  }

  async #accept(): Promise<void> {
    if (this.#hasOffer(this.#offer)) await this.#say(negotiate({ accept: this.#offer }))
  }

  async #decline(): Promise<void> {
    if (this.#hasOffer(this.#offer)) await this.#say(negotiate({ decline: this.#offer }))
  }

  async #counter(): Promise<void> {
    if (this.#hasOffer(this.#offer))
      await this.#say(negotiate({ propose: await askTerms(this.#offer.terms, this.#formUser()) }))
  }

  #hasOffer(offer: Offer | undefined): offer is Offer {
    if (!offer) this.#print('The agent has made no offer.')
    return offer !== undefined
  }

  async #cancel(): Promise<void> {
    const { task } = this.#watched
    if (!task || isTerminal(task.state)) return this.#print('There is no task to cancel.')
    await this.#turn(() => this.#once(this.#client.cancelTask({ id: task.id }, { signal: this.#io.signal })))
  }

  async #begin(): Promise<void> {
    this.#contextId = undefined
    this.#watched = nothingYet()
    this.#offer = undefined
    this.#print('The next message begins a new context.')
  }

  async #help(): Promise<void> {
    for (const [word, text] of Object.entries(WORDS)) this.#print(`${word.padEnd(10)}${text}`)
  }

  /** Shows where the last chat stopped. A task that is gone is forgotten. */
  async #resume({ contextId, taskId }: LastContext): Promise<void> {
    this.#contextId = contextId
    this.#print('The last context goes on. /new begins another.')
    if (taskId === undefined) return
    try {
      const task = await this.#client.getTask({ id: taskId, historyLength: 0 }, { signal: this.#io.signal })
      await this.#turn(
        isActive(task.status.state)
          ? client => watchEvents(taskId, client, this.#io)
          : () => this.#once(Promise.resolve(task))
      )
    } catch (error) {
      this.#io.signal.throwIfAborted()
      if (!isA2AError(error) || error.code !== 'TaskNotFound') this.#report(error)
    }
  }

  async *#once(task: ReturnType<AgentClient['getTask']>): AsyncGenerator<StreamResponse, void, undefined> {
    yield { task: await task }
  }

  async #say(part: Part): Promise<void> {
    const { task, question } = this.#watched
    const message: Message = {
      messageId: crypto.randomUUID(),
      role: 'ROLE_USER',
      parts: [part],
      ...(this.#contextId !== undefined && { contextId: this.#contextId }),
      ...(task && (isTerminal(task.state) ? { referenceTaskIds: [task.id] } : { taskId: task.id }))
    }
    const named = task && isInterrupted(task.state) ? nameQuestion(message, question) : message
    await this.#turn(client => client.sendStreamingMessage({ message: named }, { signal: this.#io.signal }))
  }

  /** Shows one stream. Its events about the task count even if it breaks off. */
  async #turn(stream: (client: AgentClient) => AsyncIterable<StreamResponse>): Promise<void> {
    const watched = nothingYet()
    const noted = async () => {
      if (watched.task) this.#watched = watched
      this.#contextId = watched.contextId ?? this.#contextId
      await this.#remember()
    }
    const isResult = (artifact: Artifact, taskId: string) => this.#isNew(artifact, taskId)
    const waitHint = () => ['The task goes on when you have authorized it.']
    const { out } = this.#place
    await showTurn(
      this.#client,
      watched,
      {
        out,
        form: 'text',
        asksBySchema: true,
        stream,
        goesOnIn: state => state === 'TASK_STATE_AUTH_REQUIRED',
        waitHint,
        noted,
        isResult
      },
      this.#io
    )
    this.#code = this.#place.hasExitStatus ? exitStatus(watched.task?.state) : EXIT.ok
    this.#offer = watched.task ? undefined : ((watched.message && offerIn(watched.message)) ?? this.#offer)
    if (watched.message && offerIn(watched.message))
      this.#print('/accept, /counter or /decline it, or write a message.')
  }

  async #remember(): Promise<void> {
    const { task } = this.#watched
    if (this.#contextId === undefined) return
    await this.#memory
      .write({ contextId: this.#contextId, taskId: task && !isTerminal(task.state) ? task.id : undefined })
      .catch((error: Error) => {
        this.#print(`This chat will not be remembered: ${oneLine(error.message)}`)
      })
  }

  /** Whether an artifact was not shown before: a task with another question still has its earlier ones. */
  #isNew(artifact: Artifact, taskId: string): boolean {
    const digest = createHash('sha256')
      .update(JSON.stringify([taskId, artifact]))
      .digest('base64')
    const isNew = !this.#shown.has(digest)
    this.#shown.add(digest)
    return isNew
  }

  #hasOpenQuestion(): boolean {
    return this.#watched.task?.state === 'TASK_STATE_INPUT_REQUIRED'
  }

  #formUser() {
    return {
      ask: (prompt: string) => this.#ask(prompt),
      print: (line: string) => this.#print(line),
      columns: this.#io.terminal?.columns ?? USUAL_COLUMNS
    }
  }

  /** The next line. Throws WordGiven for a word, which the end of the input is too. */
  async #ask(prompt: string): Promise<string> {
    const { input, signal, colours } = this.#io
    const line = await input.ask(styleText(colours.stderr, 'bold', prompt), signal)
    signal.throwIfAborted()
    if (line === undefined) throw new WordGiven('/quit')
    if (/^\/(?!\/)/.test(line)) throw new WordGiven(line.trim())
    return line.replace(/^\/\//, '/')
  }

  /** Reports an error, after which the chat continues. */
  #report(error: unknown): void {
    const shown = aboutKey(error, this.#place) as Error
    this.#code = failureOf(shown).exitCode
    this.#print(`${styleText(this.#io.colours.stderr, 'red', 'taskchart:')} ${oneLine(shown.message)}`)
  }

  /** Prints the state of the chat, and the command that continues it. */
  #leave(): void {
    const { task } = this.#watched
    if (this.#contextId === undefined) return
    const standing =
      !task || isTerminal(task.state)
        ? 'Continue'
        : isActive(task.state)
          ? `Task ${oneLine(task.id)} goes on without you. Come back`
          : `Task ${oneLine(task.id)} waits for an answer. Give it`
    for (const line of ['', `${standing} with:`, `  ${chatLine(commandPartsOf(this.#place))}`]) this.#print(line)
  }

  #print(line: string): void {
    this.#io.stderr.write(`${line}\n`)
  }
}

/** `taskchart chat`: a chat with an agent at the terminal. */
export const chatCommand: Command = {
  usage: [
    'taskchart chat URL [--new] [--out DIR] [--api-key KEY] [--header NAME:VALUE]… [--credential-origin ORIGIN]… [--binding NAME] [--exit-status]'
  ],
  details: `URL is the agent's ws: URL, or the http: URL of its card. Each line is a message. A question that comes with a schema is asked field
by field. The last context of each URL is remembered, so the next chat continues it: a task that still runs is shown again, and
a question is asked again. Ctrl-C leaves a running task alone. Ctrl-D, the end of the input, ends the chat.

${Object.entries(WORDS)
  .map(([word, text]) => `  ${word.padEnd(14)}  ${text}`)
  .join('\n')}

  --new           begin a new context
  --out DIR       save artifacts in this folder; existing files are never overwritten
${ACCESS_HELP}  --binding NAME  use WEBSOCKET, JSONRPC, HTTP+JSON or GRPC instead of the card's preference
  --exit-status   exit with 10 if the last task failed, or was rejected or canceled, and with 11 if it waits

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
  binding: { type: 'string', multiple: true },
  'exit-status': { type: 'boolean', default: false }
} as const

async function run(args: readonly string[], io: Io): Promise<number> {
  const {
    values,
    positionals: [url]
  } = readArguments(args, OPTIONS, ['URL'])
  const { new: isNew, out, binding, 'exit-status': hasExitStatus } = values
  const place = { url, out, access: readAccess(values, io.env), bindings: binding, hasExitStatus }
  const memory = new ContextMemory(contextFolder(io.env), url)
  const last = isNew ? undefined : await memory.read()
  return withAgent(place, io, client => new ChatLoop(client, place, memory, io).run(last))
}
