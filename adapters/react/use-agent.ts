import {
  createContext,
  createElement,
  type ReactNode,
  useCallback,
  useContext,
  useEffect,
  useRef,
  useState,
  useSyncExternalStore
} from 'react'
import type { AgentClient } from '../client/agent-client.ts'
import { connect, type ConnectOptions, type LinkState, type Watched } from '../client/connect.ts'

/** The connection of a component to an agent. */
export interface AgentConnection {
  /** `undefined` until it is connected. */
  readonly agent: AgentClient | undefined
  readonly state: LinkState
  /** Why connecting failed. `state` is then `closed`. */
  readonly error: unknown
  /** Connects again, for a button beside `error`. A lost connection is restored without it. */
  readonly reconnect: () => void
}

type Held = Omit<AgentConnection, 'reconnect'>

const CONNECTING: Held = { agent: undefined, state: 'connecting', error: undefined }
const STATES: readonly LinkState[] = ['connecting', 'open', 'lost', 'closed']

/**
 * Connects to an agent while the component is there, and again if `url` changes. `options` are those of `connect`; a
 * change of them alone does not connect again.
 */
export function useAgent(url: string, options: ConnectOptions = {}): AgentConnection {
  const [held, hold] = useState(CONNECTING)
  const [attempt, tryAgain] = useState(0)
  const latest = useRef(options)
  latest.current = options

  useEffect(() => {
    const leaving = new AbortController()
    const { signal = leaving.signal } = latest.current
    hold(CONNECTING)
    const opening = connect(url, { ...latest.current, signal: AbortSignal.any([signal, leaving.signal]) })
    const show = (held: Held) => {
      if (!leaving.signal.aborted) hold(held)
    }
    const opened = (agent: AgentClient) => {
      const changed = () => show({ agent, state: agent.state, error: undefined })
      for (const state of STATES) agent.on(state, changed)
      changed()
    }
    opening.then(opened, (error: unknown) => show({ agent: undefined, state: 'closed', error }))
    return () => {
      leaving.abort()
      void opening.then(
        agent => agent.close(),
        () => {}
      )
    }
  }, [url, attempt])
  const reconnect = useCallback(() => tryAgain(count => count + 1), [])
  return { ...held, reconnect }
}

const AgentContext = createContext<AgentClient | undefined>(undefined)

/** Gives an agent, as `useAgent` returns it, to the hooks of the components in it. */
export function AgentProvider({
  agent,
  children
}: {
  readonly agent: AgentClient
  readonly children?: ReactNode
}): ReactNode {
  return createElement(AgentContext.Provider, { value: agent }, children)
}

/** The agent that a hook got, or that of the provider. Throws TypeError without both. */
export function useGivenAgent(hook: string, given: AgentClient | undefined): AgentClient {
  const provided = useContext(AgentContext)
  const agent = given ?? provided
  if (agent) return agent
  throw new TypeError(
    `${hook} has no agent. Put the component into <AgentProvider agent={agent}>, or pass the agent as the second argument.`
  )
}

/** A store of one agent, which is open while the component is there. */
interface Opened<T> extends Watched<T> {
  readonly open: () => () => void
}

/**
 * Makes a store for a key, and another one if the agent or the key changes, unless the store `goesOn` with the new key.
 */
export function useStore<T, S extends Opened<T>>(
  agent: AgentClient,
  key: string | undefined,
  make: () => S,
  goesOn: (store: S) => boolean = () => false
): S {
  const [held, hold] = useState(() => ({ agent, key, store: make() }))
  if (held.agent === agent && held.key === key) return held.store
  const store = held.agent === agent && goesOn(held.store) ? held.store : make()
  hold({ agent, key, store })
  return store
}

/** The current value of a store. The component renders again when that changes. */
export function useOpened<T>(store: Opened<T>): T {
  useEffect(() => store.open(), [store])
  return useSyncExternalStore(store.subscribe, store.snapshot, store.snapshot)
}
