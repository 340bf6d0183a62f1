import { effect, signal } from '@preact/signals'
import type { AgentClient } from '../../../client/agent-client.ts'
import { connect, type LinkState } from '../../../client/connect.ts'
import { hello } from '../feed/feed.ts'
import { agentUrl } from '../page.ts'
import { errorText } from '../wording.ts'

/** The client of the agent, once connected. */
export const agent = signal<AgentClient | undefined>(undefined)

/** The state of the connection to the agent. */
export const agentState = signal<LinkState>('connecting')

/** Why the agent refuses the page although the hub does not: it requires credentials. */
export const agentRefusal = signal<string | undefined>(undefined)

/** Connects to the agent whenever `hello` names one and there is no connection. */
export function openAgent(): void {
  let isOpening = false
  effect(() => {
    const url = hello.value?.url
    if (url === undefined || isOpening || agent.peek()) return
    isOpening = true
    open(() => connect(agentUrl(url), { giveUpAfterMs: Infinity }))
      .finally(() => (isOpening = false))
      .catch(() => undefined)
  })
}

/** Connects with a key, which the client sends as the card says. The key stays in memory only. */
export async function openWithKey(key: string): Promise<void> {
  const url = agentUrl(hello.peek()?.url ?? '')
  await open(async () => {
    const client = await connect(url, { giveUpAfterMs: Infinity, credentials: { apiKey: key } })
    // The first call shows whether the key is valid.
    await client.listTasks({ pageSize: 1 })
    return client
  })
}

async function open(connecting: () => Promise<AgentClient>): Promise<void> {
  try {
    const client = await connecting()
    for (const state of ['connecting', 'open', 'lost', 'closed'] as const) {
      client.on(state, () => {
        agentState.value = state
        if (state === 'closed') agent.value = undefined
      })
    }
    agentState.value = client.state
    agentRefusal.value = undefined
    agent.value = client
  } catch (error) {
    agentRefusal.value = errorText(error)
  }
}
