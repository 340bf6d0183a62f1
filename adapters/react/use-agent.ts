import { useCallback, useEffect, useRef, useState } from 'react'
import { connect, type AgentClient, type ConnectOptions, type LinkState } from '../client/connect.ts'

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
 * Connects to an agent while the component is there, and again if `url` changes. `options` are those of `connect`; a change of them alone
 * does not connect again.
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
