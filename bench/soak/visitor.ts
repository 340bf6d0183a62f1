import type { AgentClient } from '../../adapters/client/agent-client.ts'
import { negotiate, connect, offerIn, type StreamResponse, type Task } from '../../adapters/client/connect.ts'
import { isTerminal } from '../../machines/protocol/states.ts'
import { RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import { KEYS } from './agent.ts'
import type { Receiver } from './receiver.ts'

/** One thing that a visitor did: what, when by `performance.now()`, and how long it took. */
export interface Visit {
  readonly what: string
  readonly atMs: number
  readonly tookMs: number
}

/** An ended task as its visitor last saw it. */
export interface Seen {
  readonly taskId: string
  readonly state: string
  readonly generation: number
  readonly atMs: number
}

/** Where a visitor notes what it found. */
export interface Notes {
  readonly visits: Visit[]
  readonly failures: string[]
}

/** How many ended tasks a visitor remembers, to look for them again. */
const REMEMBERED = 200

/** The bindings in turns: visitors of both connect again by themselves, and resend what was not answered. */
const BINDINGS = ['WEBSOCKET', 'JSONRPC'] as const

/** A caller that does one thing after the other, whatever happens to the server, and checks all that it is told. */
export class Visitor {
  readonly #client: AgentClient
  readonly #name: string
  readonly #receiver: Receiver
  readonly #notes: Notes
  readonly seen: Seen[] = []
  #messages = 0

  private constructor(client: AgentClient, name: string, receiver: Receiver, notes: Notes) {
    this.#client = client
    this.#name = name
    this.#receiver = receiver
    this.#notes = notes
  }

  static async connect(url: string, number: number, receiver: Receiver, notes: Notes): Promise<Visitor> {
    const client = await connect(url, {
      headers: { 'x-api-key': number % 4 < 2 ? KEYS.anna : KEYS.ben },
      bindings: [BINDINGS[number % 2] as string],
      random: () => 0.1
    })
    // A client waits for a server that is gone once it was there.
    await client.listTasks({ pageSize: 1 })
    return new Visitor(client, `visitor ${number}`, receiver, notes)
  }

  /** Does the things in turns, with a pause after each, until the signal aborts. */
  async visit(pauseMs: number, over: AbortSignal): Promise<void> {
    const things: Readonly<Record<string, () => Promise<void>>> = {
      SendMessage: () => this.#send(),
      story: () => this.#story(),
      cancel: () => this.#cancel(),
      bargain: () => this.#bargain(),
      webhook: () => this.#hook(),
      ListTasks: () => this.#list()
    }
    for (;;) {
      for (const [what, run] of Object.entries(things)) {
        if (over.aborted) return
        const atMs = performance.now()
        await run().catch((error: unknown) => this.#fail(`${what} failed: ${String(error)}`))
        this.#notes.visits.push({ what, atMs, tookMs: performance.now() - atMs })
        await new Promise(resolve => setTimeout(resolve, pauseMs))
      }
    }
  }

  /** Checks that tasks are as they were when they ended: those that ended at most so long ago. */
  async lookBack(forMs: number, most = REMEMBERED): Promise<void> {
    for (const { taskId, state, generation, atMs } of this.seen.slice(-most)) {
      if (performance.now() - atMs > forMs) continue
      const now = await this.#client.getTask({ id: taskId }).catch(String)
      if (typeof now === 'string') this.#fail(`the task ${taskId} is lost: ${now}`)
      else if (now.status.state !== state || generationOf(now) !== generation)
        this.#fail(
          `the task ${taskId} had ended as ${state} at ${generation}, and is ${now.status.state} at ${generationOf(now)}`
        )
    }
  }

  close(): Promise<void> {
    return this.#client.close()
  }

  async #send(): Promise<void> {
    const answer = await this.#client.sendMessage(this.#message('hello'))
    this.#ended('task' in answer ? answer.task : undefined, 'TASK_STATE_COMPLETED')
  }

  async #story(): Promise<void> {
    let [taskId, generation] = ['', 0]
    const follow = async (stream: AsyncIterable<StreamResponse>) => {
      for await (const event of stream) {
        const told = generationOf(Object.values(event)[0] as Task)
        if ('task' in event) {
          taskId = event.task.id
          if (told < generation) this.#fail(`a stream of ${taskId} began again at ${told} after ${generation}`)
        } else if (told !== generation + 1) this.#fail(`a stream of ${taskId} went on at ${told} after ${generation}`)
        generation = told
      }
    }
    await follow(this.#client.sendStreamingMessage(this.#message('story')))
    await follow(this.#client.sendStreamingMessage(this.#message('red', { taskId })))
    const task = await this.#client.getTask({ id: taskId })
    if (generationOf(task) !== generation)
      this.#fail(`the stream of ${taskId} ended at ${generation}, and the task at ${generationOf(task)}`)
    const [story, end] = (task.artifacts ?? []).map(({ parts }) => parts.map(part => ('text' in part ? part.text : '')))
    const drawn = story?.[0]?.split(' ').at(-1) ?? ''
    const wanted = JSON.stringify([
      Array.from({ length: 8 }, (_, page) => `page ${page} of ${drawn}`),
      [`red, ${drawn}`]
    ])
    if (JSON.stringify([story, end]) !== wanted) this.#fail(`the story ${taskId} is ${JSON.stringify([story, end])}`)
    this.#ended(task, 'TASK_STATE_COMPLETED')
  }

  async #cancel(): Promise<void> {
    const answer = await this.#client.sendMessage(this.#message('wait'))
    const id = 'task' in answer ? answer.task.id : ''
    this.#ended(await this.#client.cancelTask({ id }), 'TASK_STATE_CANCELED')
  }

  async #bargain(): Promise<void> {
    const asked = await this.#client.sendMessage(this.#message(negotiate({ propose: { euros: 20 } })))
    const found = 'message' in asked ? offerIn(asked.message) : undefined
    if (!found || !('message' in asked)) return this.#fail(`20 euros were answered with ${JSON.stringify(asked)}`)
    const answer = await this.#client.sendMessage(
      this.#message(negotiate({ accept: found }), { contextId: asked.message.contextId ?? '' })
    )
    const task = 'task' in answer ? answer.task : undefined
    if (!JSON.stringify(task?.artifacts).includes('for 45'))
      this.#fail(`the accepted offer was answered with ${JSON.stringify(answer)}`)
    this.#ended(task, 'TASK_STATE_COMPLETED')
  }

  async #hook(): Promise<void> {
    const answer = await this.#client.sendMessage({
      ...this.#message('hello'),
      configuration: { taskPushNotificationConfig: { id: 'hook', url: this.#receiver.url } }
    })
    const task = 'task' in answer ? answer.task : undefined
    this.#ended(task, 'TASK_STATE_COMPLETED')
    if (!task) return
    const generations = await this.#receiver.generationsOf(task.id)
    // The message that opened the task has the first.
    if (generations.some((generation, i) => generation !== i + 2) || generations.length + 1 !== generationOf(task))
      this.#fail(`the webhook of ${task.id} got ${generations.join(', ')}`)
  }

  async #list(): Promise<void> {
    const { tasks, totalSize } = await this.#client.listTasks({ pageSize: 10 })
    if (tasks.length !== Math.min(10, totalSize)) this.#fail(`a page of 10 has ${tasks.length} tasks of ${totalSize}`)
  }

  #message(said: string | ReturnType<typeof negotiate>, address: { taskId?: string; contextId?: string } = {}) {
    this.#messages += 1
    const part = typeof said === 'string' ? { text: said } : said
    return {
      message: { messageId: `${this.#name}, ${this.#messages}`, role: 'ROLE_USER' as const, parts: [part], ...address }
    }
  }

  #ended(task: Task | undefined, state: string): void {
    if (!task || !isTerminal(task.status.state) || task.status.state !== state)
      return this.#fail(`a task that had to end as ${state} is ${JSON.stringify(task?.status)}`)
    this.seen.push({ taskId: task.id, state, generation: generationOf(task), atMs: performance.now() })
    if (this.seen.length > REMEMBERED) this.seen.shift()
  }

  #fail(failure: string): void {
    this.#notes.failures.push(`${this.#name} by ${this.#client.binding}: ${failure}`)
  }
}

function generationOf({ metadata }: { readonly metadata?: Record<string, unknown> | undefined }): number {
  return (metadata?.[RELIABILITY_EXTENSION] as { generation: number } | undefined)?.generation ?? NaN
}
