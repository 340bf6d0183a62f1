import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { ReactNode } from 'react'
import type { Test } from 'tap'
import type { Interrupt } from '../../adapters/ag-ui/task-events.ts'
import type { Task } from '../../machines/protocol/objects.ts'
import { rendered, type React } from '../fixtures/pages/rendered.ts'
import { until } from '../fixtures/runtime/runtime-helpers.ts'

const FOLDER = join('test', 'ag-ui')

/** Why the tests that need these packages are left out; `false` if they are installed. */
export const NO_AG_UI_PACKAGES: string | false = existsSync(join(FOLDER, 'node_modules', '@copilotkit', 'runtime'))
  ? false
  : 'no packages: npm ci --prefix test/ag-ui --ignore-scripts'

/** A page of a front end with one thread. Each call resolves at the end of its run, with the error that it shows. */
export interface FrontEndPage {
  say(words: string): Promise<string | undefined>
  /** Answers the open question. */
  answer(payload: unknown): Promise<string | undefined>
  /** Refuses the open question. */
  refuse(): Promise<string | undefined>
  /** Begins a run without a message, as a page does that was loaded again. */
  rejoin(): Promise<string | undefined>
  /** Takes the thread from the memory of the front end's own server, if it has one. */
  replay?(): Promise<string | undefined>
  /** The user stops the run. */
  stop(): void
  /** The messages, as `user: words` or `assistant: words`. */
  readonly messages: readonly string[]
  readonly interrupts: readonly Interrupt[]
  readonly task: Task | undefined
}

/** Opens a page whose thread is at the URL of AG-UI. */
type OpenPage = (t: Test, url: string, threadId: string) => Promise<FrontEndPage>

interface Entry {
  readonly interruptId: string
  readonly status: 'resolved' | 'cancelled'
  readonly payload?: unknown
}

/** The client of AG-UI that both front ends have inside. */
interface Agent {
  threadId: string
  readonly messages: readonly { readonly role: string; readonly content?: unknown }[]
  readonly pendingInterrupts: readonly Interrupt[]
  readonly state: { readonly task?: Task }
  addMessage(message: object): void
  subscribe(subscriber: { onRunFinalized(): void }): { unsubscribe(): void }
}

/** What `useAgUiRuntime` gives. */
interface AssistantRuntime {
  readonly thread: {
    append(words: string): void
    startRun(parameters: { readonly parentId: null }): void
    cancelRun(): void
    getState(): {
      readonly isRunning: boolean
      readonly messages: readonly {
        readonly role: string
        readonly content: readonly { readonly text?: string }[]
        readonly status?: { readonly error?: unknown }
      }[]
    }
  }
}

/** The part of the packages that the pages use. They are no packages of the clone, so it has no types of them. */
export interface Packages extends React {
  readonly HttpAgent: new (config: { readonly url: string; readonly threadId?: string }) => Agent
  readonly AssistantRuntimeProvider: (props: { readonly runtime: AssistantRuntime }) => ReactNode
  readonly useAgUiRuntime: (options: { readonly agent: Agent; onError(error: Error): void }) => AssistantRuntime
  readonly useAgUiInterrupts: () => readonly Interrupt[]
  readonly useAgUiState: () => Agent['state'] | undefined
  readonly useAgUiSubmitInterruptResponses: () => (responses: readonly Entry[]) => Promise<void>
  readonly CopilotKitCore: new (config: object) => {
    subscribe(subscriber: { onError(event: { readonly error: Error }): void }): unknown
    runAgent(parameters: { readonly agent: Agent; readonly resume?: readonly Entry[] }): Promise<unknown>
    connectAgent(parameters: { readonly agent: Agent }): Promise<unknown>
    stopAgent(parameters: { readonly agent: Agent }): void
  }
  readonly ProxiedCopilotRuntimeAgent: new (config: object) => Agent
  readonly CopilotRuntime: new (options: object) => object
  readonly InMemoryAgentRunner: new () => { clearThreads(): void }
  readonly createCopilotNodeListener: (options: object) => (request: unknown, response: unknown) => void
}

let loaded: Promise<Packages> | undefined

/** The packages. Their reports to their makers are switched off. */
export function packages(): Promise<Packages> {
  Object.assign(process.env, { COPILOTKIT_TELEMETRY_DISABLED: 'true', DO_NOT_TRACK: '1' })
  loaded ??= import(pathToFileURL(join(FOLDER, 'packages.js')).href) as Promise<Packages>
  return loaded
}

