import { effect, signal } from '@preact/signals'
import { connect, type AgentClient, type LinkState } from '../../../client/connect.ts'
import { hello } from '../feed/feed.ts'
import { errorText } from '../frame/wording.ts'
import { agentUrl } from '../place.ts'

/** The agent, once the page is connected to it. */
export const agent = signal<AgentClient | undefined>(undefined)

/** How the connection to the agent stands. */
export const agentState = signal<LinkState>('connecting')

/** Why the page cannot speak to the agent. */
export const agentError = signal<string | undefined>(undefined)

/** Connects to the agent that the hub names, again whenever the hub names one and there is no connection. */
export function openAgent(): void {
  let isOpening = false
  effect(() => {
    const url = hello.value?.url
    if (url === undefined || isOpening || agent.peek()) return
    isOpening = true
    open(agentUrl(url)).catch(error => (agentError.value = errorText(error))).finally(() => (isOpening = false))
  })
}

async function open(url: string): Promise<void> {
  const client = await connect(url, { giveUpAfterMs: Infinity })
  for (const state of ['connecting', 'open', 'lost', 'closed'] as const) {
    client.on(state, () => {
      agentState.value = state
      if (state === 'closed') agent.value = undefined
    })
  }
  agentState.value = client.state
  agentError.value = undefined
  agent.value = client
}
