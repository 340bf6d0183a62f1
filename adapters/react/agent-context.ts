import {
  createContext,
  createElement,
  useContext,
  useEffect,
  useState,
  useSyncExternalStore,
  type ReactNode
} from 'react'
import type { AgentClient, Watched } from '../client/connect.ts'

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

/** Makes a store for a key, and another one if the agent or the key changes, unless the store `goesOn` with the new key. */
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