/** A page of CopilotKit, with a server of its own, where `CopilotRuntime` has the agent as an `HttpAgent`. */
const openCopilot: OpenPage = async (t, url, threadId) => {
  const { CopilotKitCore, CopilotRuntime, createCopilotNodeListener, HttpAgent, ...from } = await packages()
  const runtime = new CopilotRuntime({
    agents: { barista: new HttpAgent({ url }) },
    runner: new from.InMemoryAgentRunner()
  })
  const server = createServer(createCopilotNodeListener({ runtime, basePath: '/copilot' }))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const runtimeUrl = `http://127.0.0.1:${port}/copilot`
  const agent = new from.ProxiedCopilotRuntimeAgent({ runtimeUrl, agentId: 'barista', threadId, transport: 'rest' })
  const core = new CopilotKitCore({ agents__unsafe_dev_only: { barista: agent } })
  let shown: string | undefined
  core.subscribe({ onError: ({ error }) => void (shown ??= error.message) })
  const errorOf = async (run: Promise<unknown>) => {
    shown = undefined
    await run
    return shown
  }
  const resume = (answer: Omit<Entry, 'interruptId'>) =>
    errorOf(core.runAgent({ agent, resume: entriesFor(agent.pendingInterrupts, answer) }))
  return {
    say: words => {
      agent.addMessage({ id: randomUUID(), role: 'user', content: words })
      return errorOf(core.runAgent({ agent }))
    },
    answer: payload => resume({ status: 'resolved', payload }),
    refuse: () => resume({ status: 'cancelled' }),
    rejoin: () => errorOf(core.runAgent({ agent })),
    replay: () => errorOf(core.connectAgent({ agent })),
    stop: () => core.stopAgent({ agent }),
    get messages() {
      return agent.messages.flatMap(({ role, content }) => (typeof content === 'string' ? [`${role}: ${content}`] : []))
    },
    get interrupts() {
      return agent.pendingInterrupts
    },
    get task() {
      return agent.state.task
    }
  }
}

/** A component with the runtime of assistant-ui, which calls the agent itself. */
const openAssistant: OpenPage = async (t, url, threadId) => {
  const { createElement, createRoot, AssistantRuntimeProvider, HttpAgent, ...hooks } = await packages()
  const agent = new HttpAgent({ url, threadId })
  let shown: string | undefined
  const onError = (error: Error) => void (shown ??= error.message)
  const runtimes: AssistantRuntime[] = []
  const WithRuntime = ({ children }: { readonly children?: ReactNode }) => {
    const runtime = hooks.useAgUiRuntime({ agent, onError })
    runtimes.push(runtime)
    return createElement(AssistantRuntimeProvider, { runtime }, children)
  }
  const page = await rendered(
    t,
    () => ({
      interrupts: hooks.useAgUiInterrupts(),
      submit: hooks.useAgUiSubmitInterruptResponses(),
      state: hooks.useAgUiState()
    }),
    {},
    node => createElement(WithRuntime, {}, node),
    { createElement, createRoot }
  )
  const thread = () => (runtimes.at(-1) as AssistantRuntime).thread
  const errorOf = async (begin: () => void) => {
    shown = undefined
    const ended = new Promise<void>(resolve => {
      const { unsubscribe } = agent.subscribe({
        onRunFinalized: () => {
          unsubscribe()
          resolve()
        }
      })
    })
    begin()
    await ended
    // The hooks say it when React has rendered it.
    await until(() => {
      const { interrupts, state } = page.value()
      return !thread().getState().isRunning && isSame(interrupts, agent.pendingInterrupts) && isSame(state, agent.state)
    })
    return shown
  }
  const resume = (answer: Omit<Entry, 'interruptId'>) =>
    errorOf(() => {
      const { submit, interrupts } = page.value()
      submit(entriesFor(interrupts, answer)).catch(() => undefined)
    })
  return {
    say: words => errorOf(() => thread().append(words)),
    answer: payload => resume({ status: 'resolved', payload }),
    refuse: () => resume({ status: 'cancelled' }),
    rejoin: () => errorOf(() => thread().startRun({ parentId: null })),
    stop: () => thread().cancelRun(),
    get messages() {
      return thread()
        .getState()
        .messages.flatMap(({ role, content }) => content.map(({ text }) => `${role}: ${text}`))
    },
    get interrupts() {
      return page.value().interrupts
    },
    get task() {
      return page.value().state?.task
    }
  }
}

/** The front ends. */
export const FRONT_ENDS = {
  CopilotKit: openCopilot,
  'assistant-ui': openAssistant
}

function entriesFor(interrupts: readonly Interrupt[], answer: Omit<Entry, 'interruptId'>): Entry[] {
  return interrupts.map(({ id }) => ({ interruptId: id, ...answer }))
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}
